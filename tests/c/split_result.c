// flags: -lm
// Split mode of a function that returns a float: tape and result come back in a struct.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_out;

struct TapeAndResult {
  void *tape;
  double result;
};

extern struct TapeAndResult __enzyme_augmentfwd(void *, ...);
extern double __enzyme_reverse(void *, ...);

double scaled_norm(const double *x, double scale, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return scale * sqrt(sum);
}

int main(void) {
  double x[2] = {3, 4}, dx[2] = {0};
  struct TapeAndResult forward = __enzyme_augmentfwd((void *)scaled_norm, enzyme_dup, x, dx, enzyme_out, 2.0, enzyme_const, 2);
  CHECK_CLOSE(forward.result, 10.0, 1e-12);
  double dscale = __enzyme_reverse((void *)scaled_norm, enzyme_dup, x, dx, enzyme_out, 2.0, enzyme_const, 2, 0.5, forward.tape);
  CHECK_CLOSE(dscale, 2.5, 1e-12);
  CHECK_CLOSE(dx[0], 0.6, 1e-12);
  CHECK_CLOSE(dx[1], 0.8, 1e-12);
  return 0;
}
