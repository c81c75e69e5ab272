// flags: -lm
// restrict, const, alloca, bit fields, unsigned counters that count down.
#include "check.h"
#include <alloca.h>

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

struct Options {
  unsigned square : 1;
  unsigned power : 5;
  signed offset : 4;
};

double function(const double *restrict x, double *restrict out, size_t n, struct Options options) {
  double *scratch = alloca(n * sizeof *scratch);
  for (size_t i = n; i-- > 0;)
    scratch[i] = options.square ? x[i] * x[i] : x[i];
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    out[i] = scratch[n - 1 - i] + options.offset;
    sum += pow(scratch[i], options.power);
  }
  return sum;
}

int main(void) {
  double x[3] = {1, 2, 3}, dx[3] = {0}, out[3], dout[3] = {1, 10, 100};
  struct Options o = {1, 3, -2};
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_dup, out, dout, enzyme_const, (size_t)3, enzyme_const, o);
  double seeds[3] = {100, 10, 1};
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 6 * pow(x[i], 5) + seeds[i] * 2 * x[i], 1e-12);
  return 0;
}
