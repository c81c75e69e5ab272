// flags: -lm
// Tricks with the bits of a float: the sign cleared, flipped and taken from another.
#include "check.h"
#include <stdint.h>
#include <string.h>

double __enzyme_autodiff(void *, ...);

static double without_sign(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  bits &= 0x7fffffffffffffffUL;
  memcpy(&x, &bits, 8);
  return x;
}

static double negated(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  bits ^= 0x8000000000000000UL;
  memcpy(&x, &bits, 8);
  return x;
}

double absolute(double x) { return without_sign(x) * x; }
double minus(double x) { return negated(x) * x; }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)absolute, 3.0), 6.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)absolute, -3.0), 6.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)minus, 3.0), -6.0, 1e-12);
  return 0;
}
