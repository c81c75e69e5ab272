// flags: -lm
// Gradient descent: the derivative called in a loop, from a lambda, and from a template for several functions.
#include "check.h"
#include <cmath>

extern int enzyme_dup, enzyme_const;
template <typename... T> double __enzyme_autodiff(void *, T...);

static double bowl(double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += (x[i] - i) * (x[i] - i);
  return sum;
}
static double valley(double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += std::cosh(x[i] - 2);
  return sum;
}

template <double (*f)(double *, int)> static void descend(double *x, int n, double rate, int steps) {
  for (int s = 0; s < steps; s++) {
    double dx[8] = {};
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, n);
    for (int i = 0; i < n; i++)
      x[i] -= rate * dx[i];
  }
}

int main() {
  double x[4] = {5, 5, 5, 5};
  descend<bowl>(x, 4, 0.25, 60);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(x[i], i, 1e-9);
  descend<valley>(x, 4, 0.3, 200);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(x[i], 2, 1e-9);
  return 0;
}
