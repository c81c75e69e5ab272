// flags: -D_FORTIFY_SOURCE=2 -Wno-#warnings -lm
// glibc's checked versions of memcpy and its relatives.
#include "check.h"
#include <string.h>

void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;

double function(const double *x, int n) {
  double shifted[8], zeros[8];
  char text[32];
  memcpy(shifted, x, n * sizeof(double));
  memmove(shifted + 1, shifted, (n - 1) * sizeof(double));
  memset(zeros, 0, n * sizeof(double));
  snprintf(text, n + 20, "%d numbers", n);
  strcat(text, "!");
  double sum = strlen(text) > 3 ? 0 : 7;
  for (int i = 0; i < n; i++)
    sum += (shifted[i] + zeros[i]) * shifted[i];
  return sum;
}

int main(int count, char **arguments) {
  double x[4] = {1, 2, 3, 4}, dx[4] = {0}, tangent[4] = {1, 1, 1, 1};
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_const, 3 + count);
  CHECK_CLOSE(dx[0], 4, 1e-12);
  CHECK_CLOSE(dx[1], 4, 1e-12);
  CHECK_CLOSE(dx[3], 0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, enzyme_dup, x, tangent, enzyme_const, 3 + count), 14, 1e-12);
  return 0;
}
