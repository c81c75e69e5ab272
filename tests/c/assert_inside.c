// flags: -lm
// Assertions and early exits that are not taken.
#include "check.h"
#include <assert.h>

double __enzyme_autodiff(void *, ...);

double function(const double *x, int n) {
  assert(x != NULL);
  if (n < 0) {
    fprintf(stderr, "negative length\n");
    exit(3);
  }
  double sum = 0;
  for (int i = 0; i < n; i++) {
    assert(x[i] > 0 && "logarithm of what is not positive");
    sum += log(x[i]);
  }
  if (sum > 1e9)
    abort();
  return sum;
}

int main(void) {
  double x[3] = {1, 2, 4}, dx[3] = {0};
  __enzyme_autodiff((void *)function, x, dx, 3);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 1 / x[i], 1e-12);
  return 0;
}
