// flags: -lm
// Attributes on declarations, which reach the compiler as annotations.
#include "check.h"

#define ENZYME_INACTIVE __attribute__((annotate("enzyme_inactive")))

double __enzyme_autodiff(void *, ...);

ENZYME_INACTIVE __attribute__((noinline)) double frozen(double x) { return x * 3; }

double function(double x) { return x * frozen(x); }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 2.0), 6.0, 1e-12);
  return 0;
}
