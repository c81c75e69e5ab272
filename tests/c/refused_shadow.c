// refused: error: the shadow of argument 1 of 'square' is missing [FZ0603]
#include "check.h"

extern int enzyme_dup;
double __enzyme_autodiff(void *, ...);

double square(double *x) { return *x * *x; }

int main(void) {
  double x = 3;
  __enzyme_autodiff((void *)square, enzyme_dup, &x); // here
  return 0;
}
