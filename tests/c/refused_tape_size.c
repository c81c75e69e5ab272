// refused: error: the tape of 'step' needs more than the 1 byte of 'enzyme_allocated' [FZ0606]
#include "check.h"

extern int enzyme_dup, enzyme_allocated, enzyme_tape;
extern void __enzyme_augmentfwd(void *, ...);
extern void __enzyme_reverse(void *, ...);

void step(double *x) {
  x[0] = x[0] * x[0];
  x[1] = sin(x[1]) * x[0];
}

int main(void) {
  double x[2] = {3, 0.5}, dx[2] = {0, 0};
  char tape[1];
  __enzyme_augmentfwd((void *)step, enzyme_allocated, 1, enzyme_tape, tape, enzyme_dup, x, dx); // here
  __enzyme_reverse((void *)step, enzyme_allocated, 1, enzyme_tape, tape, enzyme_dup, x, dx);
  return 0;
}
