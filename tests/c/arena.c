// flags: -lm
// Memory from an arena: addresses are rounded up as numbers.
#include "check.h"
#include <stdint.h>

void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;

struct arena {
  unsigned char *base;
  size_t used, size;
};

static void *take(struct arena *from, size_t bytes, size_t alignment) {
  uintptr_t start = (uintptr_t)(from->base + from->used);
  uintptr_t aligned = (start + alignment - 1) & ~(uintptr_t)(alignment - 1);
  from->used = aligned - (uintptr_t)from->base + bytes;
  if (from->used > from->size)
    abort();
  return (void *)aligned;
}

double from_arena(const double *x, int n) {
  struct arena all = {malloc(4096), 0, 4096};
  double *squares = take(&all, n * sizeof(double), 16), *sines = take(&all, n * sizeof(double), 32);
  double sum = 0;
  for (int i = 0; i < n; i++)
    squares[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sines[i] = sin(squares[i]);
  for (int i = 0; i < n; i++)
    sum += squares[i] * sines[i];
  free(all.base);
  return sum;
}

// What was allocated stands before the aligned memory.
double with_header(const double *x, int n) {
  char *raw = malloc(n * sizeof(double) + 64 + sizeof(void *));
  double *values = (double *)(((uintptr_t)raw + sizeof(void *) + 63) & ~(uintptr_t)63);
  ((void **)values)[-1] = raw;
  double sum = 0;
  for (int i = 0; i < n; i++)
    values[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += values[i] * sin(values[i]);
  free(((void **)values)[-1]);
  return sum;
}

int main(void) {
  double (*functions[])(const double *, int) = {from_arena, with_header};
  double x[5] = {0.1, 0.2, 0.3, 0.4, 0.5}, tangent[5] = {1, 1, 1, 1, 1}, dx[2][5] = {{0}};
  __enzyme_autodiff((void *)from_arena, enzyme_dup, x, dx[0], enzyme_const, 5);
  __enzyme_autodiff((void *)with_header, enzyme_dup, x, dx[1], enzyme_const, 5);
  double all = 0;
  for (int i = 0; i < 5; i++) {
    double y = x[i] * x[i], expected = (cos(y) * y + sin(y)) * 2 * x[i];
    all += expected;
    CHECK_CLOSE(dx[0][i], expected, 1e-12);
    CHECK_CLOSE(dx[1][i], expected, 1e-12);
  }
  CHECK_CLOSE(functions[0](x, 5), functions[1](x, 5), 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)from_arena, enzyme_dup, x, tangent, enzyme_const, 5), all, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)with_header, enzyme_dup, x, tangent, enzyme_const, 5), all, 1e-12);
  return 0;
}
