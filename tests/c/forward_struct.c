// flags: -lm
// Forward mode through structs, memory from malloc, and outputs in place.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_dupnoneed;
void __enzyme_fwddiff(void *, ...);

struct Series {
  int length;
  double *values;
  double mean;
};

void normalise(struct Series *s) {
  double *copy = malloc(s->length * sizeof *copy), sum = 0;
  for (int i = 0; i < s->length; i++) {
    copy[i] = s->values[i];
    sum += copy[i];
  }
  s->mean = sum / s->length;
  for (int i = 0; i < s->length; i++)
    s->values[i] = copy[i] / s->mean;
  free(copy);
}

int main(void) {
  double v[3] = {1, 2, 3}, dv[3] = {1, 0, 0};
  struct Series s = {3, v, 0}, ds = {3, dv, 0};
  __enzyme_fwddiff((void *)normalise, enzyme_dup, &s, &ds);
  CHECK_CLOSE(s.mean, 2, 1e-12);
  CHECK_CLOSE(ds.mean, 1.0 / 3, 1e-12);
  double start[3] = {1, 2, 3};
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dv[i], (i == 0 ? 0.5 : 0) - start[i] / 4 / 3, 1e-12);
  return 0;
}
