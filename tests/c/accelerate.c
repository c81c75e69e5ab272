// flags: -lm
// `__enzyme_accelerate` runs a function itself, compiled as derivatives are; what calls it is differentiated through the function's body.
#include "check.h"

extern void __enzyme_accelerate(void *, ...);
extern double __enzyme_accelerate_value(void *, ...);
extern double __enzyme_autodiff(void *, ...);
extern double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;

enum { SIZE = 24 };

__attribute__((noinline)) static void product(const double *restrict a, const double *restrict b, double *restrict c, int n) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k < n; k++) {
        sum += a[i * n + k] * b[k * n + j];
      }
      c[i * n + j] = sum;
    }
  }
}

static double cube(double x) { return x * x * x; }

static double energy(const double *a) {
  double c[SIZE * SIZE];
  __enzyme_accelerate((void *)product, a, a, c, SIZE);
  double sum = 0;
  for (int i = 0; i < SIZE * SIZE; i++) {
    sum += __enzyme_accelerate_value((void *)cube, c[i]);
  }
  return sum;
}

// A gradient that is deliberately not the true one, so that its use shows.
__attribute__((noinline)) void cube_in_place(double *x) { *x = *x * *x * *x; }

void *cube_augmented(double *x, double *dx) {
  (void)dx;
  double *kept = malloc(sizeof *kept);
  *kept = *x;
  cube_in_place(x);
  return kept;
}

void cube_reverse(double *x, double *dx, void *tape) {
  (void)x;
  *dx = *dx * 100.0 * *(double *)tape;
  free(tape);
}

void *__enzyme_register_gradient_cube[] = {(void *)cube_in_place, (void *)cube_augmented, (void *)cube_reverse};

static double with_rule(double x) {
  cube_in_place(&x);
  return x;
}

static double through_rule(double x) { return __enzyme_accelerate_value((void *)with_rule, x); }

static double twice(double x) { return 2 * __enzyme_accelerate_value((void *)cube, x); }

static double slope(double x) { return __enzyme_autodiff((void *)twice, x); }

int main(void) {
  static double a[SIZE * SIZE], da[SIZE * SIZE], plain[SIZE * SIZE], fast[SIZE * SIZE];
  for (int i = 0; i < SIZE * SIZE; i++) {
    a[i] = sin(i * 0.7) * 0.3;
  }
  product(a, a, plain, SIZE);
  __enzyme_accelerate((void *)product, a, a, fast, SIZE);
  for (int i = 0; i < SIZE * SIZE; i++) {
    CHECK_CLOSE(fast[i], plain[i], 1e-13);
  }
  CHECK_CLOSE(__enzyme_accelerate_value((void *)cube, 3.0), 27, 0);

  __enzyme_autodiff((void *)energy, enzyme_dup, a, da);
  for (int i = 0; i < SIZE * SIZE; i += 97) {
    double step = 1e-5, here = a[i];
    a[i] = here + step;
    double above = energy(a);
    a[i] = here - step;
    double below = energy(a);
    a[i] = here;
    CHECK_CLOSE(da[i], (above - below) / (2 * step), 1e-6);
  }
  CHECK_CLOSE(slope(2), 24, 1e-14);
  CHECK_CLOSE(__enzyme_autodiff((void *)slope, 2.0), 24, 1e-14);
  CHECK_CLOSE(__enzyme_fwddiff((void *)twice, 2.0, 1.0), 24, 1e-14);
  CHECK_CLOSE(through_rule(3), 27, 1e-14);
  CHECK_CLOSE(__enzyme_autodiff((void *)through_rule, 3.0), 300, 1e-12);
  return 0;
}
