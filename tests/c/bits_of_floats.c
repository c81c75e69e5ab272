// flags: -lm
// First guesses from the bits of a number, by integer arithmetic: between powers of two they are linear, and that is their derivative.
#include "check.h"
#include <stdint.h>
#include <string.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static double from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, 8);
  return x;
}

static uint64_t to_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  return bits;
}

double guess_inverse(double x) { return from_bits(0x7FDE5F73AABB2400ULL - to_bits(x)); }

double inverse(double x) {
  double y = guess_inverse(x);
  for (int i = 0; i < 4; i++)
    y = y * (2 - x * y);
  return y;
}

double cube_root(double x) {
  double y = from_bits(to_bits(x) / 3 + 0x2A9F7893782DA1CEULL);
  for (int i = 0; i < 4; i++)
    y = (2 * y + x / (y * y)) / 3;
  return y;
}

double square_of_shifted(double x) {
  double y = from_bits(to_bits(x) >> 1);
  return y * y;
}

// The fraction, between 0.5 and 1, and the exponent.
double fraction(double x, int *exponent) {
  *exponent = (int)(to_bits(x) >> 52 & 0x7ff) - 1022;
  return from_bits((to_bits(x) & 0x800fffffffffffffULL) | 0x3fe0000000000000ULL);
}

double logarithm(double x) {
  int exponent;
  double f = fraction(x, &exponent), t = (f - 0.75) / (f + 0.75), power = t, sum = 0;
  for (int k = 1; k < 30; k += 2, power *= t * t)
    sum += power / k;
  return 2 * sum + exponent * log(2) + log(0.75);
}

int main(void) {
  for (double x = 0.3; x < 20; x *= 1.7) {
    CHECK_CLOSE(logarithm(x), log(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)logarithm, x), 1 / x, 1e-12);
    CHECK_CLOSE(__enzyme_fwddiff((void *)logarithm, x, 1.0), 1 / x, 1e-12);
  }
  for (double x = 0.3; x < 20; x *= 1.7) {
    CHECK_CLOSE(__enzyme_autodiff((void *)inverse, x), -1 / (x * x), 1e-9);
    CHECK_CLOSE(__enzyme_fwddiff((void *)inverse, x, 1.0), -1 / (x * x), 1e-9);
    CHECK_CLOSE(__enzyme_autodiff((void *)cube_root, x), 1 / (3 * cbrt(x) * cbrt(x)), 1e-9);
  }
  for (double x = -2.6; x < 3; x += 5.2 / 4) {
    double step = 1e-7, slope = (guess_inverse(x + step) - guess_inverse(x - step)) / (2 * step);
    if (x != 0)
      CHECK_CLOSE(__enzyme_autodiff((void *)guess_inverse, x), slope, 1e-6);
  }
  // Infinity has bits like any other number, but no neighbours.
  CHECK_CLOSE(__enzyme_autodiff((void *)square_of_shifted, INFINITY), 0, 0);
  CHECK_CLOSE(__enzyme_fwddiff((void *)square_of_shifted, INFINITY, 1.0), 0, 0);
  return 0;
}
