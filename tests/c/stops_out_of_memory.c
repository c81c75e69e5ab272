// flags: -lm; stops: Ferrozyme: a derivative is out of memory for its tape, or for shadows of the program's allocations [FZ0717]
// The tape of a loop with more iterations than there is memory for; the derivative stops before the loop begins.
#include "check.h"

double __enzyme_autodiff(void *, ...);
extern int enzyme_const;

double function(double x, long n) {
  for (long i = 0; i < n; i++)
    x = sin(x);
  return x;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 2.0, enzyme_const, 1L), cos(2.0), 1e-12);
  printf("%g\n", __enzyme_autodiff((void *)function, 2.0, enzyme_const, 1L << 58));
  return 0;
}
