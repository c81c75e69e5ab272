// flags: -fopenmp -lm
// A parallel loop that overwrites what its derivative needs, with values shared by all threads.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_out;
double __enzyme_autodiff(void *, ...);

void scale(double *x, double a, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    x[i] = sin(a * x[i]);
}

int main(void) {
  enum { N = 100 };
  double x[N], dx[N], expected = 0;
  for (int i = 0; i < N; i++) {
    x[i] = 0.02 * i;
    dx[i] = 1;
    expected += cos(1.5 * x[i]) * x[i];
  }
  double da = __enzyme_autodiff((void *)scale, enzyme_dup, x, dx, enzyme_out, 1.5, enzyme_const, N);
  CHECK_CLOSE(da, expected, 1e-10);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(dx[i], 1.5 * cos(1.5 * 0.02 * i), 1e-12);
  return 0;
}
