// flags: -lm
// std::list and std::forward_list of doubles, std::deque, std::string beside them.
#include "check.h"
#include <deque>
#include <forward_list>
#include <string>

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double forward(double x, int n) {
  std::forward_list<double> values;
  for (int i = 1; i <= n; i++)
    values.push_front(x / i);
  double sum = 0;
  for (double v : values)
    sum += v * v;
  return sum;
}

static double both_ends(double x, int n) {
  std::deque<double> values;
  for (int i = 0; i < n; i++) {
    values.push_back(x * i);
    values.push_front(x + i);
  }
  double sum = 0;
  while (!values.empty()) {
    sum += values.front() * values.back();
    values.pop_front();
  }
  return sum;
}

int main() {
  double x = 0.6, h = 1e-6;
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)forward, x, 5), (forward(x + h, 5) - forward(x - h, 5)) / (2 * h), 1e-7);
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)both_ends, x, 4), (both_ends(x + h, 4) - both_ends(x - h, 4)) / (2 * h), 1e-7);
  return 0;
}
