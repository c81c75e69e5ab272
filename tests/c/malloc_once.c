// flags: -lm
// Memory allocated, filled, read and freed within the function.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(const double *x, int n) {
  double *squares = malloc(n * sizeof *squares);
  double *running = calloc(n + 1, sizeof *running);
  for (int i = 0; i < n; i++)
    squares[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    running[i + 1] = running[i] + squares[i];
  double result = running[n] * running[n / 2];
  free(squares);
  free(running);
  return result;
}

int main(void) {
  double x[6], dx[6] = {0};
  for (int i = 0; i < 6; i++)
    x[i] = 0.5 * i + 1;
  __enzyme_autodiff((void *)function, x, dx, 6);
  for (int i = 0; i < 6; i++) {
    double whole = 0, half = 0;
    for (int j = 0; j < 6; j++) {
      whole += x[j] * x[j];
      if (j < 3)
        half += x[j] * x[j];
    }
    CHECK_CLOSE(dx[i], 2 * x[i] * (half + (i < 3 ? whole : 0)), 1e-12);
  }
  return 0;
}
