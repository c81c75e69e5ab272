// flags: -lm -fno-signed-zeros
// Sums of tangents that are zero may be left out, sums of the program itself may not: zero times infinity is no number.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_width;
void __enzyme_fwddiff(void *, ...);

enum { N = 4 };

void add(double s, const double *restrict x, double *restrict y, int n) {
  for (int i = 0; i < n; i++)
    y[i] += s * x[i];
}

int main(void) {
  double x[N] = {INFINITY, 1, 2, 3}, dx[4][N] = {{0, 1, 0, 1}}, y[N] = {1, 2, 3, 4}, dy[4][N] = {0};
  volatile double zero = 0;
  __enzyme_fwddiff((void *)add, enzyme_width, 4, enzyme_dup, zero, 5.0, 1.0, 0.0, 0.0, enzyme_dup, x, dx[0], dx[1], dx[2], dx[3], enzyme_dup, y, dy[0], dy[1], dy[2], dy[3],
                   enzyme_const, N);
  CHECK(isnan(y[0]));
  CHECK_CLOSE(y[3], 4.0, 0);
  CHECK_CLOSE(dy[0][3], 15.0, 0);
  CHECK_CLOSE(dy[1][3], 3.0, 0);
  CHECK_CLOSE(dy[2][3], 0.0, 0);
  return 0;
}
