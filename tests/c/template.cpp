// flags: -lm
// The entry point as a template, as C++ programs declare it.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_out;

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);
template <typename Return, typename... T> Return __enzyme_fwddiff(void *, T...);

double norm(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sqrt(sum);
}

template <typename T> T cube(T x) { return x * x * x; }

int main() {
  double x[3] = {1, 2, 2}, dx[3] = {0, 0, 0};
  __enzyme_autodiff<void>((void *)norm, enzyme_dup, x, dx, enzyme_const, 3);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], x[i] / 3, 1e-12);

  double direction[3] = {1, 0, 1};
  CHECK_CLOSE(__enzyme_fwddiff<double>((void *)norm, enzyme_dup, x, direction, enzyme_const, 3), 1.0, 1e-12);

  CHECK_CLOSE(__enzyme_autodiff<double>((void *)cube<double>, enzyme_out, 2.0), 12.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff<float>((void *)cube<float>, 2.0f), 12.0, 1e-6);
  return 0;
}
