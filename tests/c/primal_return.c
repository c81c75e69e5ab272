// flags: -lm
// Results together with derivatives.
#include "check.h"

extern int enzyme_primal_return, enzyme_dup, enzyme_out;

struct ValueAndSlope {
  double value, slope;
};

extern struct ValueAndSlope __enzyme_fwddiff(void *, ...);
extern struct ValueAndSlope __enzyme_autodiff(void *, ...);

double function(double x) { return x * exp(x); }

int main(void) {
  struct ValueAndSlope f = __enzyme_fwddiff((void *)function, enzyme_primal_return, enzyme_dup, 1.5, 1.0);
  CHECK_CLOSE(f.value, 1.5 * exp(1.5), 1e-12);
  CHECK_CLOSE(f.slope, 2.5 * exp(1.5), 1e-12);
  struct ValueAndSlope r = __enzyme_autodiff((void *)function, enzyme_primal_return, enzyme_out, 1.5);
  CHECK_CLOSE(r.value, 1.5 * exp(1.5), 1e-12);
  CHECK_CLOSE(r.slope, 2.5 * exp(1.5), 1e-12);
  return 0;
}
