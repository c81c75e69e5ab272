// flags: -std=c23 -lm
// Attributes in brackets are C's, too.
#include "check.h"

double __enzyme_autodiff(void *, ...);

[[enzyme_inactive]] __attribute__((noinline)) double frozen(double x) { return x * 3; }
__attribute__((enzyme_inactive_noblock, noinline)) double frozen_too(double x) { return x * 5; }

double function(double x) { return x * x + frozen(x) + frozen_too(x); }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6, 1e-12);
  return 0;
}
