// flags: -lm
// A number is rounded by adding a large constant, which is subtracted again, or whose low bits are read: that has no derivative.
#include "check.h"
#include <stdint.h>
#include <string.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
float __enzyme_autodiff_float(void *, ...);

static const double LN2 = 0.69314718055994530942;

static double series(double r) {
  double sum = 1, power = 1;
  for (int i = 1; i < 16; i++) {
    power *= r / i;
    sum += power;
  }
  return sum;
}

double subtracted(double x) {
  double k = (x / LN2 + 0x1.8p52) - 0x1.8p52;
  return ldexp(series(x - k * LN2), (int)k);
}

double read_as_bits(double x) {
  double sum = x / LN2 + 0x1.8p52, scale;
  uint64_t bits;
  memcpy(&bits, &sum, 8);
  bits = (bits + 1023) << 52;
  memcpy(&scale, &bits, 8);
  return scale * series(x - (sum - 0x1.8p52) * LN2);
}

float single(float x) {
  float k = (x / (float)LN2 + 0x1.8p23f) - 0x1.8p23f;
  return ldexpf((float)series(x - k * (float)LN2), (int)k);
}

// What is left after whole numbers are taken away.
double rest(double x) {
  double whole = (0x1p52 + x) - 0x1p52;
  return x - whole;
}

// Numbers that are added and subtracted again, and do not round.
double kept(double x) {
  double y = (x + 1024) - 1024;
  return y * y;
}

int main(void) {
  for (double x = -3; x < 4; x += 0.37) {
    CHECK_CLOSE(subtracted(x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)subtracted, x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_fwddiff((void *)subtracted, x, 1.0), exp(x), 1e-12);
    CHECK_CLOSE(read_as_bits(x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)read_as_bits, x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_fwddiff((void *)read_as_bits, x, 1.0), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff_float((void *)single, (float)x), exp(x), 1e-5);
  }
  CHECK_CLOSE(__enzyme_autodiff((void *)rest, 3.25), 1, 1e-15);
  CHECK_CLOSE(__enzyme_autodiff((void *)kept, 3.25), 6.5, 1e-12);
  return 0;
}
