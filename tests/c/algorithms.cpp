// flags: -lm
// The algorithms of the standard library on arrays and vectors.
#include "check.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double mixed(const double *x, int n) {
  std::vector<double> y(n);
  std::transform(x, x + n, y.begin(), [](double v) { return v * v; });
  std::vector<double> z(y.rbegin(), y.rend());
  double dot = std::inner_product(y.begin(), y.end(), z.begin(), 0.0);
  double most = *std::max_element(x, x + n);
  double least = *std::min_element(x, x + n);
  std::swap(most, least);
  return dot + std::max(most, 0.5) * std::min(least, 100.0) + std::accumulate(x, x + n, 1.0, [](double a, double b) { return a * b; });
}

static double sorted(const double *x, int n) {
  std::vector<double> y(x, x + n);
  std::sort(y.begin(), y.end());
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += (i + 1) * y[i] * y[i];
  return sum;
}

template <typename F> static void compare(F f, void *pointer, const double *start, int n) {
  std::vector<double> x(start, start + n), dx(n, 0.0);
  (void)pointer;
  double h = 1e-6;
  f(x.data(), dx.data(), n);
  for (int i = 0; i < n; i++) {
    double (*g)(const double *, int) = (double (*)(const double *, int))pointer;
    double kept = x[i];
    x[i] = kept + h;
    double up = g(x.data(), n);
    x[i] = kept - h;
    double down = g(x.data(), n);
    x[i] = kept;
    CHECK_CLOSE(dx[i], (up - down) / (2 * h), 1e-6);
  }
}

int main() {
  double x[5] = {1.5, 0.75, 2.5, -1.25, 2};
  compare([](double *x, double *dx, int n) { __enzyme_autodiff<void>((void *)mixed, enzyme_dup, x, dx, enzyme_const, n); }, (void *)mixed, x, 5);
  compare([](double *x, double *dx, int n) { __enzyme_autodiff<void>((void *)sorted, enzyme_dup, x, dx, enzyme_const, n); }, (void *)sorted, x, 5);
  return 0;
}
