// flags: -lm; stops: Ferrozyme: derivatives would flow through memory that a global variable pointed to before the derivative was called, and which has no shadow [FZ0701]
// A work array in a structure that is written as well: whether it was made before shows when the program runs.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static struct {
  double *table;
  double sum;
} state;

double function(double *x, int n) {
  state.sum = 0;
  for (int i = 0; i < n; i++)
    state.table[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    state.sum += state.table[i];
  return state.sum;
}

int main(void) {
  double x[2] = {1, 2}, dx[2] = {0, 0};
  state.table = malloc(sizeof x);
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_const, 2);
  return 0;
}
