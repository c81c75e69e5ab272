// flags: -lm
// The C library's sort, of which no source is at hand: the derivative follows the permutation.
#include "differences.h"

static int compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return left < right ? -1 : left > right;
}

static double function(double *x, int n) {
  double sorted[COUNT];
  memcpy(sorted, x, n * sizeof *x);
  qsort(sorted, n, sizeof *sorted, compare);
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += (i + 1) * sorted[i] * sorted[i];
  return sum;
}
