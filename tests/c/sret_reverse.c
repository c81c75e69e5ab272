// flags: -lm
// A function that gives a large struct through a hidden pointer, used by the one that is differentiated.
#include "check.h"

double __enzyme_autodiff(void *, ...);

struct State {
  double x, y, z;
  int steps;
  double history[4];
};

__attribute__((noinline)) static struct State advance(struct State s, double dt) {
  s.history[s.steps % 4] = s.x;
  s.x += dt * (s.y - s.x);
  s.y += dt * (s.x * (1.5 - s.z) - s.y);
  s.z += dt * (s.x * s.y - s.z);
  s.steps++;
  return s;
}

double simulate(double x, int n) {
  struct State s = {x, 1, 0.5, 0, {0}};
  for (int i = 0; i < n; i++)
    s = advance(s, 0.05);
  return s.x + s.z * s.history[0];
}

int main(void) {
  double h = 1e-6;
  CHECK_CLOSE(__enzyme_autodiff((void *)simulate, 0.8, 25), (simulate(0.8 + h, 25) - simulate(0.8 - h, 25)) / (2 * h), 1e-7);
  return 0;
}
