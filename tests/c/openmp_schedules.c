// flags: -fopenmp -lm
// Schedules that are decided while the program runs, and ordered parts of loops.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double sums(const double *x, long n) {
  double sum = 0;
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : sum)
  for (int i = 0; i < (int)n; i++)
    sum += x[i] * x[i];
#pragma omp parallel for schedule(guided) reduction(+ : sum)
  for (long i = 0; i < n; i++)
    sum += x[i] * x[i] * x[i];
#pragma omp parallel for ordered reduction(+ : sum)
  for (unsigned i = 0; i < (unsigned)n; i++) {
#pragma omp ordered
    sum += x[i];
  }
  return sum;
}

int main(void) {
  double x[6] = {1, 2, 3, 4, 5, 6}, gradient[6] = {0};
  __enzyme_autodiff((void *)sums, enzyme_dup, x, gradient, enzyme_const, 6L);
  for (int i = 0; i < 6; i++)
    CHECK_CLOSE(gradient[i], 2 * x[i] + 3 * x[i] * x[i] + 1, 1e-12);
  return 0;
}
