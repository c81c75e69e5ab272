// flags: -lm
// Functions declared inactive: called for their effects, without derivative.
#include "check.h"

double __enzyme_autodiff(void *, ...);

static double last;
static int calls;

__attribute__((noinline)) void record(double x) {
  last = x;
  calls++;
}
void *__enzyme_inactivefn_record[] = {(void *)record};

__attribute__((noinline)) double learning_rate(double x) { return x * 0.5; }
void *__enzyme_inactivefn_rate[] = {(void *)learning_rate};

double function(double x) {
  record(x * x);
  return x * learning_rate(x);
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 1.5, 1e-12);
  CHECK(calls == 1);
  CHECK_CLOSE(last, 9.0, 1e-12);
  return 0;
}
