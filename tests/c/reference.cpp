// flags: -lm
// C++ references as arguments: pointers, so they have shadows.
#include "check.h"
#include <cmath>

extern int enzyme_dup, enzyme_out;
extern "C" void __enzyme_autodiff(void *, ...);

static void rotate(double &x, double &y, const double &angle) {
  double c = std::cos(angle), s = std::sin(angle);
  double next = c * x - s * y;
  y = s * x + c * y;
  x = next;
}

static void rotate_twice(double &x, double &y, const double &angle) {
  rotate(x, y, angle);
  rotate(x, y, angle);
}

int main() {
  double x = 1, y = 2, angle = 0.3;
  double dx = 1, dy = 0, dangle = 0;
  __enzyme_autodiff((void *)rotate_twice, enzyme_dup, &x, &dx, enzyme_dup, &y, &dy, enzyme_dup, &angle, &dangle);
  CHECK_CLOSE(x, std::cos(0.6) - 2 * std::sin(0.6), 1e-12);
  CHECK_CLOSE(dx, std::cos(0.6), 1e-12);
  CHECK_CLOSE(dy, -std::sin(0.6), 1e-12);
  CHECK_CLOSE(dangle, 2 * (-std::sin(0.6) - 2 * std::cos(0.6)), 1e-12);
  return 0;
}
