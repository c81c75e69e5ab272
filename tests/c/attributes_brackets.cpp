// flags: -lm; output: 3 [[enzyme_inactive]]
// Attributes in both spellings of C++, on functions, members of templates and variables, in this file and in one that it includes.
#include "check.h"
#include "parts/attributes.h"

double __enzyme_autodiff(void *, ...);

[[enzyme_inactive]] __attribute__((noinline)) double frozen(double x) { return x * 3; }

[[nodiscard, enzyme::inactive_noblock]] __attribute__((noinline)) double frozen_too(double x) { return x * 5; }

__attribute__((noinline, enzyme_inactive)) double frozen_as_well(double x) { return x * 7; }

template <typename T> struct holder {
  [[enzyme::inactive]] __attribute__((noinline)) static T member(T x) { return 11 * x; }
};

[[enzyme_inactive]] double tally = 0;

[[enzyme_function_like("log1p")]] __attribute__((noinline)) double my_log1p(double x) { return 2 * x; }

double function(double x) {
  tally += x;
  return x * x + frozen(x) + frozen_too(x) + frozen_as_well(x) + holder<double>::member(x) + included(x) + tally + my_log1p(x);
}

int main() {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6.25, 1e-12);
  printf("%g %s\n", tally, "[[enzyme_inactive]]");
  return 0;
}
