// flags: -lm
// std::vector within the function: sized, pushed, copied, iterated.
#include "check.h"
#include <cmath>
#include <numeric>
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);
template <typename Return, typename... T> Return __enzyme_fwddiff(void *, T...);

static double sized(const double *x, int n) {
  std::vector<double> squares(n);
  for (int i = 0; i < n; i++)
    squares[i] = x[i] * x[i];
  double sum = 0;
  for (double s : squares)
    sum += s;
  return sum;
}

static double pushed(double x, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; i++)
    values.push_back(x * i);
  std::vector<double> copy = values;
  copy[0] = 1;
  double product = 0;
  for (std::size_t i = 0; i < values.size(); i++)
    product += values[i] * copy[i];
  return product + std::accumulate(copy.begin(), copy.end(), 0.0);
}

int main() {
  double x[4] = {1, 2, 3, 4}, dx[4] = {};
  __enzyme_autodiff<void>((void *)sized, enzyme_dup, x, dx, enzyme_const, 4);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dx[i], 2 * x[i], 1e-12);
  // Σ i² x² + 1 + Σ i x, with i from 0 (whose own value is 0) to 4
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)pushed, 0.5, 5), 2 * 0.5 * 30 + 10, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff<double>((void *)pushed, 0.5, 1.0, 5), 2 * 0.5 * 30 + 10, 1e-12);
  return 0;
}
