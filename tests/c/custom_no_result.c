// flags: -lm
// Rules for functions of values whose forward sweep gives nothing, or only what is kept: the functions themselves give their results.
#include "check.h"

double __enzyme_autodiff(void *, ...);

// The bits of a float give a first guess, which has no derivative of its own.
__attribute__((noinline)) float rough_root(float x) {
  int bits = *(int *)&x;
  bits = (bits >> 1) + 0x1fbd1df5;
  return *(float *)&bits;
}
void augmented_root(float x) {}
float reverse_root(float x, float adjoint) { return adjoint / (2 * rough_root(x)); }
void *__enzyme_register_gradient_root[] = {(void *)rough_root, (void *)augmented_root, (void *)reverse_root};

__attribute__((noinline)) double power(double x, int n) { return pow(x, n); }
void *augmented_power(double x, int n) {
  double *kept = malloc(sizeof *kept);
  *kept = n * pow(x, n - 1);
  return kept;
}
// Not the true one, so that it shows who was called.
double reverse_power(double x, int n, double adjoint, void *tape) {
  double result = 100 * adjoint * *(double *)tape;
  free(tape);
  return result;
}
void *__enzyme_register_gradient_power[] = {(void *)power, (void *)augmented_power, (void *)reverse_power};

double root(double x) { return 3 * rough_root((float)x); }
// The result is needed in the reverse sweep, too.
double twice(double x) { double y = power(x, 3); return y * y; }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)root, 4.0), 3 / (2 * rough_root(4)), 1e-6);
  CHECK_CLOSE(__enzyme_autodiff((void *)twice, 2.0), 2 * 8 * 100 * 12.0, 1e-12);
  return 0;
}
