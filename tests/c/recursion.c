// flags: -lm
// Recursion, single and mutual.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double power(double x, int n) {
  if (n == 0)
    return 1;
  double half = power(x, n / 2);
  return n % 2 ? half * half * x : half * half;
}

double even(double x, int n);
double odd(double x, int n) { return n == 0 ? x : sin(even(x, n - 1)); }
double even(double x, int n) { return n == 0 ? x : 2 * odd(x, n - 1); }

int main(void) {
  for (int n = 1; n < 12; n++)
    CHECK_CLOSE(__enzyme_autodiff((void *)power, 1.3, n), n * pow(1.3, n - 1), 1e-12);
  double h = 1e-6, expected = (even(0.3 + h, 6) - even(0.3 - h, 6)) / (2 * h);
  CHECK_CLOSE(__enzyme_autodiff((void *)even, 0.3, 6), expected, 1e-7);
  CHECK_CLOSE(__enzyme_fwddiff((void *)even, 0.3, 1.0, 6), expected, 1e-7);
  return 0;
}
