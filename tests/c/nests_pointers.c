// flags: -lm
// Matrix products in C.
#include "nests.h"

// raised: 3
void with_restrict(const double *restrict a, const double *restrict b, double *restrict c, int m, int k, int n) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += a[i * k + l] * b[l * n + j];
      c[i * n + j] = sum;
    }
}
GRADIENT(with_restrict)

// The arrays may overlap: a test before each nest decides between the product and the loops.
// raised: 3
// loops: no product of two matrices
void without_restrict(const double *a, const double *b, double *c, int m, int k, int n) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += a[i * k + l] * b[j * k + l];
      c[i * n + j] = sum;
    }
}
GRADIENT(without_restrict)

// raised: 3
void sums_in_memory(const double *restrict a, const double *restrict b, double *restrict c, int m, int k, int n) {
  for (int i = 0; i < m; i++)
    for (int l = 0; l < k; l++)
      for (int j = 0; j < n; j++)
        c[i * n + j] += a[i * k + l] * b[l * n + j];
}
GRADIENT(sums_in_memory)

// raised: 0
// loops: not an array with one stride for each loop
void moving_pointers(const double *restrict a, const double *restrict b, double *restrict c, int m, int k, int n) {
  for (int i = 0; i < m; i++, a += k) {
    const double *column = b;
    for (int j = 0; j < n; j++) {
      const double *row = a;
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += *row++ * *column++;
      *c++ = sum;
    }
  }
}
GRADIENT(moving_pointers)

// raised: 3
void variable_length(const double *restrict pa, const double *restrict pb, double *restrict pc, int m, int k, int n) {
  const double(*a)[k] = (const double(*)[k])pa;
  const double(*b)[n] = (const double(*)[n])pb;
  double(*c)[n] = (double(*)[n])pc;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      c[i][j] = 0;
      for (int l = 0; l < k; l++)
        c[i][j] += a[i][l] * b[l][j];
    }
}
GRADIENT(variable_length)

// raised: 3
void fixed_rows(const double *restrict pa, const double *restrict pb, double *restrict pc, int m, int k, int n) {
  const double(*a)[50] = (const double(*)[50])pa;
  const double(*b)[40] = (const double(*)[40])pb;
  double(*c)[30] = (double(*)[30])pc;
  for (int l = 0; l < k; l++)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++)
        c[i][j] += 0.5 * a[i][l] * b[l][j];
}
GRADIENT(fixed_rows)

struct matrix {
  const double *elements;
  int rows, columns;
};

// raised: 3
void structures(const double *restrict pa, const double *restrict pb, double *restrict c, int m, int k, int n) {
  struct matrix a = {pa, m, k}, b = {pb, k, n};
  for (int i = 0; i < a.rows; i++)
    for (int j = 0; j < b.columns; j++) {
      double sum = 0;
      for (int l = 0; l < a.columns; l++)
        sum += a.elements[i * a.columns + l] * b.elements[l * b.columns + j];
      c[i * n + j] = sum;
    }
}
GRADIENT(structures)

// raised: 2
void bias(const double *restrict a, const double *restrict b, double *restrict c, int m, int k, int n) {
  const double *bias = b + k * n;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = bias[j];
      for (int l = 0; l < k; l++)
        sum += a[i * k + l] * b[l * n + j];
      c[i * n + j] = sum;
    }
}
GRADIENT(bias)

// ---- near misses

// The result overlaps a factor: the loops run as they are written.
// raised: 0
// loops: no product of two matrices
void overlapping(const double *a, const double *b, double *c, int m, int k, int n) {
  (void)a;
  const double *rows = c + n;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += rows[i * k + l] * b[l * n + j];
      c[i * n + j] = sum * 0.1;
    }
}
GRADIENT(overlapping)

// Rows that overlap: found out when the program runs.
// raised: 3
void short_rows(const double *restrict a, const double *restrict b, double *restrict c, int m, int k, int n) {
  int distance = n / 2;
  for (int i = 0; i < m; i++)
    for (int l = 0; l < k; l++)
      for (int j = 0; j < n; j++)
        c[i * distance + j] += a[i * k + l] * b[l * n + j];
}
GRADIENT(short_rows)

// raised: 0
void reads_volatile(const double *a, const double *b, double *c, int m, int k, int n) {
  static volatile int zero = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += a[i * k + l + zero] * b[l * n + j];
      c[i * n + j] = sum;
    }
}
GRADIENT(reads_volatile)

// An index of 32 bits without a sign wraps; these do not, but that is not known.
// raised: 0
void wrapping_index(const double *restrict a, const double *restrict b, double *restrict c, int m, int k, int n) {
  for (unsigned i = 0; i < (unsigned)m; i++)
    for (unsigned j = 0; j < (unsigned)n; j++) {
      double sum = 0;
      for (unsigned l = 0; l < (unsigned)k; l++)
        sum += a[i * k + l] * b[(l * 2654435761u + j) & 255];
      c[i * n + j] = sum;
    }
}
GRADIENT(wrapping_index)

int main(void) {
  CHECK_NEST(with_restrict);
  CHECK_NEST(without_restrict);
  CHECK_NEST(sums_in_memory);
  CHECK_NEST(moving_pointers);
  CHECK_NEST(variable_length);
  CHECK_NEST(fixed_rows);
  CHECK_NEST(structures);
  CHECK_NEST(bias);
  CHECK_NEST(overlapping);
  CHECK_NEST(short_rows);
  CHECK_NEST(reads_volatile);
  CHECK_NEST(wrapping_index);
  return 0;
}
