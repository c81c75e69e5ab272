// flags: -lm
// Inner loops that do not run, in nests that need a tape: their trip counts are known before, but mean nothing where a test keeps control away from them.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

double remainder_loop(const double *x, long n, long m) {
  double s = 1;
  for (long i = 0; i < n; i++)
    for (long j = m & ~7; j != m; j++) {
      if (s > 1e9)
        abort();
      s = s * x[i] * s + x[j];
    }
  return s;
}

// The bound makes sense only where it is asked for.
double asked_first(const double *x, long n, long m) {
  double s = 1;
  int valid = m < 9;
  long bound = valid ? m : 0x1fffffffffffffff;
  for (long i = 0; i < n; i++)
    if (valid)
      for (long j = 0; j < bound; j++)
        s = s * x[i] * 0.5 + sin(s) * x[j];
  return s;
}

// As before, but the question is another one each time.
double asked_each_time(const double *x, long n, long m) {
  double s = 1;
  long bound = m < 9 ? m : 0x1fffffffffffffff;
  for (long i = 0; i < n; i++)
    if (x[i] > 0.25 && m < 9)
      for (long j = 0; j < bound; j++)
        s = s * x[i] * 0.5 + sin(s) * x[j];
  return s;
}

static void check(double (*f)(const double *, long, long), double *dx, long m) {
  double x[10];
  for (int i = 0; i < 10; i++)
    x[i] = 0.1 * (i + 1);
  for (int i = 0; i < 10; i++) {
    double at = x[i], step = 1e-6;
    x[i] = at + step;
    double more = f(x, 3, m);
    x[i] = at - step;
    double less = f(x, 3, m);
    x[i] = at;
    CHECK_CLOSE(dx[i], (more - less) / (2 * step), 1e-6);
  }
}

int main(void) {
  double x[10];
  for (int i = 0; i < 10; i++)
    x[i] = 0.1 * (i + 1);
  for (long m = 0; m <= 9; m++) {
    double d1[10] = {0}, d2[10] = {0}, d3[10] = {0};
    __enzyme_autodiff((void *)remainder_loop, enzyme_dup, x, d1, enzyme_const, 3L, enzyme_const, m);
    check(remainder_loop, d1, m);
    __enzyme_autodiff((void *)asked_first, enzyme_dup, x, d2, enzyme_const, 3L, enzyme_const, m);
    check(asked_first, d2, m);
    __enzyme_autodiff((void *)asked_each_time, enzyme_dup, x, d3, enzyme_const, 3L, enzyme_const, m);
    check(asked_each_time, d3, m);
  }
  return 0;
}
