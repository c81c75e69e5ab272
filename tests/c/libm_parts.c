// flags: -lm
// Functions of libm that take floats apart or make integers of them.
#include "check.h"

extern int enzyme_out, enzyme_const;
double __enzyme_autodiff(void *, ...);
float __enzyme_autodiff_single(void *, ...);

double f_frexp(double x) {
  int e;
  double m = frexp(x, &e);
  return m * m * e;
}
float s_frexp(float x) {
  int e;
  return frexpf(x, &e) * e;
}
double f_ldexp(double x) { return ldexp(x, 3) + scalbn(x, -2) + scalbln(x, 2L); }
float s_ldexp(float x) { return ldexpf(x, 3) + scalbnf(x, -2) + scalblnf(x, 2L); }
double f_modf(double x) {
  double whole;
  double part = modf(x, &whole);
  return part * part + whole * x;
}
float s_modf(float x) {
  float whole;
  return modff(x, &whole) * whole;
}
double f_rounding(double x) { return x * (double)lround(x) + x * (double)llround(x) + x * (double)lrint(x) + x * (double)llrint(x) + x * ilogb(x); }
double f_remquo(double x, double y) {
  int quotient;
  return remquo(x, y, &quotient) * quotient;
}
double f_casts(double x) { return x * (int)x + (double)(long)x + (float)x; }

int main(void) {
  // 6.5 = 0.8125 · 2³
  CHECK_CLOSE(__enzyme_autodiff((void *)f_frexp, 6.5), 2 * 0.8125 * 3 / 8, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff_single((void *)s_frexp, 6.5f), 3.0 / 8, 1e-6);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_ldexp, 6.5), 12.25, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff_single((void *)s_ldexp, 6.5f), 12.25, 1e-6);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_modf, 2.25), 0.5 + 2, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff_single((void *)s_modf, 2.25f), 2, 1e-6);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_rounding, 5.75), 6 * 4 + 2, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_remquo, enzyme_out, 7.5, enzyme_const, 2.0), 4, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_casts, 2.75), 2 + 1, 1e-12);
  return 0;
}
