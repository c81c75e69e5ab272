// flags: -lm
// Split mode: the forward sweep gives a tape, the reverse sweep takes a seed and the tape. The argument changes in between.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_noret;

extern void *__enzyme_augmentfwd(void *, ...);
extern void __enzyme_reverse(void *, ...);

double cubes(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i] * x[i];
  return sum;
}

void square_in_place(double *x, int n) {
  for (int i = 0; i < n; i++)
    x[i] *= x[i];
}

int main(void) {
  double x[4] = {1, 2, 3, 4}, dx[4] = {0};
  void *tape = __enzyme_augmentfwd((void *)cubes, enzyme_noret, enzyme_dup, x, dx, enzyme_const, 4);
  for (int i = 0; i < 4; i++)
    x[i] = -1000;
  __enzyme_reverse((void *)cubes, enzyme_noret, enzyme_dup, x, dx, enzyme_const, 4, 2.0, tape);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dx[i], 6.0 * (i + 1) * (i + 1), 1e-12);

  double y[3] = {1, 2, 3}, dy[3] = {0};
  tape = __enzyme_augmentfwd((void *)square_in_place, enzyme_dup, y, dy, enzyme_const, 3);
  for (int i = 0; i < 3; i++) {
    CHECK_CLOSE(y[i], (i + 1.0) * (i + 1.0), 1e-12);
    dy[i] = 1;
  }
  __enzyme_reverse((void *)square_in_place, enzyme_dup, y, dy, enzyme_const, 3, tape);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dy[i], 2.0 * (i + 1), 1e-12);
  return 0;
}
