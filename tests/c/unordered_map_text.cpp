// flags: -lm
// Hash tables whose keys are text, short and long: made inside, grown, returned, looked up.
#include "check.h"
#include <string>
#include <unordered_map>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

using Table = std::unordered_map<std::string, double>;

__attribute__((noinline)) static Table measured(double x, int n) {
  Table table;
  for (int i = 0; i < n; i++)
    table["a name that is too long to be kept in the string itself, number " + std::to_string(i)] = x * i;
  table["short"] = x * x;
  table["short"] *= table.size();
  return table;
}

double looked_up(double x, int n) {
  Table table = measured(x, n);
  double sum = table["short"] + table["not there"];
  if (n > 3)
    sum += table.at("a name that is too long to be kept in the string itself, number 3") * x;
  return sum;
}

double of_all(double x, int n) {
  Table table = measured(x, n);
  double sum = 0;
  for (const auto &[name, value] : table)
    sum += value * value * (double)name.size();
  return sum;
}

static void check(double (*function)(double, int), double gradient, double tangent, double x, int n) {
  double step = 1e-6, slope = (function(x + step, n) - function(x - step, n)) / (2 * step);
  CHECK_CLOSE(gradient, slope, 1e-6);
  CHECK_CLOSE(tangent, gradient, 1e-12);
}

int main() {
  for (int n : {0, 1, 5, 40}) {
    double x = 1.3;
    check(looked_up, __enzyme_autodiff((void *)looked_up, x, n), __enzyme_fwddiff((void *)looked_up, x, 1.0, n), x, n);
    check(of_all, __enzyme_autodiff((void *)of_all, x, n), __enzyme_fwddiff((void *)of_all, x, 1.0, n), x, n);
  }
  return 0;
}
