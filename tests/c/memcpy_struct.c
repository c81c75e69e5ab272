// flags: -lm
// Structs copied by assignment, memcpy and memmove; memory cleared by memset.
#include "check.h"
#include <string.h>

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

struct Body {
  double position[3];
  int id;
  double mass;
};

double function(const struct Body *bodies, int n) {
  struct Body copy[8];
  memcpy(copy, bodies, n * sizeof *bodies);
  struct Body first = copy[0];
  memmove(copy, copy + 1, (n - 1) * sizeof *copy);
  memset(&copy[n - 1], 0, sizeof copy[0]);
  double sum = first.mass * first.position[1];
  for (int i = 0; i < n; i++)
    sum += copy[i].mass * copy[i].mass * copy[i].position[0] * copy[i].id;
  return sum;
}

int main(void) {
  struct Body b[3] = {{{1, 2, 3}, 1, 2}, {{4, 5, 6}, 2, 3}, {{7, 8, 9}, 3, 4}}, db[3];
  memset(db, 0, sizeof db);
  __enzyme_autodiff((void *)function, enzyme_dup, b, db, enzyme_const, 3);
  CHECK_CLOSE(db[0].mass, 2, 1e-12);
  CHECK_CLOSE(db[0].position[1], 2, 1e-12);
  CHECK_CLOSE(db[0].position[0], 0, 1e-12);
  CHECK_CLOSE(db[1].mass, 2 * 3 * 4 * 2, 1e-12);
  CHECK_CLOSE(db[1].position[0], 9 * 2, 1e-12);
  CHECK_CLOSE(db[2].mass, 2 * 4 * 7 * 3, 1e-12);
  CHECK_CLOSE(db[2].position[0], 16 * 3, 1e-12);
  CHECK_CLOSE(db[2].position[2], 0, 1e-12);
  return 0;
}
