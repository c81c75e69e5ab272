// flags: -lm; with: parts/unknown_target.c; stops: Ferrozyme: a derivative called an unknown function through a pointer: no code with a derivative takes its address [FZ0714]
// A function that another file made known while the program runs: nobody could make a derivative of it.
#include "check.h"

extern int enzyme_const;
double __enzyme_autodiff(void *, ...);
void *choose(void);

static double square(double x) { return x * x; }

double function(double (*apply)(double), double x) { return apply(x) * x; }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, enzyme_const, square, 2.0), 12, 1e-12);
  __enzyme_autodiff((void *)function, enzyme_const, choose(), 2.0);
  return 0;
}
