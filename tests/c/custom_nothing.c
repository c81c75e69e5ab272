// flags: -lm
// Rules that return nothing, for a function that returns nothing: all goes through memory.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static int calls;

__attribute__((noinline)) void square(const double *x, double *y) { *y = *x * *x; }

// Not the true ones, so that it shows who was called.
void augmented_square(const double *x, double *dx, double *y, double *dy) {
  calls += 1;
  *y = *x * *x;
}
void reverse_square(const double *x, double *dx, double *y, double *dy) {
  calls += 10;
  *dx += 100 * *dy;
  *dy = 0;
}
void forward_square(const double *x, const double *dx, double *y, double *dy) {
  *y = *x * *x;
  *dy = 1000 * *dx;
}

void *__enzyme_register_gradient_square[] = {(void *)square, (void *)augmented_square, (void *)reverse_square};
void *__enzyme_register_derivative_square[] = {(void *)square, (void *)forward_square};

double function(double x) {
  double y;
  square(&x, &y);
  return 3 * y;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 2.0), 300, 1e-12);
  CHECK(calls == 11);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 2.0, 1.0), 3000, 1e-12);
  return 0;
}
