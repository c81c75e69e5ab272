// flags: -lm
// Pointers with `restrict` may be the same where nothing is written through them; then their shadows are the same, too.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

void products(const double *restrict a, const double *restrict b, double *restrict out, int n) {
  for (int i = 0; i < n; i++)
    out[i] = a[i] * b[i] + a[i];
}

int main(void) {
  enum { N = 100 };
  double x[N], dx[N] = {0}, out[N], dout[N];
  for (int i = 0; i < N; i++) {
    x[i] = 0.1 * i;
    dout[i] = 1 + i;
  }
  __enzyme_autodiff((void *)products, enzyme_dup, x, dx, enzyme_dup, x, dx, enzyme_dup, out, dout, enzyme_const, N);
  for (int i = 0; i < N; i++) {
    CHECK_CLOSE(out[i], x[i] * x[i] + x[i], 1e-12);
    CHECK_CLOSE(dx[i], (1 + i) * (2 * x[i] + 1), 1e-12);
  }
  return 0;
}
