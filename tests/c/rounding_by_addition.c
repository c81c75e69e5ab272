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

// Steps of 1/128, for a table with as many entries.
static double shift_of_table(double x, double shift, int entries) {
  double sum = x * (entries / LN2) + shift;
  double k = sum - shift;
  int whole = (int)floor(k / entries);
  double entry = exp2(k / entries - whole);
  return ldexp(entry * series(x - k * (LN2 / entries)), whole);
}

double table(double x) { return shift_of_table(x, 0x1.8p45, 128); }

double small_table(double x) { return shift_of_table(x, 0x1.8p42, 1024); }

// The bias of exponents is part of the constant.
float biased(float x) {
  float sum = x * (1 / (float)LN2) + (0x1.8p23f + 127), scale;
  uint32_t bits;
  memcpy(&bits, &sum, 4);
  bits <<= 23;
  memcpy(&scale, &bits, 4);
  return scale * (float)series(x - (sum - (0x1.8p23f + 127)) * (float)LN2);
}

double fused(double x) {
  double k = fma(x, 1 / LN2, 0x1.8p52) - 0x1.8p52;
  return ldexp(series(fma(-k, LN2, x)), (int)k);
}

// The sum passes through memory, and is seen in another function.
__attribute__((noinline)) static void shift(const double *x, double *sum) { *sum = *x / LN2 + 0x1.8p52; }

__attribute__((noinline)) static double unshift(const double *sum) { return *sum - 0x1.8p52; }

double through_memory(double x) {
  double sum;
  shift(&x, &sum);
  double k = unshift(&sum);
  return ldexp(series(x - k * LN2), (int)k);
}

double through_branches(double x, int large) {
  double y = x / LN2;
  double sum = large ? y + 0x1p52 : y + 0x1.8p52;
  double k = large ? sum - 0x1p52 : sum - 0x1.8p52;
  return ldexp(series(x - k * LN2), (int)k);
}

// Away from zero on both sides.
double with_sign(double x) {
  double y = x / LN2, shift = copysign(0x1p52, y);
  double k = (y + shift) - shift;
  return ldexp(series(x - k * LN2), (int)k);
}

typedef double Pair __attribute__((vector_size(16)));

double vectors(double x) {
  Pair y = {x, 0.5 * x};
  Pair k = (y / LN2 + 0x1.8p52) - 0x1.8p52;
  Pair r = y - k * LN2;
  return ldexp(series(r[0]), (int)k[0]) + ldexp(series(r[1]), (int)k[1]);
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

// The error term of a compensated sum, and constants of nature.
double compensated(double x) {
  double sum = x + 1e16, error = x - (sum - 1e16);
  return sum + error;
}

double near_one(double x) {
  double u = 1 + x;
  return u == 1 ? x : log(u) * x / (u - 1);
}

double offset(double x) {
  double y = x + 0x1p40;
  return y * 0x1p-40;
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
  double (*exponentials[])(double) = {table, small_table, fused, through_memory};
  for (double x = -3; x < 4; x += 0.37) {
    for (int i = 0; i < 4; i++)
      CHECK_CLOSE(exponentials[i](x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)table, x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_fwddiff((void *)table, x, 1.0), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)small_table, x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff_float((void *)biased, (float)x), exp(x), 1e-5);
    CHECK_CLOSE(__enzyme_autodiff((void *)fused, x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)through_memory, x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_fwddiff((void *)through_memory, x, 1.0), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)through_branches, x, 0), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)with_sign, x), exp(x), 1e-12);
    CHECK_CLOSE(__enzyme_autodiff((void *)vectors, x), exp(x) + 0.5 * exp(0.5 * x), 1e-12);
  }
  CHECK_CLOSE(__enzyme_autodiff((void *)through_branches, 2.0, 1), exp(2.0), 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)compensated, 3.0), 1, 1e-15);
  CHECK_CLOSE(__enzyme_autodiff((void *)near_one, 0.25), 0.8, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)offset, 3.25), 0x1p-40, 1e-15);
  CHECK_CLOSE(__enzyme_autodiff((void *)rest, 3.25), 1, 1e-15);
  CHECK_CLOSE(__enzyme_autodiff((void *)kept, 3.25), 6.5, 1e-12);
  return 0;
}
