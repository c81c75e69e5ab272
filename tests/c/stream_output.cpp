// flags: -lm
// Output by streams within the function.
#include "check.h"
#include <cmath>
#include <iostream>

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double function(double x) {
  double y = x * std::sin(x);
  std::cerr << "x = " << x << ", y = " << y << std::endl;
  return y;
}

int main() {
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)function, 0.5), std::sin(0.5) + 0.5 * std::cos(0.5), 1e-12);
  return 0;
}
