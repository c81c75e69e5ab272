// flags: -lm; refused: error: cannot differentiate a call with variable arguments [FZ0505]
// What is aligned to more than eight bytes is not where the next argument of a list would be.
#include "check.h"
#include <stdarg.h>

double __enzyme_autodiff(void *, ...);

struct Pair {
  _Alignas(16) double first;
  double second;
};

static double sum(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = va_arg(list, double);
  for (int i = 0; i < count; i++) {
    struct Pair pair = va_arg(list, struct Pair);
    sum += pair.first * pair.second;
  }
  va_end(list);
  return sum;
}

double function(double x) {
  struct Pair one = {x, x}, other = {x, 3};
  return sum(2, 7.0, one, other); // here
}

int main(void) {
  CHECK_CLOSE(function(2.0), 17.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 2.0), 7.0, 1e-12);
  return 0;
}
