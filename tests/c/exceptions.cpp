// flags: -lm
// Exceptions that are not thrown, with destructors on the way.
#include "check.h"
#include <cmath>
#include <stdexcept>
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double checked_log(double x) {
  if (x <= 0)
    throw std::domain_error("logarithm of what is not positive");
  return std::log(x);
}

static double function(const double *x, int n) {
  std::vector<double> logs(n);
  for (int i = 0; i < n; i++)
    logs.at(i) = checked_log(x[i]);
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += logs[i] * logs.at(n - 1 - i);
  return sum;
}

static double guarded(double x) {
  try {
    return checked_log(x) * x;
  } catch (const std::domain_error &) {
    return 0;
  }
}

int main() {
  double x[3] = {1.5, 2, 3}, dx[3] = {};
  __enzyme_autodiff<void>((void *)function, enzyme_dup, x, dx, enzyme_const, 3);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 2 * std::log(x[2 - i]) / x[i], 1e-12);
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)guarded, 2.0), 1 + std::log(2.0), 1e-12);
  return 0;
}
