// flags: -lm; stops: [FZ0715]
// One of the functions that may be meant has no derivative. The program stops where it is called.
#include "check.h"

extern int enzyme_const;
double __enzyme_autodiff(void *, ...);

static double square(double x) { return x * x; }
static double noisy(double x) {
  __asm__("addsd %0, %0" : "+x"(x));
  return x;
}

double function(double (*apply)(double), double x) { return apply(x) * x; }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, enzyme_const, square, 2.0), 12, 1e-12);
  __enzyme_autodiff((void *)function, enzyme_const, noisy, 2.0);
  return 0;
}
