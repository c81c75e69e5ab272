// flags: -lm
// An allocator of the program's own, which the compiler learns to treat as malloc and free.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static int living;

__attribute__((noinline)) void *pool_get(size_t size) {
  living++;
  return malloc(size);
}
__attribute__((noinline)) void pool_put(void *p) {
  living--;
  free(p);
}

void *__enzyme_allocation_like_pool[4] = {(void *)pool_get, (void *)0, (void *)"", (void *)pool_put};

double function(double x) {
  double *p = pool_get(2 * sizeof *p);
  p[0] = x * x;
  p[1] = p[0] * x;
  double result = p[0] + p[1];
  pool_put(p);
  return result;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6.0 + 27.0, 1e-12);
  CHECK(living == 0);
  return 0;
}
