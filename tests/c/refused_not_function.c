// refused: error: the first argument of '__enzyme_autodiff' is not a known function [FZ0601]
#include "check.h"

double __enzyme_autodiff(void *, ...);

double square(double x) { return x * x; }
double cube(double x) { return x * x * x; }

int main(int argc, char **argv) {
  (void)argv;
  double (*f)(double) = argc > 1 ? square : cube;
  CHECK_CLOSE(__enzyme_autodiff((void *)f, 3.0), 6.0, 1e-12); // here
  return 0;
}
