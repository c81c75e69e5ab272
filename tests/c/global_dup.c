// flags: -lm
// A global passed with a shadow of its own.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double weights[4] = {1, 2, 3, 4};
double dweights[4];

double loss(const double *w, const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += w[i] * x[i];
  return sum * sum;
}

int main(void) {
  double x[4] = {0.5, 0.25, -1, 2};
  __enzyme_autodiff((void *)loss, enzyme_dup, weights, dweights, enzyme_const, x, enzyme_const, 4);
  double sum = 0;
  for (int i = 0; i < 4; i++)
    sum += weights[i] * x[i];
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dweights[i], 2 * sum * x[i], 1e-12);
  return 0;
}
