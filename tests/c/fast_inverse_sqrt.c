// flags: -lm
// The famous inverse square root: the first guess comes from the bits and has no derivative of its own; Newton's steps do.
#include "check.h"
#include <string.h>

float __enzyme_autodiff(void *, ...);

float inverse_sqrt(float x) {
  int bits;
  memcpy(&bits, &x, 4);
  bits = 0x5f3759df - (bits >> 1);
  float y;
  memcpy(&y, &bits, 4);
  for (int i = 0; i < 4; i++)
    y = y * (1.5f - 0.5f * x * y * y);
  return y;
}

int main(void) {
  CHECK_CLOSE(inverse_sqrt(4.0f), 0.5, 1e-5);
  // Each of Newton's steps squares the error of the derivative too.
  CHECK_CLOSE(__enzyme_autodiff((void *)inverse_sqrt, 4.0f), -0.0625, 1e-4);
  return 0;
}
