// flags: -lm -fsanitize=address
// A derivative is looked at by the sanitizer that looks at the program; markers, which nothing defines, are not.
#include "check.h"
#include <stdlib.h>

double __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;

double sum_of_squares(const double *x, int n) {
  double *copy = malloc(n * sizeof(double)), sum = 0;
  for (int i = 0; i < n; i++)
    copy[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += copy[i];
  free(copy);
  return sum;
}

int main(void) {
  double x[3] = {1, 2, 3}, dx[3] = {0};
  __enzyme_autodiff((void *)sum_of_squares, enzyme_dup, x, dx, enzyme_const, 3);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 2 * x[i], 1e-12);
  return 0;
}
