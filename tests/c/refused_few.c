// refused: error: too few arguments are given for 'product': it takes 2, this call gives 1 [FZ0602]
#include "check.h"

double __enzyme_autodiff(void *, ...);

double product(double x, double y) { return x * y; }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)product, 3.0), 5.0, 1e-12); // here
  return 0;
}
