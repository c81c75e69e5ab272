// flags: -lm
// A loop over an array, also with a length that is known only at run time, in both modes.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double sum_of_squares(const double *x, long n) {
  double sum = 0;
  for (long i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sum;
}

int main(int argc, char **argv) {
  (void)argv;
  long n = 10 * argc;
  double *x = malloc(n * sizeof *x), *dx = calloc(n, sizeof *dx);
  for (long i = 0; i < n; i++)
    x[i] = i * 0.5;
  __enzyme_autodiff((void *)sum_of_squares, x, dx, n);
  for (long i = 0; i < n; i++)
    CHECK_CLOSE(dx[i], i, 1e-12);
  double squares = sum_of_squares(x, n);
  CHECK_CLOSE(__enzyme_fwddiff((void *)sum_of_squares, x, dx, n), 4 * squares, 1e-12);
  free(x);
  free(dx);
  return 0;
}
