// flags: -lm
// Minima and maxima of packed floats as inline assembly, and assembly without a word of it that keeps the compiler from reordering: how Eigen writes them.
#include "check.h"

void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup;

typedef double pair __attribute__((vector_size(16)));

static pair minimum(pair a, pair b) {
  pair result = b;
  __asm__("minpd %[a], %[result]" : [result] "+x"(result) : [a] "x"(a));
  return result;
}

static pair maximum(pair a, pair b) {
  pair result = b;
  __asm__("maxpd %[a], %[result]" : [result] "+x"(result) : [a] "x"(a));
  return result;
}

double clamped(const double *x) {
  pair values = {x[0], x[1]}, low = {0.2, 0.2}, high = {0.7, 0.7};
  pair inside = minimum(maximum(values, low), high);
  __asm__("" : "+g,x"(inside));
  __asm__("" : "+x"(inside));
  return inside[0] * x[0] + inside[1] * x[1];
}

int main(void) {
  double x[2] = {0.5, 0.9}, dx[2] = {0}, tangent[2] = {1, 1};
  __enzyme_autodiff((void *)clamped, enzyme_dup, x, dx);
  CHECK_CLOSE(dx[0], 1.0, 1e-12);
  CHECK_CLOSE(dx[1], 0.7, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)clamped, enzyme_dup, x, tangent), 1.7, 1e-12);
  return 0;
}
