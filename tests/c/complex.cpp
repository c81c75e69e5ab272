// flags: -lm
// std::complex: operators and functions.
#include "check.h"
#include <complex>

struct Two {
  double x, y;
};
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double mandelbrot(double x, double y) {
  std::complex<double> c(x, y), z(0, 0);
  for (int i = 0; i < 5; i++)
    z = z * z + c;
  return std::norm(z);
}

static double functions(double x, double y) {
  std::complex<double> z(x, y);
  std::complex<double> w = std::exp(z) + std::sqrt(z) * std::polar(2.0, x) - std::log(z) / z;
  return std::abs(w) + std::arg(w) + std::conj(w).imag();
}

int main() {
  double x = 0.3, y = 0.4, h = 1e-6;
  Two g = __enzyme_autodiff<Two>((void *)mandelbrot, x, y);
  CHECK_CLOSE(g.x, (mandelbrot(x + h, y) - mandelbrot(x - h, y)) / (2 * h), 1e-7);
  CHECK_CLOSE(g.y, (mandelbrot(x, y + h) - mandelbrot(x, y - h)) / (2 * h), 1e-7);
  g = __enzyme_autodiff<Two>((void *)functions, x, y);
  CHECK_CLOSE(g.x, (functions(x + h, y) - functions(x - h, y)) / (2 * h), 1e-7);
  CHECK_CLOSE(g.y, (functions(x, y + h) - functions(x, y - h)) / (2 * h), 1e-7);
  return 0;
}
