// flags: -lm
// Memory that is released at the end, on a path that may have made none: shadows are read before they are released, whatever the optimiser makes of it.
#include "check.h"
#include <string.h>

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

double function(double *x, int n) {
  float *a = 0, *b = 0, s = 0;
  if (n) {
    a = malloc(n * sizeof(float));
    b = malloc(n * sizeof(float));
    for (int i = 0; i < n; i++)
      a[i] = (float)x[i];
    memcpy(b, a, n * sizeof(float));
    for (int i = 0; i < n; i++)
      s += b[i] * b[i];
  }
  free(b);
  free(a);
  return s;
}

int main(void) {
  double x[40], dx[40];
  for (int n = 0; n <= 40; n++) {
    // What is released is given out again, with other contents.
    void *dirty = malloc(n * sizeof(float) + 1);
    memset(dirty, 0x7f, n * sizeof(float) + 1);
    free(dirty);
    for (int i = 0; i < n; i++) {
      x[i] = i + 1;
      dx[i] = 0;
    }
    __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_const, n);
    for (int i = 0; i < n; i++)
      CHECK_CLOSE(dx[i], 2 * x[i], 1e-6);
  }
  return 0;
}
