// flags: -lm
// Markers declared extern and never defined, as many programs have them.
#include "check.h"

extern int enzyme_dup;
extern int enzyme_out;
extern int enzyme_const;

extern double __enzyme_autodiff(void *, ...);
extern void __enzyme_autodiff_void(void *, ...);

double dot(const double *x, const double *y, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * y[i];
  return sum;
}

double power(double x, double y) { return pow(x, y); }

int main(void) {
  double x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, dx[4] = {0};
  __enzyme_autodiff_void((void *)dot, enzyme_dup, x, dx, enzyme_const, y, enzyme_const, 4);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dx[i], y[i], 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)power, enzyme_out, 2.0, enzyme_const, 3.0), 12.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)power, enzyme_const, 2.0, enzyme_out, 3.0), 8.0 * log(2.0), 1e-12);
  return 0;
}
