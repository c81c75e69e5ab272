// flags: -lm
// Results that are structs: small ones in registers, large ones through hidden pointers. Forward mode gives their tangents.
#include "check.h"

extern int enzyme_dup, enzyme_const;

struct Pair {
  double sum, product;
};
struct Many {
  double values[5];
};

extern struct Pair __enzyme_fwddiff_pair(void *, ...);
extern struct Many __enzyme_fwddiff_many(void *, ...);

struct Pair both(double x, double y) {
  struct Pair p = {x + y, x * y};
  return p;
}

struct Many powers(double x) {
  struct Many m;
  m.values[0] = 1;
  for (int i = 1; i < 5; i++)
    m.values[i] = m.values[i - 1] * x;
  return m;
}

int main(void) {
  struct Pair p = __enzyme_fwddiff_pair((void *)both, enzyme_dup, 3.0, 1.0, enzyme_dup, 5.0, 2.0);
  CHECK_CLOSE(p.sum, 3.0, 1e-12);
  CHECK_CLOSE(p.product, 11.0, 1e-12);
  struct Many m = __enzyme_fwddiff_many((void *)powers, enzyme_dup, 2.0, 1.0);
  for (int i = 0; i < 5; i++)
    CHECK_CLOSE(m.values[i], i == 0 ? 0.0 : i * pow(2.0, i - 1), 1e-12);
  return 0;
}
