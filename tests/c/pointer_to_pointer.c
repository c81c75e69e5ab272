// flags: -lm
// A matrix as an array of rows; its shadow is an array of shadow rows.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double bilinear(double **matrix, const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      sum += x[i] * matrix[i][j] * x[j];
  return sum;
}

int main(void) {
  enum { N = 3 };
  double *m[N], *dm[N], x[N] = {1, -2, 0.5}, dx[N] = {0};
  for (int i = 0; i < N; i++) {
    m[i] = malloc(N * sizeof(double));
    dm[i] = calloc(N, sizeof(double));
    for (int j = 0; j < N; j++)
      m[i][j] = i + 0.1 * j;
  }
  __enzyme_autodiff((void *)bilinear, enzyme_dup, m, dm, enzyme_dup, x, dx, enzyme_const, N);
  for (int i = 0; i < N; i++) {
    double expected = 0;
    for (int j = 0; j < N; j++) {
      CHECK_CLOSE(dm[i][j], x[i] * x[j], 1e-12);
      expected += (m[i][j] + m[j][i]) * x[j];
    }
    CHECK_CLOSE(dx[i], expected, 1e-12);
  }
  for (int i = 0; i < N; i++) {
    free(m[i]);
    free(dm[i]);
  }
  return 0;
}
