// refused: error: derivatives would flow through memory that 'last' points to, which outlives the call [FZ0204]
// A work array that was made before: nobody knows a shadow of it.
#include <stdlib.h>
#include <string.h>

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

double *last;

double function(double *x, int n) {
  double sum = 0;
  memcpy(last, x, n * sizeof(double)); // here
  for (int i = 0; i < n; i++)
    sum += last[i] * last[i];
  return sum;
}

int main(void) {
  double x[2] = {1, 2}, dx[2] = {0, 0};
  last = malloc(sizeof x);
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_const, 2);
  return 0;
}
