// flags: -lm
// A loop made of labels and goto, with a jump out of its middle.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x, int n) {
  double value = 1;
  int i = 0;
again:
  if (i >= n)
    goto done;
  value = value * x + 1;
  if (value > 1000)
    goto big;
  i++;
  goto again;
big:
  value = value / 1000;
done:
  return value;
}

int main(void) {
  double h = 1e-6;
  for (int n = 0; n < 20; n += 3)
    CHECK_CLOSE(__enzyme_autodiff((void *)function, 1.7, n), (function(1.7 + h, n) - function(1.7 - h, n)) / (2 * h), 1e-6);
  return 0;
}
