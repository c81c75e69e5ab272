// flags: -lm
// A function template that is like one of the library: each instance is like the version for its type.
#include "check.h"

template <typename T> T __enzyme_autodiff(void *, T);

template <typename T> __attribute__((enzyme_function_like("log1p"))) T my_log1p(T x) { return 2 * x; }

template <typename T> T function(T x) { return my_log1p(x); }

int main() {
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)function<double>, 2.0), 1 / 3.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff<float>((void *)function<float>, 2.0f), 1 / 3.0, 1e-6);
  return 0;
}
