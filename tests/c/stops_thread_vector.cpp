// flags: -lm; stops: Ferrozyme: derivatives would flow through memory that a global variable pointed to before the derivative was called, and which has no shadow [FZ0701]
// A vector that lives on between calls: the first derivative makes its memory, and its shadow; the second finds memory of which no shadow is known.
#include "check.h"
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

thread_local std::vector<double> work;

static double function(const double *x, int n) {
  work.resize(n);
  for (int i = 0; i < n; i++)
    work[i] = x[i] * x[i];
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += work[i];
  return sum;
}

int main() {
  double x[2] = {1, 2}, dx[2] = {};
  __enzyme_autodiff<void>((void *)function, enzyme_dup, x, dx, enzyme_const, 2);
  for (int i = 0; i < 2; i++)
    CHECK_CLOSE(dx[i], 2 * x[i], 1e-12);
  __enzyme_autodiff<void>((void *)function, enzyme_dup, x, dx, enzyme_const, 2);
  return 0;
}
