// flags: -lm
// Variable arguments between objects that have to be destroyed if anything is thrown.
#include "check.h"
#include <cstdarg>
#include <vector>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static double sum(int count, ...) {
  va_list list;
  va_start(list, count);
  double result = 0;
  while (count--)
    result += va_arg(list, double);
  va_end(list);
  return result;
}

static void twice(int count, ...) {
  va_list list;
  va_start(list, count);
  while (count--)
    *va_arg(list, double *) *= 2;
  va_end(list);
}

double function(double x) {
  std::vector<double> v(3, x);
  v[0] = sum(2, x, x * x);
  twice(2, &v[0], &v[2]);
  return v[0] * v[1] + v[2];
}

int main() {
  const double x = 1.3, expected = 4 * x + 6 * x * x + 2;
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, x, 1.0), expected, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, x), expected, 1e-12);
  return 0;
}
