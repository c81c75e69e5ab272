// flags: -lm; output: x = 3.00, step 0: 9.0
// Output from within the function: inactive, and made once.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x) {
  double y = x * x;
  printf("x = %.2f, step %d: %.1f", x, 0, y);
  puts("");
  if (y < 0)
    fprintf(stderr, "cannot be %f\n", y);
  fflush(stdout);
  return y;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6.0, 1e-12);
  return 0;
}
