// flags: -lm
// A registered derivative for forward mode: every argument is followed by its tangent. Again not the true one.
#include "check.h"

double __enzyme_fwddiff(void *, ...);

__attribute__((noinline)) double halved(double x) { return x / 2; }

double halved_derivative(double x, double dx) { return 100.0 * dx + x; }

void *__enzyme_register_derivative_halved[] = {(void *)halved, (void *)halved_derivative};

double uses(double x) { return 3.0 * halved(x * x); }

int main(void) {
  CHECK_CLOSE(__enzyme_fwddiff((void *)uses, 2.0, 1.0), 3.0 * (100.0 * 4.0 + 4.0), 1e-12);
  return 0;
}
