// Checks both modes of `double function(double *x, int n)` against central differences.
#ifndef DIFFERENCES_H
#define DIFFERENCES_H

#include "check.h"
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
extern int enzyme_dup, enzyme_const;
extern void __enzyme_autodiff(void *, ...);
extern double __enzyme_fwddiff(void *, ...);
#ifdef __cplusplus
}
#endif

enum { COUNT = 8 };

static double function(double *x, int n);

static inline double at(const double *x, int index, double step) {
  double moved[COUNT];
  memcpy(moved, x, sizeof moved);
  moved[index] += step;
  return function(moved, COUNT);
}

int main(void) {
  double x[COUNT], work[COUNT], dx[COUNT] = {0};
  for (int i = 0; i < COUNT; i++)
    x[i] = 0.3 + 0.37 * ((i * 5) % 7) + 0.01 * i;
  memcpy(work, x, sizeof x);
  __enzyme_autodiff((void *)function, enzyme_dup, work, dx, enzyme_const, (int)COUNT);
  for (int i = 0; i < COUNT; i++) {
    double step = 1e-6, difference = (at(x, i, step) - at(x, i, -step)) / (2 * step);
    CHECK_CLOSE(dx[i], difference, 1e-6);
    double direction[COUNT] = {0};
    direction[i] = 1;
    memcpy(work, x, sizeof x);
    CHECK_CLOSE(__enzyme_fwddiff((void *)function, enzyme_dup, work, direction, enzyme_const, (int)COUNT), difference, 1e-6);
  }
  return 0;
}

#endif
