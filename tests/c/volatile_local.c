// flags: -lm
// Values that are volatile but inactive.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static volatile int verbose = 0;

double function(double x) {
  volatile int count = 3;
  double product = 1;
  for (int i = 0; i < count; i++)
    product *= x;
  if (verbose)
    printf("%f\n", product);
  return product;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 2.0), 12.0, 1e-12);
  return 0;
}
