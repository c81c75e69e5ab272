// flags: -lm
// Aligned memory, whose address comes back through a pointer to a pointer.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(const double *x, int n) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, n * sizeof(double)) != 0)
    return 0;
  double *copy = memory;
  for (int i = 0; i < n; i++)
    copy[i] = exp(x[i]);
  double product = 1;
  for (int i = 0; i < n; i++)
    product *= copy[i];
  free(memory);
  return product;
}

int main(void) {
  double x[4] = {0.1, 0.2, 0.3, 0.4}, dx[4] = {0};
  __enzyme_autodiff((void *)function, x, dx, 4);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dx[i], exp(1.0), 1e-12);
  return 0;
}
