// flags: -lm
// Split mode with a tape that the caller provides: augmentsize, allocated, tape.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_allocated, enzyme_tape, enzyme_noret;

extern size_t __enzyme_augmentsize(void *, ...);
extern void __enzyme_augmentfwd(void *, ...);
extern void __enzyme_reverse(void *, ...);

// Overwrites what its reverse sweep needs, so there is something to keep.
void step(double *x) {
  x[0] = x[0] * x[0];
  x[1] = sin(x[1]) * x[0];
}

int main(void) {
  double x[2] = {3, 0.5}, dx[2] = {0, 0};
  size_t size = __enzyme_augmentsize((void *)step, enzyme_dup);
  CHECK(size < 4096);
  char *tape = malloc(size + 1);
  __enzyme_augmentfwd((void *)step, enzyme_allocated, size, enzyme_tape, tape, enzyme_dup, x, dx);
  CHECK_CLOSE(x[0], 9.0, 1e-12);
  CHECK_CLOSE(x[1], 9.0 * sin(0.5), 1e-12);
  dx[0] = 0;
  dx[1] = 1;
  __enzyme_reverse((void *)step, enzyme_allocated, size, enzyme_tape, tape, enzyme_dup, x, dx);
  CHECK_CLOSE(dx[0], 6.0 * sin(0.5), 1e-12);
  CHECK_CLOSE(dx[1], 9.0 * cos(0.5), 1e-12);
  free(tape);
  return 0;
}
