// flags: -lm
// GCC's vector types.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

typedef double Four __attribute__((vector_size(32)));

double dot(const double *x, const double *y) {
  Four a = {x[0], x[1], x[2], x[3]}, b = {y[0], y[1], y[2], y[3]};
  Four p = a * b + a;
  return p[0] + p[1] + p[2] + p[3];
}

int main(void) {
  double x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, dx[4] = {0}, dy[4] = {0};
  __enzyme_autodiff((void *)dot, enzyme_dup, x, dx, enzyme_dup, y, dy);
  for (int i = 0; i < 4; i++) {
    CHECK_CLOSE(dx[i], y[i] + 1, 1e-12);
    CHECK_CLOSE(dy[i], x[i], 1e-12);
  }
  return 0;
}
