// refused: error: cannot differentiate a computation in 'long double' [FZ0507]
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x) {
  long double y = x;
  for (int i = 0; i < 3; i++)
    y = y * x + 1.0L;
  return (double)y; // here
}

int main(void) {
  double x = 0.5;
  CHECK_CLOSE(__enzyme_autodiff((void *)function, x), 4 * x * x * x + 2 * x + 1, 1e-12);
  return 0;
}
