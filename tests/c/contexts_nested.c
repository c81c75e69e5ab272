// flags: -lm
// The derivative of a derivative, each with shadows of its own.
#include "check.h"

void *__enzyme_context(int);
void *__enzyme_shadow(void *, void *, int);
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_context;

double scale = 2;
static double powers[3] = {1, 0.5, 0.25};

static double loss(double x) { return scale * (powers[0] * x + powers[1] * x * x + powers[2] * x * x * x); }

static double slope(double x) {
  void *inner = __enzyme_context(1);
  double along = __enzyme_autodiff((void *)loss, enzyme_context, inner, x);
  return along + *(double *)__enzyme_shadow(inner, &powers[1], 0);
}

int main(void) {
  void *outer = __enzyme_context(1);
  double *dscale = __enzyme_shadow(outer, &scale, 0), *dpowers = __enzyme_shadow(outer, powers, 0), x = 3;
  // slope = scale (powers[0] + 2 powers[1] x + 3 powers[2] x²) + scale x²
  CHECK_CLOSE(__enzyme_fwddiff((void *)slope, enzyme_context, outer, x, 1.0), 2 * (1 + 6 * 0.25 * x) + 2 * 2 * x, 1e-12);
  *dscale = 1;
  CHECK_CLOSE(__enzyme_fwddiff((void *)slope, enzyme_context, outer, x, 0.0), 1 + x + 0.75 * x * x + x * x, 1e-12);
  // Without the context, nothing comes from there.
  CHECK_CLOSE(__enzyme_fwddiff((void *)loss, x, 0.0), 0, 0);
  *dscale = 0;
  dpowers[2] = 1;
  CHECK_CLOSE(__enzyme_fwddiff((void *)slope, enzyme_context, outer, x, 0.0), 2 * 3 * x * x, 1e-12);
  return 0;
}
