// Fits a polynomial to points by gradient descent: C++ with std::vector.
#include <cmath>
#include <cstdio>
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double loss(const std::vector<double> &weights, const std::vector<double> &points) {
  double sum = 0;
  for (double x : points) {
    double value = 0, power = 1;
    for (double weight : weights) {
      value += weight * power;
      power *= x;
    }
    double error = value - std::cos(x);
    sum += error * error;
  }
  return sum / points.size();
}

int main() {
  std::vector<double> weights(5), points;
  for (int i = 0; i <= 20; i++)
    points.push_back(i / 20.0);
  for (int step = 0; step < 20000; step++) {
    std::vector<double> gradient(weights.size());
    __enzyme_autodiff<void>((void *)loss, enzyme_dup, &weights, &gradient, enzyme_const, &points);
    for (std::size_t i = 0; i < weights.size(); i++)
      weights[i] -= 0.4 * gradient[i];
  }
  std::printf("loss %.1e, cos(0.5) is about %.5f\n", loss(weights, points), weights[0] + weights[1] / 2 + weights[2] / 4 + weights[3] / 8 + weights[4] / 16);
  return loss(weights, points) < 1e-5 ? 0 : 1;
}
