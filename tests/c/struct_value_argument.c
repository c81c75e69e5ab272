// flags: -lm
// A struct by value as the argument that is differentiated: its fields are active floats.
#include "check.h"

struct Point {
  double x, y;
};

extern struct Point __enzyme_autodiff(void *, ...);

double cross(struct Point p) { return p.x * p.x * p.y; }

int main(void) {
  struct Point p = {3, 4};
  struct Point g = __enzyme_autodiff((void *)cross, p);
  CHECK_CLOSE(g.x, 24, 1e-12);
  CHECK_CLOSE(g.y, 9, 1e-12);
  return 0;
}
