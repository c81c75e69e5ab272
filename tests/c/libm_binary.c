// flags: -lm
// The functions of libm with two or three floats.
#include "check.h"

struct Two {
  double x, y;
};
struct Three {
  double x, y, z;
};
struct TwoSingles {
  float x, y;
};
extern struct Two __enzyme_autodiff(void *, ...);
extern struct Three __enzyme_autodiff3(void *, ...);
extern struct TwoSingles __enzyme_autodiff_single(void *, ...);

#define DEFINE(name)                                                       \
  static double d_##name(double x, double y) { return name(x, y); }        \
  static float s_##name(float x, float y) { return name##f(x, y); }

DEFINE(atan2) DEFINE(pow) DEFINE(hypot) DEFINE(fmod) DEFINE(remainder) DEFINE(fdim) DEFINE(fmin) DEFINE(fmax) DEFINE(copysign) DEFINE(nextafter)

static double d_fma(double x, double y, double z) { return fma(x, y, z); }

#define TRY(name, a, b, dx, dy)                                                                       \
  {                                                                                                   \
    struct Two d = __enzyme_autodiff((void *)d_##name, (double)(a), (double)(b));                     \
    CHECK_CLOSE(d.x, dx, 1e-12);                                                                      \
    CHECK_CLOSE(d.y, dy, 1e-12);                                                                      \
    struct TwoSingles s = __enzyme_autodiff_single((void *)s_##name, (float)(a), (float)(b));         \
    CHECK_CLOSE(s.x, dx, 2e-6);                                                                       \
    CHECK_CLOSE(s.y, dy, 2e-6);                                                                       \
  }

int main(void) {
  double x = 1.25, y = 0.75;
  TRY(atan2, x, y, y / (x * x + y * y), -x / (x * x + y * y))
  TRY(pow, x, y, y * pow(x, y - 1), pow(x, y) * log(x))
  TRY(hypot, x, y, x / hypot(x, y), y / hypot(x, y))
  TRY(fmod, 7.5, 2.0, 1.0, -3.0)
  TRY(fmod, -7.5, 2.0, 1.0, 3.0)
  TRY(remainder, 7.5, 2.0, 1.0, -4.0)
  TRY(fdim, x, y, 1.0, -1.0)
  TRY(fdim, y, x, 0.0, 0.0)
  TRY(fmin, x, y, 0.0, 1.0)
  TRY(fmax, x, y, 1.0, 0.0)
  TRY(copysign, x, -y, -1.0, 0.0)
  TRY(copysign, -x, -y, 1.0, 0.0)
  TRY(nextafter, x, y, 1.0, 0.0)
  struct Three t = __enzyme_autodiff3((void *)d_fma, 2.0, 3.0, 4.0);
  CHECK_CLOSE(t.x, 3.0, 1e-12);
  CHECK_CLOSE(t.y, 2.0, 1e-12);
  CHECK_CLOSE(t.z, 1.0, 1e-12);
  return 0;
}
