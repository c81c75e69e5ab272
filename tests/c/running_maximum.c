// flags: -lm
// Maxima over arrays: by comparison, by fmax, by the index of the largest, and by pointers.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double by_comparison(const double *x, int n) {
  double most = x[0];
  for (int i = 1; i < n; i++)
    if (x[i] > most)
      most = x[i];
  return most * most;
}
double by_fmax(const double *x, int n) {
  double most = -INFINITY;
  for (int i = 0; i < n; i++)
    most = fmax(most, x[i]);
  return most * most;
}
double by_index(const double *x, int n) {
  int best = 0;
  for (int i = 1; i < n; i++)
    best = x[i] > x[best] ? i : best;
  return x[best] * x[best];
}
double by_pointer(const double *x, int n) {
  const double *best = x;
  for (const double *p = x + 1; p != x + n; p++)
    if (*p > *best)
      best = p;
  return *best * *best;
}

int main(void) {
  double x[5] = {1, 4, 2, 7, 3};
  double (*all[])(const double *, int) = {by_comparison, by_fmax, by_index, by_pointer};
  (void)all;
  for (int k = 0; k < 4; k++) {
    double dx[5] = {0};
    switch (k) {
    case 0: __enzyme_autodiff((void *)by_comparison, enzyme_dup, x, dx, enzyme_const, 5); break;
    case 1: __enzyme_autodiff((void *)by_fmax, enzyme_dup, x, dx, enzyme_const, 5); break;
    case 2: __enzyme_autodiff((void *)by_index, enzyme_dup, x, dx, enzyme_const, 5); break;
    default: __enzyme_autodiff((void *)by_pointer, enzyme_dup, x, dx, enzyme_const, 5);
    }
    for (int i = 0; i < 5; i++)
      CHECK_CLOSE(dx[i], i == 3 ? 14 : 0, 1e-12);
  }
  return 0;
}
