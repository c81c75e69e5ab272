// flags: -lm
// An array that grows by realloc while it is filled.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x, int n) {
  int capacity = 1, length = 0;
  double *values = malloc(capacity * sizeof *values);
  double term = 1;
  for (int i = 0; i < n; i++) {
    if (length == capacity) {
      capacity *= 2;
      values = realloc(values, capacity * sizeof *values);
    }
    values[length++] = term;
    term *= x / (i + 1);
  }
  double sum = 0;
  for (int i = 0; i < length; i++)
    sum += values[i];
  free(values);
  return sum;
}

int main(void) {
  // The series of exp is its own derivative.
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.8, 20), exp(0.8), 1e-12);
  return 0;
}
