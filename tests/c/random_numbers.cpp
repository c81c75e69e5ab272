// flags: -lm
// C++'s random numbers, which compute with long double inside: they have no derivative.
#include "check.h"
#include <random>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double sampled(double x) {
  std::mt19937 generator(3);
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> uniform(0, 2);
  double sum = 0;
  for (int i = 0; i < 20; i++)
    sum += std::sin(x * normal(generator)) * uniform(generator);
  return sum;
}

int main() {
  const double x = 0.7, h = 1e-6, expected = (sampled(x + h) - sampled(x - h)) / (2 * h);
  CHECK_CLOSE(__enzyme_autodiff((void *)sampled, x), expected, 1e-7);
  CHECK_CLOSE(__enzyme_fwddiff((void *)sampled, x, 1.0), expected, 1e-7);
  return 0;
}
