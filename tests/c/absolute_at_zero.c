// flags: -lm
// The sign of a zero is the side that it comes from: |-x²| is x², and so are its derivatives at 0, where -x² is -0.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double absolute(double x) { return fabs(x); }
double square(double x) { return fabs(-x * x); }
double slope(double x) { return __enzyme_fwddiff((void *)square, x, 1.0); }
double gradient(double x) { return __enzyme_autodiff((void *)square, x); }

int main(void) {
  volatile double zero = 0.0;
  CHECK_CLOSE(__enzyme_fwddiff((void *)absolute, zero, 1.0), 1.0, 0);
  CHECK_CLOSE(__enzyme_fwddiff((void *)absolute, -zero, 1.0), -1.0, 0);
  CHECK_CLOSE(__enzyme_autodiff((void *)absolute, -zero), -1.0, 0);
  CHECK_CLOSE(gradient(zero), 0.0, 0);
  CHECK_CLOSE(__enzyme_fwddiff((void *)slope, zero, 1.0), 2.0, 0);
  CHECK_CLOSE(__enzyme_autodiff((void *)gradient, zero), 2.0, 0);
  return 0;
}
