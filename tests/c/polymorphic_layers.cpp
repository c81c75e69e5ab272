// flags: -lm; output: 16 layers
// Objects of several classes with virtual functions, one of which holds a text; output on the way.
#include "differences.h"
#include <iostream>
#include <memory>
#include <string>
#include <vector>

struct Layer {
  virtual double apply(double) const = 0;
  virtual ~Layer() = default;
};

struct Affine : Layer {
  double slope, shift;
  Affine(double slope, double shift) : slope(slope), shift(shift) {}
  double apply(double x) const override { return slope * x + shift; }
};

struct Activation : Layer {
  std::string name = "tanh";
  double apply(double x) const override { return std::tanh(x); }
};

static bool shown;

static double function(double *x, int n) {
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i = 0; i < n; i++) {
    layers.push_back(std::make_unique<Affine>(x[i], x[(i + 1) % n]));
    layers.push_back(std::make_unique<Activation>());
  }
  if (!shown)
    std::cout << layers.size() << " layers" << std::endl;
  shown = true;
  double value = 1;
  for (const auto &layer : layers)
    value = layer->apply(value);
  return value;
}
