// flags: -lm
// Insertion sort in place, then a weighted sum: the derivative follows the permutation.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double weighted_sorted(const double *x, int n) {
  double sorted[16];
  for (int i = 0; i < n; i++)
    sorted[i] = x[i];
  for (int i = 1; i < n; i++) {
    double key = sorted[i];
    int j = i - 1;
    while (j >= 0 && sorted[j] > key) {
      sorted[j + 1] = sorted[j];
      j--;
    }
    sorted[j + 1] = key;
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += (i + 1) * sorted[i] * sorted[i];
  return sum;
}

int main(void) {
  double x[6] = {3, -1, 4, 1, 5, 0.5}, dx[6] = {0};
  int rank[6] = {4, 1, 5, 3, 6, 2};
  __enzyme_autodiff((void *)weighted_sorted, enzyme_dup, x, dx, enzyme_const, 6);
  for (int i = 0; i < 6; i++)
    CHECK_CLOSE(dx[i], 2 * rank[i] * x[i], 1e-12);
  return 0;
}
