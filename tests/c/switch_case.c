// flags: -lm
// switch with falling through, ternaries, early returns.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x, int kind) {
  double y = x;
  switch (kind) {
  case 0:
    return x * x;
  case 1:
    y *= 2;
    /* fall through */
  case 2:
    y = sin(y);
    break;
  case 7:
    if (x > 1)
      return 3 * x;
    y = x < 0 ? -x : x * x * x;
    break;
  default:
    y = 0;
  }
  return y + x;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.5, 0), 1.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.5, 1), 2 * cos(1.0) + 1, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.5, 2), cos(0.5) + 1, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 1.5, 7), 3.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.5, 7), 0.75 + 1, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, -0.5, 7), -1.0 + 1, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.5, 9), 1.0, 1e-12);
  return 0;
}
