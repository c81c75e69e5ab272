// flags: -lm
// Second and third derivatives by nested calls: every mixture of modes.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double f(double x) { return sin(x) * x; }

double reverse(double x) { return __enzyme_autodiff((void *)f, x); }
double forward(double x) { return __enzyme_fwddiff((void *)f, x, 1.0); }

double reverse_over_reverse(double x) { return __enzyme_autodiff((void *)reverse, x); }
double forward_over_reverse(double x) { return __enzyme_fwddiff((void *)reverse, x, 1.0); }
double reverse_over_forward(double x) { return __enzyme_autodiff((void *)forward, x); }
double forward_over_forward(double x) { return __enzyme_fwddiff((void *)forward, x, 1.0); }

double third(double x) { return __enzyme_fwddiff((void *)reverse_over_reverse, x, 1.0); }

int main(void) {
  double x = 0.7, first = cos(x) * x + sin(x), second = 2 * cos(x) - x * sin(x), three = -3 * sin(x) - x * cos(x);
  CHECK_CLOSE(reverse(x), first, 1e-12);
  CHECK_CLOSE(forward(x), first, 1e-12);
  CHECK_CLOSE(reverse_over_reverse(x), second, 1e-12);
  CHECK_CLOSE(forward_over_reverse(x), second, 1e-12);
  CHECK_CLOSE(reverse_over_forward(x), second, 1e-12);
  CHECK_CLOSE(forward_over_forward(x), second, 1e-12);
  CHECK_CLOSE(third(x), three, 1e-12);
  return 0;
}
