// flags: -lm
// Functions behind a pointer from outside that call functions for which the program says something: a gradient (deliberately not the true one, so that its use shows), a derivative, and which other function one is like.
#include "check.h"

extern int enzyme_const, enzyme_out, enzyme_dup;

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static void cube_in_place(double *x) { *x = *x * *x * *x; }

static void *cube_augmented(double *x, double *dx) {
  (void)dx;
  double *kept = malloc(sizeof *kept);
  *kept = *x;
  cube_in_place(x);
  return kept;
}

static void cube_reverse(double *x, double *dx, void *tape) {
  (void)x;
  *dx = *dx * 100.0 * *(double *)tape;
  free(tape);
}

void *__enzyme_register_gradient_cube[] = {(void *)cube_in_place, (void *)cube_augmented, (void *)cube_reverse};

static double twice_cubed(double x) {
  cube_in_place(&x);
  return x * 2;
}

static double square(double x) { return x * x; }

static double square_derivative(double x, double dx) { return 1000 * x * dx; }

void *__enzyme_register_derivative_square[] = {(void *)square, (void *)square_derivative};

static double squared(double x) { return square(x) + x; }

static double log_of_more(double x) { return log(1 + x); }

void *__enzyme_function_like_log_of_more[] = {(void *)log_of_more, "log1p"};

static double like(double x) { return log_of_more(x) * 3; }

double call(double (*f)(double), double x) { return f(x); }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)call, enzyme_const, twice_cubed, enzyme_out, 3.0), 2 * 100.0 * 3.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)call, enzyme_const, like, enzyme_out, 3.0), 0.75, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)call, enzyme_const, squared, enzyme_dup, 3.0, 1.0), 3001.0, 1e-12);
  return 0;
}
