// refused: error: too few arguments for 'product': it takes 2, this call passes 1 [FZ0602]
#include "check.h"

double __enzyme_autodiff(void *, ...);

double product(double x, double y) { return x * y; }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)product, 3.0), 5.0, 1e-12); // here
  return 0;
}
