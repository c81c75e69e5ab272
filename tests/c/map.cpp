// flags: -lm
// std::map from integers to doubles.
#include "check.h"
#include <map>

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double function(double x, int n) {
  std::map<int, double> values;
  for (int i = 0; i < n; i++)
    values[i * 7 % 5] += x * i;
  double sum = 0;
  for (const auto &entry : values)
    sum += entry.second * entry.second * (entry.first + 1);
  return sum;
}

int main() {
  double h = 1e-6;
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)function, 0.5, 8), (function(0.5 + h, 8) - function(0.5 - h, 8)) / (2 * h), 1e-7);
  return 0;
}
