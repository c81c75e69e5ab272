// flags: -lm
// Markers as globals: out, dup, const, dupnoneed.
#include "check.h"

int enzyme_dup;
int enzyme_dupnoneed;
int enzyme_out;
int enzyme_const;

double __enzyme_autodiff(void *, ...);

double scaled(double *x, double scale, double shift, int n) {
  double sum = shift;
  for (int i = 0; i < n; i++)
    sum += scale * x[i] * x[i];
  return sum;
}

void fill(double *out, const double *x, double a) {
  out[0] = a * x[0] * x[1];
  out[1] = a + x[1];
}

int main(void) {
  double x[3] = {1, 2, 3}, dx[3] = {0};
  double dscale = __enzyme_autodiff((void *)scaled, enzyme_dup, x, dx, enzyme_out, 0.5, enzyme_const, 7.0, enzyme_const, 3);
  CHECK_CLOSE(dscale, 14.0, 1e-12);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], x[i], 1e-12);

  // Shadows are accumulated into.
  __enzyme_autodiff((void *)scaled, enzyme_dup, x, dx, enzyme_const, 0.5, enzyme_const, 7.0, enzyme_const, 3);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 2 * x[i], 1e-12);

  double out[2] = {0}, dout[2] = {1, 10};
  dx[0] = dx[1] = 0;
  double da = __enzyme_autodiff((void *)fill, enzyme_dupnoneed, out, dout, enzyme_dup, x, dx, enzyme_out, 2.0);
  CHECK_CLOSE(da, 2.0 + 10.0, 1e-12);
  CHECK_CLOSE(dx[0], 2.0 * 2.0, 1e-12);
  CHECK_CLOSE(dx[1], 2.0 * 1.0 + 10.0, 1e-12);
  return 0;
}
