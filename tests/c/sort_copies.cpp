// flags: -lm
// Standard algorithms on copies of a vector, whose size in bytes is known as the distance of two pointers.
#include "check.h"
#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

template <typename Result, typename... Arguments> Result __enzyme_autodiff(void *, Arguments...);

using Vector = std::vector<double>;

double median(const Vector &values) {
  Vector sorted(values);
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2] * sorted[0];
}

double ranks(const Vector &values) {
  Vector sorted = values;
  std::stable_sort(sorted.begin(), sorted.end(), [](double a, double b) { return a > b; });
  double sum = 0;
  for (size_t i = 0; i < sorted.size(); i++)
    sum += (i + 1) * sorted[i];
  return sum;
}

double selected(const Vector &values) {
  Vector large;
  std::copy_if(values.begin(), values.end(), std::back_inserter(large), [](double x) { return x > 1.5; });
  std::reverse(large.begin(), large.end());
  std::partial_sum(large.begin(), large.end(), large.begin());
  return large.back() * large.front();
}

static void check(const Vector &gradient, const Vector &expected) {
  for (size_t i = 0; i < expected.size(); i++)
    CHECK_CLOSE(gradient[i], expected[i], 1e-12);
}

int main() {
  Vector values{2, 1, 3}, gradient(3);
  __enzyme_autodiff<void>((void *)median, &values, &gradient);
  check(gradient, {1, 2, 0});
  gradient = {0, 0, 0};
  __enzyme_autodiff<void>((void *)ranks, &values, &gradient);
  check(gradient, {2, 3, 1});
  gradient = {0, 0, 0};
  __enzyme_autodiff<void>((void *)selected, &values, &gradient);
  check(gradient, {3, 0, 8});
  return 0;
}
