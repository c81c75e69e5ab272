// flags: -lm
// A registered function that frees nothing, declared so.
#include "check.h"

double __enzyme_autodiff(void *, ...);

__attribute__((noinline)) double inner(const double *x) { return x[0] * x[1]; }
void *__enzyme_nofree_inner[] = {(void *)inner};

double outer(const double *x) { return inner(x) * x[0]; }

int main(void) {
  double x[2] = {3, 5}, dx[2] = {0};
  __enzyme_autodiff((void *)outer, x, dx);
  CHECK_CLOSE(dx[0], 30, 1e-12);
  CHECK_CLOSE(dx[1], 9, 1e-12);
  return 0;
}
