// flags: -lm
// What GNU's libm has beyond C11: Bessel functions, exp10, sincos, drem, functions of multiples of π.
#define _GNU_SOURCE
#include "check.h"

double __enzyme_autodiff(void *, ...);
float __enzyme_autodiff_single(void *, ...);

double f_exp10(double x) { return exp10(x); }
float s_exp10(float x) { return exp10f(x); }
double f_j0(double x) { return j0(x); }
double f_j1(double x) { return j1(x); }
double f_jn(double x) { return jn(3, x); }
double f_y0(double x) { return y0(x); }
double f_y1(double x) { return y1(x); }
double f_yn(double x) { return yn(2, x); }
double f_sincos(double x) {
  double s, c;
  sincos(x, &s, &c);
  return s * s * c;
}
float s_sincos(float x) {
  float s, c;
  sincosf(x, &s, &c);
  return s * c;
}
double f_drem(double x) { return drem(x, 2.5); }
double f_lgamma_r(double x) {
  int sign;
  double l = lgamma_r(x, &sign);
  return sign * l;
}
double f_significand(double x) { return significand(x); }
double f_gamma(double x) { return gamma(x); }

int main(void) {
  double x = 1.375;
  CHECK_CLOSE(__enzyme_autodiff((void *)f_exp10, x), exp10(x) * log(10.0), 1e-12);
  CHECK_CLOSE(__enzyme_autodiff_single((void *)s_exp10, (float)x), exp10(x) * log(10.0), 1e-5);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_j0, x), -j1(x), 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_j1, x), (j0(x) - jn(2, x)) / 2, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_jn, x), (jn(2, x) - jn(4, x)) / 2, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_y0, x), -y1(x), 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_y1, x), (y0(x) - yn(2, x)) / 2, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_yn, x), (y1(x) - yn(3, x)) / 2, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_sincos, x), 2 * sin(x) * cos(x) * cos(x) - sin(x) * sin(x) * sin(x), 1e-12);
  CHECK_CLOSE(__enzyme_autodiff_single((void *)s_sincos, (float)x), cos(2 * x), 1e-5);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_drem, 6.0), 1.0, 1e-12);
  // digamma(1.375) by a central difference
  double slope = (lgamma(x + 1e-6) - lgamma(x - 1e-6)) / 2e-6;
  CHECK_CLOSE(__enzyme_autodiff((void *)f_lgamma_r, x), slope, 1e-8);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_gamma, x), slope, 1e-8);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_significand, 6.0), 0.25, 1e-12);
  return 0;
}
