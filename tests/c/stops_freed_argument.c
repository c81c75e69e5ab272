// flags: -lm; stops: Ferrozyme: memory of an argument was freed, and a gradient that is not zero would be lost with it [FZ0705]
// Memory of the caller's that the function frees: its gradient would be lost with its shadow.
#include "check.h"

extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);

struct pair {
  double *values;
  int count;
};

double function(struct pair *p) {
  double sum = 0;
  for (int i = 0; i < p->count; i++)
    sum += p->values[i] * p->values[i];
  free(p->values);
  p->values = 0;
  return sum;
}

int main(void) {
  struct pair p = {malloc(2 * sizeof(double)), 2}, dp = {calloc(2, sizeof(double)), 2};
  p.values[0] = 3;
  p.values[1] = 4;
  __enzyme_autodiff((void *)function, enzyme_dup, &p, &dp);
  return 0;
}
