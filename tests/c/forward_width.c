// flags: -lm
// Forward mode with several tangents at once: width, separate shadows, and dupv with a stride in bytes.
#include "check.h"

extern int enzyme_dup, enzyme_dupv, enzyme_const, enzyme_width;

struct Pair {
  double first, second;
};
struct Triple {
  double a, b, c;
};

extern struct Pair __enzyme_fwddiff_pair(void *, ...);
extern struct Triple __enzyme_fwddiff_triple(void *, ...);
extern void __enzyme_fwddiff_void(void *, ...);

double product(double x, double y) { return x * y; }

double norm2(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sum;
}

void squares(double *out, const double *x, int n) {
  for (int i = 0; i < n; i++)
    out[i] = x[i] * x[i];
}

int main(void) {
  struct Pair p = __enzyme_fwddiff_pair((void *)product, enzyme_width, 2, enzyme_dup, 3.0, 1.0, 0.0, enzyme_dup, 5.0, 0.0, 1.0);
  CHECK_CLOSE(p.first, 5.0, 1e-12);
  CHECK_CLOSE(p.second, 3.0, 1e-12);

  double x[3] = {1, 2, 3};
  double e0[3] = {1, 0, 0}, e1[3] = {0, 1, 0}, e2[3] = {0, 0, 1};
  struct Triple t = __enzyme_fwddiff_triple((void *)norm2, enzyme_width, 3, enzyme_dup, x, e0, e1, e2, enzyme_const, 3);
  CHECK_CLOSE(t.a, 2.0, 1e-12);
  CHECK_CLOSE(t.b, 4.0, 1e-12);
  CHECK_CLOSE(t.c, 6.0, 1e-12);

  double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  t = __enzyme_fwddiff_triple((void *)norm2, enzyme_width, 3, enzyme_dupv, 3 * sizeof(double), x, identity, enzyme_const, 3);
  CHECK_CLOSE(t.a, 2.0, 1e-12);
  CHECK_CLOSE(t.b, 4.0, 1e-12);
  CHECK_CLOSE(t.c, 6.0, 1e-12);

  double out[3], jacobian[9];
  __enzyme_fwddiff_void((void *)squares, enzyme_width, 3, enzyme_dupv, 3 * sizeof(double), out, jacobian, enzyme_dupv, 3 * sizeof(double), x, identity,
                        enzyme_const, 3);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      CHECK_CLOSE(jacobian[3 * i + j], i == j ? 2 * x[i] : 0.0, 1e-12);
  return 0;
}
