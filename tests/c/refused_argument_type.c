// refused: error: argument 1 of 'square' is of type 'double', but the value in the call is of type 'int' [FZ0607]
#include <stdio.h>

double __enzyme_autodiff(void *, ...);
double square(double x) { return x * x; }

int main(void) {
  printf("%g\n", __enzyme_autodiff((void *)square, 3)); // here
  return 0;
}
