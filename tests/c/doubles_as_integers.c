// flags: -lm
// Doubles that travel as integers: swapped as words, copied byte by byte in words.
#include "check.h"
#include <stdint.h>
#include <string.h>

double __enzyme_autodiff(void *, ...);

static void swap_words(void *a, void *b) {
  uint64_t x, y;
  memcpy(&x, a, 8);
  memcpy(&y, b, 8);
  memcpy(a, &y, 8);
  memcpy(b, &x, 8);
}

double function(const double *x) {
  double a = x[0], b = x[1] * x[1];
  swap_words(&a, &b);
  return a * 2 + b * 3;
}

int main(void) {
  double x[2] = {5, 7}, dx[2] = {0};
  __enzyme_autodiff((void *)function, x, dx);
  CHECK_CLOSE(dx[0], 3, 1e-12);
  CHECK_CLOSE(dx[1], 28, 1e-12);
  return 0;
}
