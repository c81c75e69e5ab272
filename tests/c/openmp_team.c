// flags: -fopenmp -lm
// Regions whose result depends on how many threads there are: each thread starts from a copy of its own, carries it through its part of the loop, and takes its work by its number.
// All of them are linear in x, so that the derivative is the value at 1.
#include "check.h"
#include <omp.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

// One element for each thread is x, the others are less.
double faded(double x, int n) {
  double a[40];
#pragma omp parallel for firstprivate(x)
  for (int i = 0; i < n; i++) {
    a[i] = x;
    x *= 0.5;
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += a[i] * (i + 1);
  return sum;
}

// Chunks of three go round.
double chunked(double x, int n) {
  double a[40];
#pragma omp parallel for firstprivate(x) schedule(static, 3)
  for (long i = n - 1; i >= 0; i--) {
    a[i] = x;
    x *= 0.5;
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += a[i] * (i + 1);
  return sum;
}

// What a thread has summed up so far is seen in each iteration.
double running(double x, int n) {
  double a[40], total = 0;
#pragma omp parallel num_threads(3)
  {
    double sum = 0;
#pragma omp for
    for (int i = 0; i < n; i++) {
      sum += x * i;
      a[i] = sum;
    }
  }
  for (int i = 0; i < n; i++)
    total += a[i];
  return total;
}

// An array of the thread's own.
double windows(double x, int n) {
  double last[2] = {x, 2 * x}, total = 0;
#pragma omp parallel for firstprivate(last) reduction(+ : total)
  for (unsigned i = 0; i < (unsigned)n; i++) {
    total += last[0] - last[1] * i;
    last[i % 2] = 0.25 * last[(i + 1) % 2];
  }
  return total;
}

// Four threads share the work by their numbers.
double strided(double x, int n) {
  double parts[4] = {0};
#pragma omp parallel num_threads(4)
  {
    int thread = omp_get_thread_num();
    for (int i = thread; i < n; i += 4)
      parts[thread] += x * i * (thread + 1);
  }
  return parts[0] + parts[1] + parts[2] + parts[3];
}

// A sum that starts from the program's value counts it once for each thread, which the team is asked for beforehand, too.
double started(double x, int n) {
  double total = 0, share = x / omp_get_max_threads();
#pragma omp parallel
  {
    double sum = share + x;
#pragma omp for nowait
    for (int i = 0; i < n; i++)
      sum += x * i;
#pragma omp critical
    total += sum;
  }
  return total;
}

// All threads but the first do something, which those of a larger team do no better.
double others(double x, int n) {
  double sum = 0, more = 0;
#pragma omp parallel
  {
    if (omp_get_thread_num() != 0) {
#pragma omp critical
      more = 2 * x;
    }
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < n; i++)
      sum += x * i;
  }
  return sum + more;
}

#define CHECK_LINEAR(function, n)                                                                  \
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.7, n), function(1.0, n), 1e-12);               \
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 0.7, 1.0, n), function(1.0, n), 1e-12)

int main(void) {
  for (int threads = 1; threads <= 5; threads += 2) {
    omp_set_num_threads(threads);
    for (int n = 1; n <= 40; n += 13) {
      CHECK_LINEAR(faded, n);
      CHECK_LINEAR(chunked, n);
      CHECK_LINEAR(running, n);
      CHECK_LINEAR(windows, n);
      CHECK_LINEAR(strided, n);
      CHECK_LINEAR(started, n);
      CHECK_LINEAR(others, n);
    }
  }
  return 0;
}
