// flags: -lm
// A function that behaves like one that is known: its derivative is that of log1p.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

// Crude, and not what its derivative is taken from.
__attribute__((noinline)) double my_log1p(double x) { return log(1.0 + floor(x * 1e9) * 1e-9); }
void *__enzyme_function_like_my_log1p[2] = {(void *)my_log1p, (void *)"log1p"};

double function(double x) { return 2.0 * my_log1p(x); }

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 0.5, 1e-7);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 1.0, 1.0), 1.0, 1e-7);
  return 0;
}
