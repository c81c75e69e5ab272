// flags: -lm
// Floats in volatile variables are floats like others.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static volatile double kept;

double function(double x) {
  volatile double v = x * x;
  volatile float small = (float)x;
  kept = x;
  v = v * x;
  for (int i = 0; i < 3; i++)
    kept *= x;
  return v + kept * small;
}

int main(void) {
  const double x = 1.25, expected = 3 * x * x + 5 * x * x * x * x;
  CHECK_CLOSE(__enzyme_autodiff((void *)function, x), expected, 1e-6);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, x, 1.0), expected, 1e-6);
  return 0;
}
