// flags: -lm
// A static local that counts calls: an integer, updated by the primal once for each derivative.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static int count(void) {
  static int calls = 0;
  return ++calls;
}

double function(double x) {
  int k = count();
  return k * x * x;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 12.0, 1e-12);
  CHECK(count() == 3);
  return 0;
}
