// flags: -fopenmp -lm
// A parallel loop over an array, static schedule.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

void squares(double *out, const double *x, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++)
    out[i] = x[i] * x[i] * x[i];
}

int main(void) {
  enum { N = 1000 };
  static double x[N], dx[N], out[N], dout[N];
  for (int i = 0; i < N; i++) {
    x[i] = 0.01 * i;
    dout[i] = 1;
  }
  __enzyme_autodiff((void *)squares, enzyme_dup, out, dout, enzyme_dup, x, dx, enzyme_const, N);
  for (int i = 0; i < N; i++) {
    CHECK_CLOSE(out[i], x[i] * x[i] * x[i], 1e-12);
    CHECK_CLOSE(dx[i], 3 * x[i] * x[i], 1e-12);
  }
  return 0;
}
