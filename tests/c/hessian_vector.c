// flags: -lm
// Hessian times vector: forward mode over a gradient in memory.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_dupnoneed;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);

double rosenbrock(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i + 1 < n; i++) {
    double a = 1 - x[i], b = x[i + 1] - x[i] * x[i];
    sum += a * a + 100 * b * b;
  }
  return sum;
}

void gradient(const double *x, double *g, int n) {
  for (int i = 0; i < n; i++)
    g[i] = 0;
  __enzyme_autodiff((void *)rosenbrock, enzyme_dup, x, g, enzyme_const, n);
}

int main(void) {
  enum { N = 3 };
  double x[N] = {0.5, -0.3, 1.2}, v[N] = {1, 2, -1}, g[N], hv[N];
  __enzyme_fwddiff((void *)gradient, enzyme_dup, x, v, enzyme_dup, g, hv, enzyme_const, N);
  double up[N], down[N], gu[N], gd[N], h = 1e-6;
  for (int i = 0; i < N; i++) {
    up[i] = x[i] + h * v[i];
    down[i] = x[i] - h * v[i];
  }
  gradient(up, gu, N);
  gradient(down, gd, N);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(hv[i], (gu[i] - gd[i]) / (2 * h), 1e-6);
  return 0;
}
