// flags: -lm
// A tagged union: floats or integers at the same place.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

struct Value {
  int tag;
  union {
    double number;
    struct {
      float low, high;
    } range;
    long count;
  } as;
};

double total(const struct Value *values, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    switch (values[i].tag) {
    case 0:
      sum += values[i].as.number * values[i].as.number;
      break;
    case 1:
      sum += values[i].as.range.high * values[i].as.range.low;
      break;
    default:
      sum += values[i].as.count;
    }
  }
  return sum;
}

double only_numbers(const struct Value *v) { return v->tag == 0 ? sin(v->as.number) : 0.0; }

int main(void) {
  struct Value v = {.tag = 0, .as.number = 0.5}, dv = {.tag = 0, .as.number = 0};
  __enzyme_autodiff((void *)only_numbers, enzyme_dup, &v, &dv);
  CHECK_CLOSE(dv.as.number, cos(0.5), 1e-12);
  CHECK_CLOSE(total(&v, 1), 0.25, 1e-12);
  return 0;
}
