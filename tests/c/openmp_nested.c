// flags: -fopenmp -lm
// A parallel matrix product: the rows run in parallel, and all threads read the same matrix.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

void product(double *c, const double *a, const double *b, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k < n; k++)
        sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
}

int main(void) {
  enum { N = 12 };
  static double a[N * N], b[N * N], c[N * N], da[N * N], db[N * N], dc[N * N];
  for (int i = 0; i < N * N; i++) {
    a[i] = sin(i);
    b[i] = cos(i);
    dc[i] = 1;
  }
  __enzyme_autodiff((void *)product, enzyme_dup, c, dc, enzyme_dup, a, da, enzyme_dup, b, db, enzyme_const, N);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++) {
      double row = 0, column = 0;
      for (int j = 0; j < N; j++) {
        row += b[k * N + j];
        column += a[j * N + i];
      }
      CHECK_CLOSE(da[i * N + k], row, 1e-12);
      CHECK_CLOSE(db[i * N + k], column, 1e-12);
    }
  return 0;
}
