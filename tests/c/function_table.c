// flags: -lm
// A table of functions that the file only reads, though it is not declared constant.
#include "check.h"

extern int enzyme_const, enzyme_out;
double __enzyme_autodiff(void *, ...);

static double square(double x) { return x * x; }
static double cube(double x) { return x * x * x; }

static double (*table[])(double) = {square, cube, sin};

double call(double x, int which) { return table[which](x) * x; }

double alternate(double x, int count) {
  double (*function)(double) = square, sum = 0;
  for (int i = 0; i < count; i++) {
    sum += function(x + i);
    function = i % 2 ? square : cube;
  }
  return sum;
}

int main(void) {
  double x = 1.2;
  CHECK_CLOSE(__enzyme_autodiff((void *)call, enzyme_out, x, enzyme_const, 0), 3 * x * x, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)call, enzyme_out, x, enzyme_const, 1), 4 * x * x * x, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)call, enzyme_out, x, enzyme_const, 2), sin(x) + x * cos(x), 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)alternate, enzyme_out, x, enzyme_const, 3), 2 * x + 3 * (x + 1) * (x + 1) + 2 * (x + 2), 1e-12);
  return 0;
}
