// flags: -lm
// Several active floats: their gradients come back as a struct.
#include "check.h"

struct Gradient2 {
  double x, y;
};
struct Gradient3 {
  double x, y, z;
};
struct Single2 {
  float x, y;
};

extern struct Gradient2 __enzyme_autodiff2(void *, ...);
extern struct Gradient3 __enzyme_autodiff3(void *, ...);
extern struct Single2 __enzyme_autodiff_singles(void *, ...);

double two(double x, double y) { return x * x * y; }
double three(double x, double y, double z) { return x * sin(y) + exp(z) * x; }
float singles(float x, float y) { return x / y; }

int main(void) {
  struct Gradient2 g = __enzyme_autodiff2((void *)two, 3.0, 5.0);
  CHECK_CLOSE(g.x, 30.0, 1e-12);
  CHECK_CLOSE(g.y, 9.0, 1e-12);
  struct Gradient3 h = __enzyme_autodiff3((void *)three, 2.0, 0.5, 0.25);
  CHECK_CLOSE(h.x, sin(0.5) + exp(0.25), 1e-12);
  CHECK_CLOSE(h.y, 2.0 * cos(0.5), 1e-12);
  CHECK_CLOSE(h.z, 2.0 * exp(0.25), 1e-12);
  struct Single2 s = __enzyme_autodiff_singles((void *)singles, 3.0f, 2.0f);
  CHECK_CLOSE(s.x, 0.5, 1e-6);
  CHECK_CLOSE(s.y, -0.75, 1e-6);
  return 0;
}
