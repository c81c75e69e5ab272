// flags: -lm
// A struct of mixed fields behind a pointer.
#include "check.h"

extern int enzyme_dup;
double __enzyme_autodiff(void *, ...);

struct Particle {
  int kind;
  float mass;
  double position[3];
  const char *name;
  double charge;
};

double energy(const struct Particle *p) {
  double r = sqrt(p->position[0] * p->position[0] + p->position[1] * p->position[1] + p->position[2] * p->position[2]);
  return p->kind == 1 ? p->charge / r + p->mass * r : 0.0;
}

int main(void) {
  struct Particle p = {1, 2.0f, {1, 2, 2}, "proton", 5.0}, dp = {0};
  __enzyme_autodiff((void *)energy, enzyme_dup, &p, &dp);
  CHECK_CLOSE(dp.charge, 1.0 / 3, 1e-12);
  CHECK_CLOSE(dp.mass, 3.0, 1e-6);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dp.position[i], (-5.0 / 9 + 2) * p.position[i] / 3, 1e-12);
  CHECK(p.kind == 1 && dp.kind == 0);
  return 0;
}
