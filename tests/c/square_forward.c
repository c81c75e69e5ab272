// flags: -lm
// Forward mode: a float without marker is followed by its tangent.
#include "check.h"

double __enzyme_fwddiff(void *, ...);

double square(double x) { return x * x; }
double product(double x, double y) { return x * y; }

int main(void) {
  CHECK_CLOSE(__enzyme_fwddiff((void *)square, 3.0, 1.0), 6.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)square, 3.0, 0.5), 3.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)product, 3.0, 1.0, 5.0, 2.0), 5.0 + 6.0, 1e-12);
  return 0;
}
