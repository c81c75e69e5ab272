// flags: -lm; refused: error: cannot differentiate a call with variable arguments [FZ0505]
// Who hands a place to a function that reads shows nothing, but writes.
#include "check.h"

extern int enzyme_const, enzyme_out;
double __enzyme_autodiff(void *, ...);

int get(const char *format, double *y, ...) { return sscanf("5", format, y); } // here

int (*volatile getter)(const char *, double *, ...) = get;

double function(double x, const char *format) {
  double y = x * x;
  if (getter != get)
    return 0;
  get(format, &y, 1);
  return y * x;
}

int main(int count, char **arguments) {
  (void)count;
  CHECK_CLOSE(__enzyme_autodiff((void *)function, enzyme_out, 2.0, enzyme_const, arguments[0]), 5.0, 1e-12);
  return getter("", 0) > 2;
}
