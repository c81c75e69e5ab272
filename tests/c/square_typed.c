// flags: -lm
// The entry point declared with a type of its own, and a name with a suffix.
#include "check.h"

extern double __enzyme_autodiff_cube(double (*)(double), double);
extern float __enzyme_autodiff_single(float (*)(float), float);

static double cube(double x) { return x * x * x; }
static float inverse(float x) { return 1.0f / x; }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff_cube(cube, 3.0), 27.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff_single(inverse, 2.0f), -0.25, 1e-6);
  return 0;
}
