// flags: -lm -march=native
// The largest of few numbers, in a loop that is too long to be unrolled and short enough that LLVM 22 vectorises it with masks, and then loses its last iterations.
#include "check.h"

extern int enzyme_const;
double __enzyme_autodiff(void *, ...);

static double scaled_largest(const double *x, double g, double h, double y) {
  double max = -INFINITY;
  for (int i = 0; i < 13; i++) {
    double v = x[i];
    v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g;
    v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g;
    v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g;
    v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g; v = v * 2.0 + g; v = v * 0.5 + g;
    max = fmax(max, v / h);
  }
  return max * y;
}

int main(void) {
  double x[13];
  for (int i = 0; i < 13; i++) x[i] = 1.0 + i;
  double dy = __enzyme_autodiff((void *)scaled_largest, enzyme_const, x, enzyme_const, 0.0, enzyme_const, 2.0, 3.0);
  CHECK_CLOSE(dy, 6.5, 1e-12);
  return 0;
}
