// flags: -lm
// Memory that is read, overwritten, and read again: every value must be the one of its time.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double function(double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  for (int i = 1; i < n; i++)
    x[i] = x[i] * x[i - 1];
  for (int i = 0; i < n; i++)
    sum += sin(x[i]);
  x[0] = sum;
  return sum * x[n - 1];
}

int main(void) {
  enum { N = 5 };
  double start[N] = {0.5, 1.5, -0.7, 1.1, 0.9}, x[N], dx[N] = {0};
  for (int i = 0; i < N; i++)
    x[i] = start[i];
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_const, N);
  double h = 1e-6;
  for (int k = 0; k < N; k++) {
    double up[N], down[N];
    for (int i = 0; i < N; i++)
      up[i] = down[i] = start[i];
    up[k] += h;
    down[k] -= h;
    CHECK_CLOSE(dx[k], (function(up, N) - function(down, N)) / (2 * h), 1e-8);
  }
  return 0;
}
