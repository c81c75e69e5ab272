// flags: -lm
// Entry points called from templates that take the function and its arguments, as libraries wrap them.
#include "check.h"
#include <cmath>
#include <utility>

inline int enzyme_dup, enzyme_dupnoneed, enzyme_out, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(T...);
template <typename Return, typename... T> Return __enzyme_fwddiff(T...);

template <typename F> double derivative(F *f, double x) { return __enzyme_fwddiff<double>((void *)f, enzyme_dup, x, 1.0); }

template <typename R, typename... Args> struct Gradient {
  R (*function)(Args...);
  template <typename... Given> R operator()(Given &&...given) const {
    return __enzyme_autodiff<R>((void *)function, enzyme_out, std::forward<Given>(given)...);
  }
};

template <typename R, typename... Args> Gradient<R, Args...> gradient(R (*f)(Args...)) { return {f}; }

static double f(double x) { return std::atan(x) * x; }

int main() {
  double x = 0.8, expected = std::atan(x) + x / (1 + x * x);
  CHECK_CLOSE(derivative(f, x), expected, 1e-12);
  CHECK_CLOSE(gradient(f)(x), expected, 1e-12);
  return 0;
}
