// refused: error: unknown marker 'enzyme_duplicate' [FZ0604]
#include "check.h"

extern int enzyme_duplicate;
double __enzyme_autodiff(void *, ...);

double square(double *x) { return *x * *x; }

int main(void) {
  double x = 3, dx = 0;
  __enzyme_autodiff((void *)square, enzyme_duplicate, &x, &dx); // here
  return 0;
}
