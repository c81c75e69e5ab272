// flags: -fopenmp -lm
// Objects of C++ that each thread has of its own: copied from the program's, and changed by member functions from one iteration to the next.
// All of them are linear in x, so that the derivative is the value at 1.
#include "check.h"
#include <omp.h>
#include <vector>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

struct Fading {
  double value;
  explicit Fading(double value) : value(value) {}
  double next() {
    double now = value;
    value *= 0.5;
    return now;
  }
};

double faded(double x, int n) {
  double a[40];
  Fading fading(x);
#pragma omp parallel for firstprivate(fading)
  for (int i = 0; i < n; i++)
    a[i] = fading.next();
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += a[i] * (i + 1);
  return sum;
}

// With a copy constructor that is not trivial.
struct Copied {
  double value;
  int copies;
  explicit Copied(double value) : value(value), copies(0) {}
  Copied(const Copied &other) : value(other.value), copies(other.copies + 1) {}
  void fade(double by) { value *= by; }
  double get() const { return value; }
};

double copied(double x, int n) {
  double a[40];
  Copied fading(x);
#pragma omp parallel for firstprivate(fading)
  for (int i = 0; i < n; i++) {
    a[i] = fading.get();
    fading.fade(0.25);
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += a[i] * (i + 1);
  return sum;
}

// A vector whose elements are changed.
double vectors(double x, int n) {
  double a[40];
  std::vector<double> last(2, x);
#pragma omp parallel for firstprivate(last)
  for (int i = 0; i < n; i++) {
    a[i] = last[i % 2];
    last[(i + 1) % 2] = 0.5 * last[i % 2];
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += a[i] * (i + 1);
  return sum;
}

// Made in the region, from the program's values.
double made(double x, int n) {
  double a[40];
#pragma omp parallel num_threads(3)
  {
    Fading fading(x);
#pragma omp for
    for (int i = 0; i < n; i++)
      a[i] = fading.next();
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += a[i] * (i + 1);
  return sum;
}

// Scratch memory, which each iteration fills anew.
double scratch(double x, int n) {
  double sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    std::vector<double> work(4);
#pragma omp for schedule(dynamic)
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < 4; j++)
        work[j] = x * (i + j);
      for (int j = 0; j < 4; j++)
        sum += work[j] * j;
    }
  }
  return sum;
}

template <typename F> static void check(F *f, int n) {
  double expected = f(1.0, n);
  CHECK_CLOSE(__enzyme_autodiff((void *)f, 0.7, n), expected, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)f, 0.7, 1.0, n), expected, 1e-12);
}

int main(void) {
  int sizes[] = {1, 4, 17};
  int threads[] = {1, 2, 3};
  for (int n : sizes)
    for (int t : threads) {
      omp_set_num_threads(t);
      check(faded, n);
      check(copied, n);
      check(vectors, n);
      check(made, n);
      check(scratch, n);
    }
  return 0;
}
