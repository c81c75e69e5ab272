// flags: -lm
// Small structures by value are passed in two registers; markers and shadows are still for the whole of them.
#include "check.h"
#include <complex.h>

extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_width, enzyme_interleave;

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

struct Point {
  double x, y;
};

struct Pair {
  double first, second;
};

struct Pair __enzyme_fwddiff_pair(void *, ...);
struct Pair __enzyme_autodiff_pair(void *, ...);

double value(struct Point p, double z) { return p.x * p.x * p.x + p.y * z; }

double norm(double complex z) { return creal(z) * creal(z) * creal(z) + cimag(z); }

struct Matrix {
  int rows, columns;
  double *data;
};

double diagonal(struct Matrix m) {
  double sum = 0;
  for (int i = 0; i < m.rows; i++)
    sum += m.data[i * m.columns + i] * m.data[i];
  return sum;
}

int main(void) {
  struct Point p = {2, 3}, d = {5, 7}, e = {1, 0};
  const double z = 1.5, dz = 0.5, along = 12 * 5 + 7 * z;
  CHECK_CLOSE(__enzyme_fwddiff((void *)value, enzyme_dup, p, d, enzyme_dup, z, dz), along + 3 * dz, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)value, p, d, z, dz), along + 3 * dz, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)value, enzyme_const, p, enzyme_dup, z, dz), 3 * dz, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)value, enzyme_interleave, p, z, d, dz), along + 3 * dz, 1e-12);
  struct Pair both = __enzyme_fwddiff_pair((void *)value, enzyme_width, 2, enzyme_dup, p, d, e, enzyme_const, z);
  CHECK_CLOSE(both.first, along, 1e-12);
  CHECK_CLOSE(both.second, 12, 1e-12);
  both = __enzyme_fwddiff_pair((void *)value, enzyme_width, 2, enzyme_interleave, p, enzyme_const, z, d, e);
  CHECK_CLOSE(both.first, along, 1e-12);
  CHECK_CLOSE(both.second, 12, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)value, enzyme_const, p, enzyme_out, z), 3, 1e-12);
  struct Pair gradient = __enzyme_autodiff_pair((void *)value, enzyme_out, p, enzyme_const, z);
  CHECK_CLOSE(gradient.first, 12, 1e-12);
  CHECK_CLOSE(gradient.second, z, 1e-12);

  double complex c = 2 + 3 * I, dc = 5 + 7 * I;
  CHECK_CLOSE(__enzyme_fwddiff((void *)norm, c, dc), 12 * 5 + 7, 1e-12);

  double data[4] = {1, 2, 3, 4}, shadow[4] = {0};
  struct Matrix m = {2, 2, data}, dm = {2, 2, shadow};
  __enzyme_autodiff((void *)diagonal, enzyme_dup, m, dm);
  const double expected[4] = {2, 4, 0, 2};
  for (int i = 0; i < 4; i++) {
    CHECK_CLOSE(shadow[i], expected[i], 1e-12);
    shadow[i] = expected[i];
  }
  CHECK_CLOSE(__enzyme_fwddiff((void *)diagonal, m, dm), 2 * 2 + 4 * 4 + 2 * 2, 1e-12);
  return 0;
}
