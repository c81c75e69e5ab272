// flags: -fopenmp -lm
// A parallel sum.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

double norm2(const double *x, int n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sum;
}

int main(void) {
  enum { N = 500 };
  static double x[N], dx[N];
  for (int i = 0; i < N; i++)
    x[i] = 1.0 / (i + 1);
  __enzyme_autodiff((void *)norm2, enzyme_dup, x, dx, enzyme_const, N);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(dx[i], 2 * x[i], 1e-12);
  return 0;
}
