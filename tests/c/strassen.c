// flags: -lm
// Strassen's product: a recursion on blocks that functions copy row by row into memory that they return.
#include "differences.h"

static double *combined(const double *a, const double *b, int n, double scale) {
  double *c = malloc(n * n * sizeof *c);
  for (int i = 0; i < n * n; i++)
    c[i] = a[i] + scale * b[i];
  return c;
}

static double *block(const double *a, int n, int row, int column) {
  int half = n / 2;
  double *b = malloc(half * half * sizeof *b);
  for (int i = 0; i < half; i++)
    memcpy(b + i * half, a + (i + row * half) * n + column * half, half * sizeof *b);
  return b;
}

static double *product(const double *a, const double *b, int n) {
  double *c = malloc(n * n * sizeof *c);
  if (n == 1) {
    c[0] = a[0] * b[0];
    return c;
  }
  int half = n / 2;
  double *as[4], *bs[4];
  for (int k = 0; k < 4; k++) {
    as[k] = block(a, n, k / 2, k % 2);
    bs[k] = block(b, n, k / 2, k % 2);
  }
  double *s[10] = {combined(as[0], as[3], half, 1), combined(bs[0], bs[3], half, 1), combined(as[2], as[3], half, 1), combined(bs[1], bs[3], half, -1),
                   combined(bs[2], bs[0], half, -1), combined(as[0], as[1], half, 1), combined(as[2], as[0], half, -1), combined(bs[0], bs[1], half, 1),
                   combined(as[1], as[3], half, -1), combined(bs[2], bs[3], half, 1)};
  double *m[7] = {product(s[0], s[1], half), product(s[2], bs[0], half), product(as[0], s[3], half), product(as[3], s[4], half),
                  product(s[5], bs[3], half), product(s[6], s[7], half), product(s[8], s[9], half)};
  for (int i = 0; i < half; i++)
    for (int j = 0; j < half; j++) {
      int k = i * half + j;
      c[i * n + j] = m[0][k] + m[3][k] - m[4][k] + m[6][k];
      c[i * n + j + half] = m[2][k] + m[4][k];
      c[(i + half) * n + j] = m[1][k] + m[3][k];
      c[(i + half) * n + j + half] = m[0][k] - m[1][k] + m[2][k] + m[5][k];
    }
  for (int k = 0; k < 10; k++)
    free(s[k]);
  for (int k = 0; k < 7; k++)
    free(m[k]);
  for (int k = 0; k < 4; k++) {
    free(as[k]);
    free(bs[k]);
  }
  return c;
}

static double function(double *x, int n) {
  double a[16], b[16], sum = 0;
  for (int i = 0; i < 16; i++) {
    a[i] = x[i % n] + 0.1 * i;
    b[i] = 0.5 * x[(3 * i) % n];
  }
  double *c = product(a, b, 4);
  for (int i = 0; i < 16; i++)
    sum += 0.1 * c[i] * c[i];
  free(c);
  return sum;
}
