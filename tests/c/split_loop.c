// flags: -lm
// Split mode in the caller's loops: a tape for each step, used in the opposite order.
#include "check.h"

extern int enzyme_dup, enzyme_const;
extern void *__enzyme_augmentfwd(void *, ...);
extern void __enzyme_reverse(void *, ...);

void step(double *state, double dt) {
  double angle = state[0];
  state[0] += dt * state[1];
  state[1] -= dt * sin(angle);
}

static void run(double *state, int n) {
  for (int i = 0; i < n; i++)
    step(state, 0.1);
}

int main(void) {
  enum { N = 12 };
  void *tapes[N];
  double s[2] = {0.9, 0.1}, ds[2] = {0, 0}, h = 1e-6;
  for (int i = 0; i < N; i++)
    tapes[i] = __enzyme_augmentfwd((void *)step, enzyme_dup, s, ds, enzyme_const, 0.1);
  ds[0] = 1;
  for (int i = N; i-- > 0;)
    __enzyme_reverse((void *)step, enzyme_dup, s, ds, enzyme_const, 0.1, tapes[i]);
  for (int k = 0; k < 2; k++) {
    double up[2] = {0.9, 0.1}, down[2] = {0.9, 0.1};
    up[k] += h;
    down[k] -= h;
    run(up, N);
    run(down, N);
    CHECK_CLOSE(ds[k], (up[0] - down[0]) / (2 * h), 1e-8);
  }
  return 0;
}
