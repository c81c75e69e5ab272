// flags: -lm
// Small functions that call each other, also not inlined, with results through pointers.
#include "check.h"

struct Two {
  double a, b;
};
extern struct Two __enzyme_autodiff(void *, ...);

__attribute__((noinline)) static void split(double x, double *whole, double *part) {
  *whole = floor(x);
  *part = x - *whole;
}

__attribute__((noinline)) static double weigh(const double *values, int n, double (*weight)(int)) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += weight(i) * values[i];
  return sum;
}

static double harmonic(int i) { return 1.0 / (i + 1); }

double function(double a, double b) {
  double whole, part, values[3];
  split(a * b, &whole, &part);
  values[0] = part * part;
  values[1] = a + whole;
  values[2] = b * a;
  return weigh(values, 3, harmonic);
}

int main(void) {
  struct Two g = __enzyme_autodiff((void *)function, 1.5, 1.25);
  double part = 1.5 * 1.25 - 1;
  CHECK_CLOSE(g.a, 2 * part * 1.25 + 0.5 + 1.25 / 3, 1e-12);
  CHECK_CLOSE(g.b, 2 * part * 1.5 + 1.5 / 3, 1e-12);
  return 0;
}
