// flags: -lm
// Globals whose shadows are declared: gradients are added there, tangents are taken from there.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
template <typename Return, typename... Arguments> Return __enzyme_augmentfwd(Arguments...);
template <typename Return, typename... Arguments> Return __enzyme_reverse(Arguments...);

double dscale;
__attribute__((enzyme_shadow(dscale))) double scale = 2;

struct Model {
  static double dweights[3];
  [[enzyme::shadow(dweights)]] static double weights[3];
};
double Model::dweights[3];
double Model::weights[3] = {1, 2, 3};

static double dstate;
__attribute__((enzyme_shadow(dstate))) static double state;

__attribute__((noinline)) static double weighted(double x) {
  double sum = 0;
  for (int i = 0; i < 3; i++)
    sum += Model::weights[i] * x * (i + 1);
  return sum;
}

double loss(double x) { return scale * scale * weighted(x) * x; }

// What was in the variable is gone, and so is its derivative; what is left there has one.
void overwrite(double x) { state = x * x * scale; }

static void clear() {
  dscale = dstate = 0;
  for (double &one : Model::dweights)
    one = 0;
}

int main() {
  clear();
  double dx = __enzyme_autodiff((void *)loss, 3.0);
  CHECK_CLOSE(dx, 2 * 4 * 14 * 3, 1e-12);
  CHECK_CLOSE(dscale, 2 * 2 * 14 * 9, 1e-12);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(Model::dweights[i], 4 * 9 * (i + 1), 1e-12);
  CHECK_CLOSE(scale, 2, 0);
  // Gradients add up.
  __enzyme_autodiff((void *)loss, 3.0);
  CHECK_CLOSE(dscale, 2 * 2 * 2 * 14 * 9, 1e-12);

  clear();
  dscale = 1;
  CHECK_CLOSE(__enzyme_fwddiff((void *)loss, 3.0, 0.0), 2 * 2 * 14 * 9, 1e-12);
  clear();
  Model::dweights[1] = 0.5;
  CHECK_CLOSE(__enzyme_fwddiff((void *)loss, 3.0, 1.0), 2 * 4 * 14 * 3 + 0.5 * 4 * 9 * 2, 1e-12);

  clear();
  dstate = 1;
  CHECK_CLOSE(__enzyme_autodiff((void *)overwrite, 3.0), 12, 1e-12);
  CHECK_CLOSE(state, 18, 1e-12);
  CHECK_CLOSE(dstate, 0, 0);
  CHECK_CLOSE(dscale, 9, 1e-12);
  clear();
  dstate = 5;
  __enzyme_fwddiff((void *)overwrite, 3.0, 1.0);
  CHECK_CLOSE(dstate, 12, 1e-12);

  clear();
  void *tape = __enzyme_augmentfwd<void *>((void *)loss, 3.0);
  dx = __enzyme_reverse<double>((void *)loss, 3.0, 1.0, tape);
  CHECK_CLOSE(dx, 2 * 4 * 14 * 3, 1e-12);
  CHECK_CLOSE(dscale, 2 * 2 * 14 * 9, 1e-12);
  return 0;
}
