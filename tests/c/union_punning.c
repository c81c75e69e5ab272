// flags: -lm
// A union as a way from doubles to their bits and back, unchanged.
#include "check.h"

double __enzyme_autodiff(void *, ...);

union Word {
  double number;
  unsigned long bits;
};

static unsigned long pack(double x) {
  union Word w;
  w.number = x;
  return w.bits;
}

static double unpack(unsigned long bits) {
  union Word w;
  w.bits = bits;
  return w.number;
}

double function(double x, double y) {
  unsigned long box[2] = {pack(x * y), pack(x)};
  return unpack(box[0]) * unpack(box[1]);
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0, 5.0), 30.0, 1e-12);
  return 0;
}
