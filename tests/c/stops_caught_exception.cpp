// flags: -lm; stops: Ferrozyme: an exception was caught in a differentiated function, where derivatives cannot follow [FZ0711]
// An exception that is thrown and caught inside of the differentiated function: its forward sweep ends in the middle, and so does its tape.
#include "check.h"
#include <stdexcept>

double __enzyme_autodiff(void *, ...);

static double checked_root(double x) {
  if (x < 0)
    throw std::domain_error("a negative number");
  return std::sqrt(x);
}

double function(double x) {
  double result;
  try {
    result = checked_root(x);
  } catch (const std::exception &) {
    result = x * x;
  }
  return result * x;
}

int main() {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 4.0), 3.0, 1e-12);
  __enzyme_autodiff((void *)function, -2.0);
  return 0;
}
