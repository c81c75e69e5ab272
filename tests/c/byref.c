// flags: -lm
// Arguments given by reference to the entry point.
#include "check.h"

extern int enzyme_byref, enzyme_out;
double __enzyme_autodiff(void *, ...);

double square(double x) { return x * x; }

int main(void) {
  double x = 3;
  CHECK_CLOSE(__enzyme_autodiff((void *)square, enzyme_byref, (int)sizeof(double), enzyme_out, &x), 6.0, 1e-12);
  return 0;
}
