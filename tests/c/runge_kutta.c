// flags: -lm
// A pendulum by Runge and Kutta: arrays in structs, functions that fill arrays, time steps in a loop.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_out;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static void slope(const double *state, double *rate, double gravity) {
  rate[0] = state[1];
  rate[1] = -gravity * sin(state[0]);
}

double final_angle(double angle, double gravity, int steps) {
  double h = 0.05, state[2] = {angle, 0};
  for (int s = 0; s < steps; s++) {
    double k[4][2], moved[2];
    slope(state, k[0], gravity);
    for (int stage = 1; stage < 4; stage++) {
      double part = stage == 3 ? h : h / 2;
      for (int i = 0; i < 2; i++)
        moved[i] = state[i] + part * k[stage - 1][i];
      slope(moved, k[stage], gravity);
    }
    for (int i = 0; i < 2; i++)
      state[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
  }
  return state[0];
}

int main(void) {
  double h = 1e-6;
  double by_angle = (final_angle(0.8 + h, 9.81, 40) - final_angle(0.8 - h, 9.81, 40)) / (2 * h);
  double by_gravity = (final_angle(0.8, 9.81 + h, 40) - final_angle(0.8, 9.81 - h, 40)) / (2 * h);
  CHECK_CLOSE(__enzyme_autodiff((void *)final_angle, enzyme_out, 0.8, enzyme_const, 9.81, enzyme_const, 40), by_angle, 1e-7);
  CHECK_CLOSE(__enzyme_autodiff((void *)final_angle, enzyme_const, 0.8, enzyme_out, 9.81, enzyme_const, 40), by_gravity, 1e-7);
  CHECK_CLOSE(__enzyme_fwddiff((void *)final_angle, enzyme_dup, 0.8, 1.0, enzyme_const, 9.81, enzyme_const, 40), by_angle, 1e-7);
  return 0;
}
