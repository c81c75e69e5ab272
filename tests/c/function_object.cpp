// flags: -lm
// Function objects, std::function, member function pointers, static polymorphism.
#include "check.h"
#include <cmath>
#include <functional>

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

struct Quadratic {
  double a, b;
  double operator()(double x) const { return a * x * x + b * x; }
};

template <typename Derived> struct Model {
  double loss(double x) const {
    double r = static_cast<const Derived *>(this)->predict(x) - 1;
    return r * r;
  }
};
struct Sigmoid : Model<Sigmoid> {
  double gain;
  explicit Sigmoid(double gain) : gain(gain) {}
  double predict(double x) const { return 1 / (1 + std::exp(-gain * x)); }
};

template <typename F> static double twice(const F &f, double x) { return f(f(x)); }

static double objects(double x) {
  Quadratic q{x, 2};
  return twice(q, 0.5) + Sigmoid(x).loss(0.7);
}

static double erased(double x) {
  std::function<double(double)> f = [x](double t) { return x * t + std::sin(t); };
  return f(x) * f(1.0);
}

int main() {
  double x = 0.6, h = 1e-6;
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)objects, x), (objects(x + h) - objects(x - h)) / (2 * h), 1e-8);
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)erased, x), (erased(x + h) - erased(x - h)) / (2 * h), 1e-8);
  return 0;
}
