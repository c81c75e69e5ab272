// flags: -lm
// Nested triangular loops that overwrite what they read: Cholesky's factorisation and the log determinant.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

enum { N = 4 };

double log_determinant(const double *matrix, int n) {
  double l[N * N];
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      l[i * n + j] = matrix[i * n + j];
  for (int j = 0; j < n; j++) {
    for (int k = 0; k < j; k++)
      for (int i = j; i < n; i++)
        l[i * n + j] -= l[i * n + k] * l[j * n + k];
    double root = sqrt(l[j * n + j]);
    for (int i = j; i < n; i++)
      l[i * n + j] /= root;
  }
  double sum = 0;
  for (int j = 0; j < n; j++)
    sum += 2 * log(l[j * n + j]);
  return sum;
}

int main(void) {
  double a[N * N], da[N * N] = {0};
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      a[i * N + j] = i == j ? 4.0 + i : 1.0 / (1 + i + j);
  __enzyme_autodiff((void *)log_determinant, enzyme_dup, a, da, enzyme_const, N);
  double h = 1e-6;
  for (int k = 0; k < N * N; k++) {
    double kept = a[k];
    a[k] = kept + h;
    double up = log_determinant(a, N);
    a[k] = kept - h;
    double down = log_determinant(a, N);
    a[k] = kept;
    CHECK_CLOSE(da[k], (up - down) / (2 * h), 1e-8);
  }
  return 0;
}
