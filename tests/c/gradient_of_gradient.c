// flags: -lm
// Reverse over reverse through memory: rows of a Hessian.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

double f(const double *x) { return x[0] * x[0] * x[1] + exp(x[0] * x[1]); }

double component(const double *x, int which) {
  double g[2] = {0, 0};
  __enzyme_autodiff((void *)f, enzyme_dup, x, g);
  return g[which];
}

int main(void) {
  double x[2] = {0.7, 0.4}, e = exp(0.28);
  double expected[2][2] = {{2 * x[1] + x[1] * x[1] * e, 2 * x[0] + (1 + x[0] * x[1]) * e}, {0, x[0] * x[0] * e}};
  expected[1][0] = expected[0][1];
  for (int i = 0; i < 2; i++) {
    double row[2] = {0, 0};
    __enzyme_autodiff((void *)component, enzyme_dup, x, row, enzyme_const, i);
    for (int j = 0; j < 2; j++)
      CHECK_CLOSE(row[j], expected[i][j], 1e-12);
  }
  return 0;
}
