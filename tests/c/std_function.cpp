// flags: -lm
// Closures behind std::function, in a vector; one holds a value, one a reference.
#include "differences.h"
#include <functional>
#include <vector>

static double function(double *x, int n) {
  double factor = x[0];
  std::vector<std::function<double(double)>> steps;
  steps.push_back([factor](double value) { return factor * value; });
  steps.push_back([&](double value) { return value * value + x[1]; });
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += steps[i % 2](x[i]);
  return sum;
}
