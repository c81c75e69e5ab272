// flags: -lm
// std::tuple, std::pair, std::optional, structured bindings, constexpr.
#include "check.h"
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

struct Two {
  double x, y;
};
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static std::pair<double, double> polar(double x, double y) { return {std::hypot(x, y), std::atan2(y, x)}; }
static std::tuple<double, int, double> parts(double x) { return {x * x, 3, std::exp(x)}; }
static std::optional<double> root(double x) {
  if (x < 0)
    return std::nullopt;
  return std::sqrt(x);
}
static constexpr double scale = 2.5;

static double function(double x, double y) {
  auto [r, angle] = polar(x, y);
  auto [square, count, power] = parts(r);
  std::optional<double> s = root(square + power);
  return scale * s.value_or(0) * count + angle * std::get<0>(std::make_pair(y, x));
}

int main() {
  double x = 0.8, y = 0.6, h = 1e-6;
  Two g = __enzyme_autodiff<Two>((void *)function, x, y);
  CHECK_CLOSE(g.x, (function(x + h, y) - function(x - h, y)) / (2 * h), 1e-8);
  CHECK_CLOSE(g.y, (function(x, y + h) - function(x, y - h)) / (2 * h), 1e-8);
  return 0;
}
