// flags: -lm
// The smallest use: the derivative of a function of one number, without markers.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double square(double x) { return x * x; }

double dsquare(double x) { return __enzyme_autodiff((void *)square, x); }

int main(void) {
  for (double x = -3; x <= 3; x += 0.5)
    CHECK_CLOSE(dsquare(x), 2 * x, 1e-12);
  return 0;
}
