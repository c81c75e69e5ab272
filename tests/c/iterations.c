// flags: -lm
// An approximation says how many more terms its derivative needs: each derivative adds one to the number.
#include "check.h"

unsigned long __enzyme_iter(unsigned long, unsigned long);
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
void __enzyme_double(void *, unsigned long);

// x^n for all n up to the limit.
double powers(double x) {
  double sum = 0, power = 1;
  unsigned long limit = __enzyme_iter(2, 1);
  __enzyme_double(&sum, sizeof sum);
  for (unsigned long i = 0; i <= limit; i++) {
    sum += power;
    power *= x;
  }
  return sum;
}

double first(double x) { return __enzyme_autodiff((void *)powers, x); }
double second(double x) { return __enzyme_autodiff((void *)first, x); }
double forward(double x) { return __enzyme_fwddiff((void *)powers, x, 1.0); }

int main(void) {
  double x = 0.5;
  CHECK_CLOSE(powers(x), 1 + x + x * x, 1e-12);
  CHECK_CLOSE(first(x), 1 + 2 * x + 3 * x * x, 1e-12);
  CHECK_CLOSE(forward(x), 1 + 2 * x + 3 * x * x, 1e-12);
  CHECK_CLOSE(second(x), 2 + 6 * x + 12 * x * x, 1e-12);
  return 0;
}
