// flags: -lm
// The functions of <complex.h>, each mixed into a real number, against central differences.
#include "check.h"
#include <complex.h>

struct Two {
  double x, y;
};
extern struct Two __enzyme_autodiff(void *, ...);

#define DEFINE(name, value)                             \
  static double name(double x, double y) {              \
    double complex z = x + y * I, w = (value);          \
    return 0.75 * creal(w) - 0.5 * cimag(w);            \
  }

DEFINE(f_abs, cabs(z))
DEFINE(f_arg, carg(z))
DEFINE(f_exp, cexp(z))
DEFINE(f_log, clog(z))
DEFINE(f_sqrt, csqrt(z))
DEFINE(f_pow, cpow(z, 1.5 + 0.5 * I))
DEFINE(f_power_of, cpow(1.5 + 0.5 * I, z))
DEFINE(f_sin, csin(z))
DEFINE(f_cos, ccos(z))
DEFINE(f_tan, ctan(z))
DEFINE(f_sinh, csinh(z))
DEFINE(f_cosh, ccosh(z))
DEFINE(f_tanh, ctanh(z))
DEFINE(f_asin, casin(z))
DEFINE(f_acos, cacos(z))
DEFINE(f_atan, catan(z))
DEFINE(f_asinh, casinh(z))
DEFINE(f_acosh, cacosh(z))
DEFINE(f_atanh, catanh(z))

#define TRY(f)                                                              \
  {                                                                         \
    struct Two g = __enzyme_autodiff((void *)f, x, y);                      \
    CHECK_CLOSE(g.x, (f(x + h, y) - f(x - h, y)) / (2 * h), 1e-7);          \
    CHECK_CLOSE(g.y, (f(x, y + h) - f(x, y - h)) / (2 * h), 1e-7);          \
  }

int main(void) {
  double x = 0.7, y = 0.45, h = 1e-6;
  TRY(f_abs)
  TRY(f_arg)
  TRY(f_exp)
  TRY(f_log)
  TRY(f_sqrt)
  TRY(f_pow)
  TRY(f_power_of)
  TRY(f_sin)
  TRY(f_cos)
  TRY(f_tan)
  TRY(f_sinh)
  TRY(f_cosh)
  TRY(f_tanh)
  TRY(f_asin)
  TRY(f_acos)
  TRY(f_atan)
  TRY(f_asinh)
  TRY(f_acosh)
  TRY(f_atanh)
  return 0;
}
