// flags: -lm
// enzyme_nofree: a tape that is used for several reverse sweeps.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_nofree, enzyme_noret;
extern void *__enzyme_augmentfwd(void *, ...);
extern void __enzyme_reverse(void *, ...);

void square_in_place(double *x, int n) {
  for (int i = 0; i < n; i++)
    x[i] *= x[i];
}

int main(void) {
  double x[3] = {1, 2, 3}, dx[3] = {0};
  void *tape = __enzyme_augmentfwd((void *)square_in_place, enzyme_nofree, enzyme_dup, x, dx, enzyme_const, 3);
  for (int round = 1; round <= 3; round++) {
    for (int i = 0; i < 3; i++)
      dx[i] = round;
    __enzyme_reverse((void *)square_in_place, enzyme_nofree, enzyme_dup, x, dx, enzyme_const, 3, tape);
    for (int i = 0; i < 3; i++)
      CHECK_CLOSE(dx[i], 2.0 * (i + 1) * round, 1e-12);
  }
  return 0;
}
