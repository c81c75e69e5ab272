// flags: -lm
// Every function of libm from one float to one, against its formula, in both modes, for double and float.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
float __enzyme_autodiff_single(void *, ...);
float __enzyme_fwddiff_single(void *, ...);

#define DEFINE(name)                                       \
  static double d_##name(double x) { return name(x); }     \
  static float s_##name(float x) { return name##f(x); }

DEFINE(sin) DEFINE(cos) DEFINE(tan) DEFINE(asin) DEFINE(acos) DEFINE(atan)
DEFINE(sinh) DEFINE(cosh) DEFINE(tanh) DEFINE(asinh) DEFINE(acosh) DEFINE(atanh)
DEFINE(exp) DEFINE(exp2) DEFINE(expm1) DEFINE(log) DEFINE(log2) DEFINE(log10) DEFINE(log1p)
DEFINE(sqrt) DEFINE(cbrt) DEFINE(erf) DEFINE(erfc) DEFINE(lgamma) DEFINE(tgamma)
DEFINE(fabs) DEFINE(floor) DEFINE(ceil) DEFINE(trunc) DEFINE(round) DEFINE(rint) DEFINE(nearbyint) DEFINE(logb)

#define TRY(name, x, expected)                                                            \
  CHECK_CLOSE(__enzyme_autodiff((void *)d_##name, (double)(x)), expected, 1e-11);         \
  CHECK_CLOSE(__enzyme_fwddiff((void *)d_##name, (double)(x), 1.0), expected, 1e-11);     \
  CHECK_CLOSE(__enzyme_autodiff_single((void *)s_##name, (float)(x)), expected, 2e-6);    \
  CHECK_CLOSE(__enzyme_fwddiff_single((void *)s_##name, (float)(x), 1.0f), expected, 2e-6);

int main(void) {
  double x = 0.375, y = 1.75;
  TRY(sin, x, cos(x))
  TRY(cos, x, -sin(x))
  TRY(tan, x, 1 + tan(x) * tan(x))
  TRY(asin, x, 1 / sqrt(1 - x * x))
  TRY(acos, x, -1 / sqrt(1 - x * x))
  TRY(atan, x, 1 / (1 + x * x))
  TRY(sinh, x, cosh(x))
  TRY(cosh, x, sinh(x))
  TRY(tanh, x, 1 - tanh(x) * tanh(x))
  TRY(asinh, x, 1 / sqrt(1 + x * x))
  TRY(acosh, y, 1 / sqrt(y * y - 1))
  TRY(atanh, x, 1 / (1 - x * x))
  TRY(exp, x, exp(x))
  TRY(exp2, x, exp2(x) * log(2.0))
  TRY(expm1, x, exp(x))
  TRY(log, x, 1 / x)
  TRY(log2, x, 1 / (x * log(2.0)))
  TRY(log10, x, 1 / (x * log(10.0)))
  TRY(log1p, x, 1 / (1 + x))
  TRY(sqrt, x, 0.5 / sqrt(x))
  TRY(cbrt, x, cbrt(x) / (3 * x))
  TRY(erf, x, M_2_SQRTPI * exp(-x * x))
  TRY(erfc, x, -M_2_SQRTPI * exp(-x * x))
  // digamma(1.75)
  TRY(lgamma, y, 0.24747245354686116)
  TRY(tgamma, y, tgamma(y) * 0.24747245354686116)
  TRY(fabs, x, 1.0)
  TRY(fabs, -x, -1.0)
  TRY(floor, x, 0.0)
  TRY(ceil, x, 0.0)
  TRY(trunc, x, 0.0)
  TRY(round, x, 0.0)
  TRY(rint, x, 0.0)
  TRY(nearbyint, x, 0.0)
  TRY(logb, x, 0.0)
  return 0;
}
