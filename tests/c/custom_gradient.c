// flags: -lm
// A gradient that the program registers for a function. It is deliberately not the true one, so that its use shows.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static int forward_calls, reverse_calls;

__attribute__((noinline)) void cube_in_place(double *x) { *x = *x * *x * *x; }

void *cube_augmented(double *x, double *dx) {
  (void)dx;
  forward_calls++;
  double *kept = malloc(sizeof *kept);
  *kept = *x;
  cube_in_place(x);
  return kept;
}

void cube_reverse(double *x, double *dx, void *tape) {
  (void)x;
  reverse_calls++;
  double kept = *(double *)tape;
  free(tape);
  *dx = *dx * 100.0 * kept;
}

void *__enzyme_register_gradient_cube[] = {(void *)cube_in_place, (void *)cube_augmented, (void *)cube_reverse};

double twice(double x) {
  cube_in_place(&x);
  return x * 2;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)twice, 3.0), 2 * 100.0 * 3.0, 1e-12);
  CHECK(forward_calls == 1 && reverse_calls == 1);
  return 0;
}
