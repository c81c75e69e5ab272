// flags: -lm
// Complex numbers of C: arithmetic, and the derivative of a real result by real parameters.
#include "check.h"
#include <complex.h>

struct Two {
  double x, y;
};
extern struct Two __enzyme_autodiff(void *, ...);

double squared(double x, double y) {
  double complex z = x + y * I;
  double complex w = z * z + 2.0 * z - 1.0;
  return creal(w) * creal(w) + cimag(w) * cimag(w);
}

double quotient(double x, double y) {
  double complex z = x + y * I;
  double complex w = (z + 1.0) / (z - I * 2.0);
  return creal(w) + 3 * cimag(conj(w));
}

int main(void) {
  double x = 0.7, y = -0.4, h = 1e-6;
  struct Two g = __enzyme_autodiff((void *)squared, x, y);
  CHECK_CLOSE(g.x, (squared(x + h, y) - squared(x - h, y)) / (2 * h), 1e-8);
  CHECK_CLOSE(g.y, (squared(x, y + h) - squared(x, y - h)) / (2 * h), 1e-8);
  g = __enzyme_autodiff((void *)quotient, x, y);
  CHECK_CLOSE(g.x, (quotient(x + h, y) - quotient(x - h, y)) / (2 * h), 1e-8);
  CHECK_CLOSE(g.y, (quotient(x, y + h) - quotient(x, y - h)) / (2 * h), 1e-8);
  return 0;
}
