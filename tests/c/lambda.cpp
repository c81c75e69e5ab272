// flags: -lm
// Lambdas, converted to function pointers and called within templates.
#include "check.h"
#include <cmath>

extern int enzyme_dup, enzyme_const, enzyme_out;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

template <typename F> static double integrate(F f, double a, double b, int n) {
  double h = (b - a) / n, sum = 0.5 * (f(a) + f(b));
  for (int i = 1; i < n; i++)
    sum += f(a + i * h);
  return sum * h;
}

static double area(double scale) {
  return integrate([scale](double t) { return std::exp(scale * t); }, 0.0, 1.0, 64);
}

int main() {
  double (*plain)(double) = [](double x) { return x * x * x; };
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)+[](double x) { return std::sin(x) * x; }, 0.5), std::sin(0.5) + 0.5 * std::cos(0.5), 1e-12);
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)plain, enzyme_out, 2.0), 12.0, 1e-12);
  double h = 1e-6;
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)area, 0.7), (area(0.7 + h) - area(0.7 - h)) / (2 * h), 1e-8);
  return 0;
}
