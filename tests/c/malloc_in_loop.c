// flags: -lm
// Memory allocated and freed in every iteration.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x, int n) {
  double value = x;
  for (int i = 1; i <= n; i++) {
    double *scratch = malloc(i * sizeof *scratch);
    for (int j = 0; j < i; j++)
      scratch[j] = sin(value + j);
    double sum = 0;
    for (int j = 0; j < i; j++)
      sum += scratch[j] * scratch[j];
    value = value * 0.5 + sum / i;
    free(scratch);
  }
  return value;
}

int main(void) {
  double h = 1e-6;
  for (int n = 0; n < 6; n++) {
    double expected = (function(0.7 + h, n) - function(0.7 - h, n)) / (2 * h);
    CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.7, n), expected, 1e-7);
  }
  return 0;
}
