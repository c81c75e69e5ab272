// flags: -lm
// What derivatives are where there is none, or more than one.
#include "check.h"

struct Two {
  double x, y;
};
double __enzyme_autodiff(void *, ...);
extern struct Two __enzyme_autodiff2(void *, ...);

double f_sqrt(double x) { return sqrt(x); }
double f_fabs(double x) { return fabs(x); }
double f_max(double x, double y) { return fmax(x, y); }
double f_min(double x, double y) { return fmin(x, y); }
double f_pow(double x, double y) { return pow(x, y); }
double f_norm(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sqrt(sum);
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)f_sqrt, 0.0), 0.0, 0);
  CHECK_CLOSE(__enzyme_autodiff((void *)f_fabs, 0.0), 1.0, 0);
  struct Two d = __enzyme_autodiff2((void *)f_max, 2.0, 2.0);
  CHECK_CLOSE(d.x, 1.0, 0);
  CHECK_CLOSE(d.y, 0.0, 0);
  d = __enzyme_autodiff2((void *)f_min, 2.0, 2.0);
  CHECK_CLOSE(d.x, 0.0, 0);
  CHECK_CLOSE(d.y, 1.0, 0);
  d = __enzyme_autodiff2((void *)f_pow, 0.0, 2.0);
  CHECK_CLOSE(d.x, 0.0, 0);
  CHECK_CLOSE(d.y, 0.0, 0);
  d = __enzyme_autodiff2((void *)f_pow, 0.0, 1.0);
  CHECK_CLOSE(d.x, 1.0, 0);
  double x[3] = {0}, dx[3] = {0};
  __enzyme_autodiff((void *)f_norm, x, dx, 3);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 0.0, 0);
  return 0;
}
