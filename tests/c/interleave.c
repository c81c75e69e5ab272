// flags: -lm
// All shadows after all primals.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_interleave;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);

void multiply(double *out, const double *x, const double *y, int n) {
  for (int i = 0; i < n; i++)
    out[i] = x[i] * y[i];
}

int main(void) {
  double out[2], dout[2] = {1, 1}, x[2] = {1, 2}, dx[2] = {0}, y[2] = {3, 4}, dy[2] = {0};
  __enzyme_autodiff((void *)multiply, enzyme_dup, out, enzyme_dup, x, enzyme_dup, y, enzyme_const, 2, enzyme_interleave, dout, dx, dy);
  for (int i = 0; i < 2; i++) {
    CHECK_CLOSE(dx[i], y[i], 1e-12);
    CHECK_CLOSE(dy[i], x[i], 1e-12);
  }
  return 0;
}
