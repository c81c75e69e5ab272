// flags: -lm
// A sort of the caller's array: the shadow of the output is consumed and permuted back.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);

void sort(double *x, int n) {
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && x[j - 1] > x[j]; j--) {
      double t = x[j];
      x[j] = x[j - 1];
      x[j - 1] = t;
    }
}

int main(void) {
  double x[5] = {3, 1, 5, 2, 4}, dx[5] = {10, 20, 30, 40, 50}, expected[5] = {30, 10, 50, 20, 40};
  __enzyme_autodiff((void *)sort, enzyme_dup, x, dx, enzyme_const, 5);
  for (int i = 0; i < 5; i++) {
    CHECK_CLOSE(x[i], i + 1, 1e-12);
    CHECK_CLOSE(dx[i], expected[i], 1e-12);
  }
  double y[4] = {4, 3, 2, 1}, dy[4] = {1, 2, 3, 4};
  __enzyme_fwddiff((void *)sort, enzyme_dup, y, dy, enzyme_const, 4);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dy[i], 4 - i, 1e-12);
  return 0;
}
