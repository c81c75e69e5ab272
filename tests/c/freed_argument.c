// flags: -lm
// Memory of the caller's that the function frees, in which there is no gradient: a shadow of it is freed as well, whatever lies behind its last number.
#include "check.h"
#include <string.h>

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

struct buffer {
  double *values;
  int count;
};

double function(struct buffer *b, double x) {
  double sum = 0;
  for (int i = 0; i < b->count; i++)
    b->values[i] = x * (i + 1);
  for (int i = 0; i < b->count; i++)
    sum += b->values[i] * b->values[i];
  free(b->values);
  b->values = 0;
  return sum;
}

int main(void) {
  for (int n = 1; n < 20; n++) {
    struct buffer b = {malloc(n * sizeof(double)), n}, db = {malloc(n * sizeof(double)), n};
    void *dirty = malloc(n * sizeof(double));
    memset(dirty, 0x41, n * sizeof(double));
    free(db.values);
    free(dirty);
    db.values = malloc(n * sizeof(double));
    memset(db.values, 0, n * sizeof(double));
    double expected = 0;
    for (int i = 1; i <= n; i++)
      expected += 2 * 3.0 * i * i;
    CHECK_CLOSE(__enzyme_autodiff((void *)function, enzyme_dup, &b, &db, 3.0), expected, 1e-12);
    CHECK(b.values == 0 && db.values == 0);
  }
  return 0;
}
