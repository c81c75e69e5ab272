// flags: -lm
// Functions are called through pointers in globals, which the program changes between derivatives.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double square(double x) { return x * x; }
double cube(double x) { return x * x * x; }

double (*activation)(double) = square;

struct stage {
  double (*function)(double);
  double scale;
} stages[2] = {{square, 1}, {cube, 2}};

double once(double x) { return activation(x); }

double all(double x) {
  for (int i = 0; i < 2; i++)
    x = stages[i].scale * stages[i].function(x);
  return x;
}

__attribute__((noinline)) void choose(double (*function)(double)) {
  activation = function;
  stages[0].function = function;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)once, 3.0), 6, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)all, 1.5), 2 * 6 * pow(1.5, 5), 1e-12);
  choose(cube);
  CHECK_CLOSE(__enzyme_autodiff((void *)once, 3.0), 27, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)once, 3.0, 1.0), 27, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)all, 1.5), 2 * 9 * pow(1.5, 8), 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)all, 1.5, 1.0), 2 * 9 * pow(1.5, 8), 1e-12);
  return 0;
}
