// flags: -lm
// std::vector as an argument: its shadow is a vector of the same length.
#include "check.h"
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename... T> void __enzyme_autodiff(void *, T...);
template <typename Return, typename... T> Return __enzyme_fwddiff(void *, T...);

static double weighted(const std::vector<double> &x, const std::vector<int> &weights) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); i++)
    sum += weights[i] * x[i] * x[i];
  return sum;
}

static void smooth(std::vector<double> &x) {
  for (std::size_t i = 1; i < x.size(); i++)
    x[i] = 0.5 * (x[i] + x[i - 1]);
}

int main() {
  std::vector<double> x{1, 2, 3}, dx(3, 0.0);
  std::vector<int> weights{4, 5, 6};
  __enzyme_autodiff((void *)weighted, enzyme_dup, &x, &dx, enzyme_const, &weights);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 2 * weights[i] * x[i], 1e-12);

  std::vector<double> y{1, 2, 3}, dy{0, 0, 1};
  __enzyme_autodiff((void *)smooth, enzyme_dup, &y, &dy);
  CHECK_CLOSE(y[2], 2.25, 1e-12);
  CHECK_CLOSE(dy[0], 0.25, 1e-12);
  CHECK_CLOSE(dy[1], 0.25, 1e-12);
  CHECK_CLOSE(dy[2], 0.5, 1e-12);
  return 0;
}
