// flags: -lm
// std::list of doubles in reverse mode: what the list keeps about itself is a number where its nodes have a double.
#include "check.h"
#include <list>
#include <set>

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double folded(const std::list<double> &values) {
  double result = 1;
  for (double value : values)
    result = result * 0.9 + value * result;
  return result;
}

static double turned(double x) {
  std::list<double> values;
  for (int i = 0; i < 5; i++) {
    values.push_back(x * i);
    values.push_front(x * x);
  }
  values.reverse();
  values.pop_back();
  return folded(values) + values.size();
}

static double sorted(double x) {
  std::list<double> values{x, 2, x * x}, others{x * 3};
  values.sort();
  values.swap(others);
  values.splice(values.end(), others);
  return folded(values) * values.front();
}

static double ordered(double x) {
  std::set<double> values;
  for (int i = 0; i < 6; i++)
    values.insert(sin(i * x));
  double result = 0, weight = 1;
  for (double value : values)
    result += value * weight++;
  return result;
}

int main() {
  const double x = 0.73, h = 1e-6;
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)turned, x), (turned(x + h) - turned(x - h)) / (2 * h), 1e-6);
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)sorted, x), (sorted(x + h) - sorted(x - h)) / (2 * h), 1e-6);
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)ordered, x), (ordered(x + h) - ordered(x - h)) / (2 * h), 1e-6);
  return 0;
}
