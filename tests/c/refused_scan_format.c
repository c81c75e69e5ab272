// refused: error: cannot differentiate a call with variable arguments [FZ0505]
// What a format does that is made while the program runs is not known, and the variable would keep its derivative.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x) {
  double y = x * x;
  char format[8] = "%lf";
  if (x > 1)
    format[1] = 's';
  sscanf("5", format, &y); // here
  return y * y;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 0.0, 1e-12);
  return 0;
}
