// flags: -lm
// The function to differentiate held in a variable, passed through functions and cast.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static double f(double x) { return x * x; }

static inline double gradient_of(double (*g)(double), double x) { return __enzyme_autodiff((void *)g, x); }

typedef double (*Function)(double);
static const Function held = f;

int main(void) {
  CHECK_CLOSE(gradient_of(f, 3.0), 6.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)held, 4.0), 8.0, 1e-12);
  void *pointer = (void *)(size_t)f;
  CHECK_CLOSE(__enzyme_autodiff(pointer, 5.0), 10.0, 1e-12);
  return 0;
}
