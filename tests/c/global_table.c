// flags: -lm
// Constant tables and a global that is only read.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static const double coefficients[5] = {1, -2, 0.5, 3, 0.25};
double scale = 2.0;

double polynomial(double x) {
  double sum = 0;
  for (int i = 4; i >= 0; i--)
    sum = sum * x + coefficients[i];
  return scale * sum;
}

int main(void) {
  double x = 1.3, expected = 0;
  for (int i = 1; i < 5; i++)
    expected += i * coefficients[i] * pow(x, i - 1);
  CHECK_CLOSE(__enzyme_autodiff((void *)polynomial, x), 2 * expected, 1e-12);
  return 0;
}
