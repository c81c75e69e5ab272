// flags: -lm
// Memory allocated in a loop, kept in an array of pointers, and freed in another loop.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(const double *x, int n) {
  double **rows = malloc(n * sizeof *rows);
  for (int i = 0; i < n; i++) {
    rows[i] = malloc((i + 1) * sizeof **rows);
    for (int j = 0; j <= i; j++)
      rows[i][j] = x[i] * x[j];
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      sum += rows[i][j] * (i + 1);
  for (int i = 0; i < n; i++)
    free(rows[i]);
  free(rows);
  return sum;
}

int main(void) {
  enum { N = 5 };
  double x[N] = {0.5, -1, 2, 0.25, 3}, dx[N] = {0};
  __enzyme_autodiff((void *)function, x, dx, N);
  for (int k = 0; k < N; k++) {
    double expected = 0;
    for (int j = 0; j <= k; j++)
      expected += (k + 1) * x[j];
    for (int i = k; i < N; i++)
      expected += (i + 1) * x[i];
    CHECK_CLOSE(dx[k], expected, 1e-12);
  }
  return 0;
}
