// flags: -lm
// Functions called through pointers that the function itself chooses.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

typedef double (*Unary)(double);

static double twice(double x) { return 2 * x; }
static double squared(double x) { return x * x; }
static double sine(double x) { return sin(x); }

static const Unary table[3] = {twice, squared, sine};

static double apply(Unary f, double x) { return f(x); }

double chosen(double x, int which) { return apply(table[which], x) * x; }

double chain(double x, int n) {
  for (int i = 0; i < n; i++)
    x = table[i % 3](x);
  return x;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)chosen, 1.5, 0), 6.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)chosen, 1.5, 1), 3 * 2.25, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)chosen, 1.5, 2), sin(1.5) + 1.5 * cos(1.5), 1e-12);
  // sin((2x)²)
  CHECK_CLOSE(__enzyme_autodiff((void *)chain, 0.4, 3), cos(0.64) * 8 * 0.4, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)chain, 0.4, 1.0, 3), cos(0.64) * 8 * 0.4, 1e-12);
  return 0;
}
