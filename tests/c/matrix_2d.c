// flags: -lm
// Arrays of arrays with fixed and with variable bounds.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_dupnoneed;
void __enzyme_autodiff(void *, ...);

#define N 3

void multiply(double a[N][N], double b[N][N], double c[N][N]) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      c[i][j] = 0;
      for (int k = 0; k < N; k++)
        c[i][j] += a[i][k] * b[k][j];
    }
}

double trace(int n, double a[n][n]) {
  double squared[n][n], sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      squared[i][j] = a[i][j] * a[j][i];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      sum += squared[i][j];
  return sum;
}

int main(void) {
  double a[N][N], b[N][N], c[N][N], da[N][N] = {{0}}, db[N][N] = {{0}}, dc[N][N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      a[i][j] = i + 2 * j;
      b[i][j] = 1 + i * j;
      dc[i][j] = 1;
    }
  __enzyme_autodiff((void *)multiply, enzyme_dup, a, da, enzyme_dup, b, db, enzyme_dup, c, dc);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++) {
      double row = 0, column = 0;
      for (int j = 0; j < N; j++) {
        row += b[k][j];
        column += a[j][i];
        CHECK_CLOSE(dc[i][j], 0, 0);
      }
      CHECK_CLOSE(da[i][k], row, 1e-12);
      CHECK_CLOSE(db[i][k], column, 1e-12);
    }
  double dt[N][N] = {{0}};
  __enzyme_autodiff((void *)trace, enzyme_const, N, enzyme_dup, a, dt);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      CHECK_CLOSE(dt[i][j], 2 * a[j][i], 1e-12);
  return 0;
}
