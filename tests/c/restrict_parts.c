// flags: -lm
// C says `restrict` of what is written: what two such pointers only read may be the same memory, and then its shadow is one, too.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

void products(double *restrict a, double *restrict b, int n) {
  double sum = 0;
  for (int i = 0; i < n - 1; i++)
    sum += a[1] * b[i];
  a[0] = sum;
}

void maybe_cleared(double *restrict a, double *restrict b, double *restrict out, int n, int clear) {
  for (int i = 0; i < n; i++) {
    if (clear)
      a[i] = b[i] = 0;
    out[i] = a[2] * b[i];
  }
}

enum { N = 100 };

double *chosen(double *x) { return x; }

int main(void) {
  double x[N], dx[N] = {1}, dy[N] = {0}, out[N], dout[N];
  for (int i = 0; i < N; i++) {
    x[i] = 0.1 * i;
    dout[i] = 1 + i;
  }
  double sum = 0, weighted = 0;
  for (int i = 0; i < N; i++) {
    sum += x[i];
    weighted += dout[i] * x[i];
  }
  const double start = x[0];
  double *p = x, *dp = dx;
  __enzyme_autodiff((void *)products, enzyme_dup, p, dp, enzyme_dup, p + 1, dp + 1, enzyme_const, N);
  for (int i = 1; i < N; i++)
    CHECK_CLOSE(dx[i], i == 1 ? sum - start + x[1] : x[1], 1e-12);

  x[0] = start;
  dp = chosen(dy);
  __enzyme_autodiff((void *)maybe_cleared, enzyme_dup, x, dp, enzyme_dup, x, dp, enzyme_dup, out, dout, enzyme_const, N, enzyme_const, 0);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(dy[i], (1 + i) * x[2] + (i == 2 ? weighted : 0), 1e-12);
  return 0;
}
