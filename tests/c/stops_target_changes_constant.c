// flags: -lm; stops: changes memory of an argument without a shadow [FZ0716]
// One of the functions that may be meant writes to memory that has no shadow.
#include "check.h"

extern int enzyme_const;
double __enzyme_autodiff(void *, ...);

static double scaled(double *state, double x) { return state[0] * x; }
static double kept(double *state, double x) {
  state[0] = x;
  return x;
}

double function(double (*apply)(double *, double), double *state, double x) { return apply(state, x) * state[0]; }

int main(void) {
  double state[1] = {3};
  CHECK_CLOSE(__enzyme_autodiff((void *)function, enzyme_const, scaled, enzyme_const, state, 2.0), 9, 1e-12);
  __enzyme_autodiff((void *)function, enzyme_const, kept, enzyme_const, state, 2.0);
  return 0;
}
