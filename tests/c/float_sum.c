// flags: -lm
// Single precision throughout, and mixtures with double.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_out;
float __enzyme_autodiff(void *, ...);
double __enzyme_autodiff_double(void *, ...);

float mean_square(const float *x, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sum / n;
}

double mixed(float x, double y) { return x * y + (float)(y * y) + sinf(x); }

int main(void) {
  float x[4] = {1, 2, 3, 4}, dx[4] = {0};
  __enzyme_autodiff((void *)mean_square, enzyme_dup, x, dx, enzyme_const, 4);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dx[i], x[i] / 2, 1e-6);
  // The variadic call passes a float as a double; the function takes a float.
  CHECK_CLOSE(__enzyme_autodiff_double((void *)mixed, enzyme_const, 2.0f, enzyme_out, 3.0), 2 + 6, 1e-5);
  return 0;
}
