// flags: -lm
// A registered gradient of a function that returns a float: the augmented one returns {tape, result}, the reverse takes the seed and returns the gradient.
#include "check.h"

double __enzyme_autodiff(void *, ...);

__attribute__((noinline)) double inverse_sqrt(double x) { return 1.0 / sqrt(x); }

struct Augmented {
  void *tape;
  double result;
};

struct Augmented inverse_sqrt_augmented(double x) {
  struct Augmented a = {NULL, inverse_sqrt(x)};
  return a;
}

double inverse_sqrt_reverse(double x, double seed, void *tape) {
  (void)tape;
  return seed * -1000.0 * x;
}

void *__enzyme_register_gradient_inverse_sqrt[3] = {(void *)inverse_sqrt, (void *)inverse_sqrt_augmented, (void *)inverse_sqrt_reverse};

double uses(double x) { return 3.0 * inverse_sqrt(x); }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)uses, 4.0), 3.0 * -4000.0, 1e-12);
  return 0;
}
