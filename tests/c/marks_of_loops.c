// flags: -lm
// Marks that say something of a loop: that it iterates to a fixed point, and how its states are to be kept. Derivatives are those of the loop without them.
#include "check.h"
#include <enzyme/checkpoint.h>

double __enzyme_autodiff(void *, ...);
void __enzyme_set_fixed_point(double reduction, int64_t most, void *control, ...);

#define MARKED(mark, name)                                                                         \
  double name(double a) {                                                                          \
    double x = 1, before;                                                                          \
    do {                                                                                           \
      mark;                                                                                        \
      before = x;                                                                                  \
      x = 0.5 * (x + a / x);                                                                       \
    } while (fabs(x - before) > 1e-15 * x);                                                        \
    return x * x * x;                                                                              \
  }

MARKED((void)0, plain)
MARKED(__enzyme_set_fixed_point(1e-30, (int64_t)-1, (void *)0, &x, (int64_t)sizeof(x)), fixed)

double logistic(double r, int n) {
  double x = 0.3;
#pragma enzyme checkpoint("revolve", 3)
  for (int i = 0; i < n; i++)
    x = r * x * (1 - x);
  return x;
}

int main(void) {
  CHECK_CLOSE(fixed(2.0), plain(2.0), 0);
  CHECK_CLOSE(__enzyme_autodiff((void *)fixed, 2.0), __enzyme_autodiff((void *)plain, 2.0), 1e-14);
  CHECK_CLOSE(__enzyme_autodiff((void *)fixed, 2.0), 1.5 * sqrt(2.0), 1e-12);
  double h = 1e-6, slope = (logistic(2.9 + h, 12) - logistic(2.9 - h, 12)) / (2 * h);
  CHECK_CLOSE(__enzyme_autodiff((void *)logistic, 2.9, 12), slope, 1e-6);
  return 0;
}
