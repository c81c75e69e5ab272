// refused: error: this function both prints and parses numbers, and a number that is parsed from its own text would have no derivative [FZ0512]
#include <stdio.h>
#include <stdlib.h>

double __enzyme_autodiff(void *, ...);

double rounded(double x) {
  char text[32];
  snprintf(text, sizeof text, "%.3f", x);
  return strtod(text, 0) * x; // here
}

int main(void) {
  printf("%g\n", __enzyme_autodiff((void *)rounded, 1.3));
  return 0;
}
