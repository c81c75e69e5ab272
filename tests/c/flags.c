// flags: -lm
// Markers that are flags: const_return, runtime_activity, strong_zero, noret.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_const_return, enzyme_runtime_activity, enzyme_strong_zero, enzyme_active_return;
double __enzyme_autodiff(void *, ...);

// Its result is not what is differentiated; its output is.
double store(double *out, const double *x) {
  *out = *x * *x;
  return 100 * *x;
}

double maybe(const double *x, const double *y, int use_y) {
  const double *chosen = use_y ? y : x;
  return *chosen * *chosen;
}

int main(void) {
  double out = 0, dout = 1, x = 3, dx = 0;
  __enzyme_autodiff((void *)store, enzyme_const_return, enzyme_dup, &out, &dout, enzyme_dup, &x, &dx);
  CHECK_CLOSE(dx, 6.0, 1e-12);
  dout = 1;
  dx = 0;
  __enzyme_autodiff((void *)store, enzyme_active_return, enzyme_strong_zero, enzyme_dup, &out, &dout, enzyme_dup, &x, &dx);
  CHECK_CLOSE(dx, 106.0, 1e-12);

  // With runtime activity, a shadow that is the primal itself means: constant.
  double y = 5;
  dx = 0;
  __enzyme_autodiff((void *)maybe, enzyme_runtime_activity, enzyme_dup, &x, &dx, enzyme_dup, &y, &y, enzyme_const, 0);
  CHECK_CLOSE(dx, 6.0, 1e-12);
  CHECK_CLOSE(y, 5.0, 0);
  return 0;
}
