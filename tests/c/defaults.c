// flags: -lm
// Without markers: pointers have shadows, floats are out, integers are constant.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double weighted(double *x, int n, double w, long stride) {
  double sum = 0;
  for (long i = 0; i < n; i += stride)
    sum += sin(w * x[i]);
  return sum;
}

int main(void) {
  double x[6] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, dx[6] = {0};
  double dw = __enzyme_autodiff((void *)weighted, x, dx, 6, 1.5, 2L);
  double expected = 0;
  for (int i = 0; i < 6; i += 2)
    expected += cos(1.5 * x[i]) * x[i];
  CHECK_CLOSE(dw, expected, 1e-12);
  for (int i = 0; i < 6; i++)
    CHECK_CLOSE(dx[i], i % 2 ? 0.0 : 1.5 * cos(1.5 * x[i]), 1e-12);
  return 0;
}
