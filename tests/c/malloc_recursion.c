// flags: -lm
// Memory allocated in recursion: a merge of partial products.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static double product(const double *x, int n) {
  if (n == 1)
    return x[0];
  int half = n / 2;
  double *copy = malloc(n * sizeof *copy);
  for (int i = 0; i < n; i++)
    copy[i] = x[i];
  double result = product(copy, half) * product(copy + half, n - half);
  free(copy);
  return result;
}

double entry(const double *x, int n) { return product(x, n); }

int main(void) {
  enum { N = 7 };
  double x[N] = {1, 2, 0.5, -1.5, 3, 1.25, 0.75}, dx[N] = {0};
  __enzyme_autodiff((void *)entry, x, dx, N);
  double all = entry(x, N);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(dx[i], all / x[i], 1e-12);
  return 0;
}
