// flags: -lm
// Functions that are given as constants, and shadows of functions' addresses that are asked for.
#include "check.h"

extern int enzyme_const, enzyme_dup, enzyme_out;

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
void *__enzyme_virtualreverse(void *);

static double square(double x) { return x * x; }

static double cube(double x) { return x * x * x; }

double product(double (*f)(double), const double *x) { return f(x[0]) * f(x[0] + 1) * x[1]; }

typedef struct {
  double (*function)(double);
  double factor;
} Scaled;

double scaled(Scaled *s, double x) { return s->function(x) * s->factor; }

int main(void) {
  double x[2] = {2, 5}, dx[2] = {0};
  __enzyme_autodiff((void *)product, enzyme_const, square, enzyme_dup, x, dx);
  CHECK_CLOSE(dx[0], (2 * 2 * 9 + 4 * 6) * 5, 1e-12);
  CHECK_CLOSE(dx[1], 36, 1e-12);
  double v[2] = {1, 0};
  CHECK_CLOSE(__enzyme_fwddiff((void *)product, enzyme_const, cube, enzyme_dup, x, v), (12 * 27 + 8 * 27) * 5, 1e-12);

  Scaled s = {cube, 3}, ds = {0, 0};
  ds.function = (double (*)(double))__enzyme_virtualreverse((void *)cube);
  CHECK_CLOSE(__enzyme_autodiff((void *)scaled, enzyme_dup, &s, &ds, enzyme_out, 2.0), 36, 1e-12);
  CHECK_CLOSE(ds.factor, 8, 1e-12);
  return 0;
}
