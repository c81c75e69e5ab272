// flags: -lm
// Dual numbers that are kept as complex ones: their two parts are two arguments, a number and its tangent. Complex numbers by value are one.
#include "check.h"
#include <complex.h>

extern int enzyme_const, enzyme_dup;
double __enzyme_fwddiff(void *, ...);

double product(double x, double y) { return x * x * y; }

double part(double factor, double other, double x) { return factor * other * x * x; }

double squares(double _Complex z) { return creal(z) * creal(z) + 3 * cimag(z) * cimag(z); }

int main(void) {
  double _Complex a = 3.0 + 5.0 * I, b = 2.0 + 7.0 * I, coerce = 4.0 + 0.5 * I;
  // 2 x y dx + x x dy
  CHECK_CLOSE(__enzyme_fwddiff((void *)product, __real__ a, __imag__ a, __real__ b, __imag__ b), 2 * 3 * 2 * 5 + 9 * 7.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)product, enzyme_dup, __real__ a, __imag__ a, enzyme_const, __real__ coerce), 2 * 3 * 4 * 5.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)part, enzyme_const, __real__ a, enzyme_const, __imag__ a, enzyme_dup, __real__ coerce, __imag__ coerce), 15 * 2 * 4 * 0.5, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)squares, a, b), 2 * 3 * 2 + 6 * 5 * 7.0, 1e-12);
  return 0;
}
