// flags: -lm
// Globals and static locals as scratch memory: derivatives flow through them within a call.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static double scratch[8];
static double total;

static void prepare(double x, int n) {
  for (int i = 0; i < n; i++)
    scratch[i] = x * (i + 1);
}

static double cached(double x) {
  static double last;
  last = x * x;
  return last;
}

double function(double x, int n) {
  prepare(x, n);
  total = 0;
  for (int i = 0; i < n; i++)
    total += scratch[i] * scratch[i];
  return total + cached(x);
}

int main(void) {
  // (1 + 4 + 9 + 16)·2x + 2x
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.5, 4), 31.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 0.5, 1.0, 4), 31.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 2.0, 4), 124.0, 1e-12);
  return 0;
}
