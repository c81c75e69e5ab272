// flags: -lm
// bsearch gives an element of the table, whose derivative is the table's.
#include "check.h"

void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;

struct entry {
  int key;
  double value;
};

static int by_key(const void *a, const void *b) { return ((const struct entry *)a)->key - ((const struct entry *)b)->key; }
static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double found_by_key(struct entry *table, int n) {
  struct entry wanted = {5, 0};
  struct entry *found = bsearch(&wanted, table, n, sizeof *table, by_key);
  return found ? found->value * found->value : 0;
}

double found_by_value(double *x, int n) {
  double wanted = 0.3;
  double *found = bsearch(&wanted, x, n, sizeof *x, by_value);
  return found ? found[0] * found[1] : 0;
}

int main(void) {
  struct entry table[3] = {{1, 2}, {5, 3}, {9, 4}}, gradient[3] = {{1, 0}, {5, 0}, {9, 0}};
  __enzyme_autodiff((void *)found_by_key, enzyme_dup, table, gradient, enzyme_const, 3);
  CHECK_CLOSE(gradient[0].value, 0, 1e-12);
  CHECK_CLOSE(gradient[1].value, 6, 1e-12);
  double x[4] = {0.1, 0.3, 0.5, 0.7}, dx[4] = {0}, tangent[4] = {0, 1, 1, 0};
  __enzyme_autodiff((void *)found_by_value, enzyme_dup, x, dx, enzyme_const, 4);
  CHECK_CLOSE(dx[1], 0.5, 1e-12);
  CHECK_CLOSE(dx[2], 0.3, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)found_by_value, enzyme_dup, x, tangent, enzyme_const, 4), 0.8, 1e-12);
  return 0;
}
