// flags: -lm
// Loops with break and continue, whose length depends on the data: Newton's method.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double cube_root(double a) {
  double x = a;
  int steps = 0;
  while (1) {
    double next = x - (x * x * x - a) / (3 * x * x);
    if (fabs(next - x) < 1e-14 || ++steps > 100) {
      x = next;
      break;
    }
    x = next;
  }
  return x;
}

double sum_positive(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] < 0)
      continue;
    if (x[i] > 100)
      break;
    sum += x[i] * x[i];
  }
  return sum;
}

int main(void) {
  double expected = pow(5.0, -2.0 / 3) / 3;
  CHECK_CLOSE(__enzyme_autodiff((void *)cube_root, 5.0), expected, 1e-10);
  CHECK_CLOSE(__enzyme_fwddiff((void *)cube_root, 5.0, 1.0), expected, 1e-10);
  double x[6] = {1, -2, 3, 4, 1000, 5}, dx[6] = {0}, slope[6] = {2, 0, 6, 8, 0, 0};
  __enzyme_autodiff((void *)sum_positive, x, dx, 6);
  for (int i = 0; i < 6; i++)
    CHECK_CLOSE(dx[i], slope[i], 1e-12);
  return 0;
}
