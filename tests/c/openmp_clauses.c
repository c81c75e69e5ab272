// flags: -fopenmp -lm
// What parallel regions say besides `parallel for`: how data is shared, who does what, chunks, several loops in one region.
#include "check.h"
#include <omp.h>

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

enum { N = 6 };

double private_and_shared(const double *x, int n) {
  double scale = x[0] * x[0], last = 0, half, products[N];
#pragma omp parallel for firstprivate(scale) private(half) lastprivate(last) shared(products)
  for (int i = 0; i < n; i++) {
    half = x[i] / 2;
    products[i] = scale * half;
    last = products[i] * x[i];
  }
  double sum = last;
  for (int i = 0; i < n; i++)
    sum += products[i] * products[i];
  return sum;
}

double chunks(const double *x, int n) {
  double sum = 0, product = 1, largest = -1e9;
#pragma omp parallel for schedule(static, 3) reduction(+ : sum) reduction(* : product) reduction(max : largest)
  for (long i = n - 1; i >= 0; i--) {
    sum += x[i] * x[i] * i;
    product *= x[i];
    largest = x[i] > largest ? x[i] : largest;
  }
  return sum * largest + product;
}

double one_at_a_time(const double *x, int n) {
  double sum = 0, squares = 0;
#pragma omp parallel for
  for (unsigned i = 0; i < (unsigned)n; i++) {
    double sine = sin(x[i]);
#pragma omp critical
    sum += sine;
#pragma omp atomic
    squares += x[i] * x[i];
  }
  return sum * squares;
}

double by_hand(const double *x, int n) {
  double sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    for (int i = omp_get_thread_num(); i < n; i += omp_get_num_threads())
      sum += x[i] * x[i] * x[i];
#pragma omp barrier
#pragma omp single
    sum += x[1] * x[2];
  }
  return sum;
}

double several(const double *x, int n) {
  double squares[N], products[N], first = 0, second = 0, parts[3] = {0, 0, 0}, grid[4];
#pragma omp parallel num_threads(2)
  {
#pragma omp for
    for (int i = 0; i < n; i++)
      squares[i] = x[i] * x[i];
#pragma omp for nowait
    for (int i = 0; i < n; i++)
      products[i] = squares[n - 1 - i] * x[i];
  }
#pragma omp parallel sections
  {
#pragma omp section
    first = products[0] * products[1];
#pragma omp section
    second = products[2] * products[2];
  }
#pragma omp parallel for reduction(+ : parts[ : 3]) if (n > 100)
  for (int i = 0; i < n; i++)
    parts[i % 3] += x[i] * x[i];
#pragma omp parallel for collapse(2)
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      grid[2 * i + j] = x[i] * x[j];
  return first + second + parts[0] * parts[1] + parts[2] + grid[1] * grid[3];
}

static void check(double (*function)(const double *, int), const double *gradient) {
  for (int i = 0; i < N; i++) {
    double x[N] = {0.5, 1.5, 2.5, 1.1, 0.7, 0.9}, step = 1e-6, middle = x[i];
    x[i] = middle + step;
    double above = function(x, N);
    x[i] = middle - step;
    CHECK_CLOSE(gradient[i], (above - function(x, N)) / (2 * step), 1e-6);
  }
}

#define DIFFERENTIATE(function)                                                                   \
  do {                                                                                            \
    double x[N] = {0.5, 1.5, 2.5, 1.1, 0.7, 0.9}, gradient[N] = {0};                              \
    __enzyme_autodiff((void *)function, enzyme_dup, x, gradient, enzyme_const, (int)N);           \
    check(function, gradient);                                                                    \
  } while (0)

int main(void) {
  DIFFERENTIATE(private_and_shared);
  DIFFERENTIATE(chunks);
  DIFFERENTIATE(one_at_a_time);
  DIFFERENTIATE(by_hand);
  DIFFERENTIATE(several);
  return 0;
}
