// flags: -lm
// An object with virtual functions that the caller gives, with a shadow object of the same class beside it.
#include "check.h"
#include <cmath>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

class Layer {
public:
  virtual double apply(double x) const = 0;
  virtual ~Layer() = default;
};
class Affine : public Layer {
public:
  double a, b;
  Affine(double a, double b) : a(a), b(b) {}
  double apply(double x) const override { return a * x + b; }
};
class Tanh : public Layer {
public:
  double gain;
  explicit Tanh(double gain) : gain(gain) {}
  double apply(double x) const override { return gain * std::tanh(x); }
};

static double run(Layer *layer, double x) { return layer->apply(layer->apply(x)); }

int main() {
  Affine affine(2, 3), daffine(0, 0);
  // a (a x + b) + b
  double dx = __enzyme_autodiff<double>((void *)run, enzyme_dup, static_cast<Layer *>(&affine), static_cast<Layer *>(&daffine), 1.5);
  CHECK_CLOSE(dx, 4, 1e-12);
  CHECK_CLOSE(daffine.a, 2 * 2 * 1.5 + 3, 1e-12);
  CHECK_CLOSE(daffine.b, 3, 1e-12);
  Tanh tanh_layer(1.5), dtanh(0);
  dx = __enzyme_autodiff<double>((void *)run, enzyme_dup, static_cast<Layer *>(&tanh_layer), static_cast<Layer *>(&dtanh), 0.3);
  double inner = 1.5 * std::tanh(0.3), outer = std::tanh(inner);
  CHECK_CLOSE(dx, 1.5 * (1 - outer * outer) * 1.5 * (1 - std::tanh(0.3) * std::tanh(0.3)), 1e-12);
  CHECK_CLOSE(dtanh.gain, outer + 1.5 * (1 - outer * outer) * std::tanh(0.3), 1e-12);
  return 0;
}
