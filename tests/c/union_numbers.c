// flags: -lm
// Where a float is at times, there are numbers at others, and halves of numbers, which are calculated with. In both modes.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

struct item {
  int kind;
  union {
    double real;
    long whole;
    int halves[2];
  } is;
};

__attribute__((noinline)) static void change(struct item *item) {
  switch (item->kind) {
  case 0:
    item->is.real *= 3;
    break;
  case 1:
    item->is.whole += 1;
    break;
  default:
    item->is.halves[1] += item->is.halves[0] << 20;
  }
}

double function(double x) {
  struct item *items = malloc(3 * sizeof *items);
  for (int i = 0; i < 3; i++)
    items[i].kind = i;
  items[0].is.real = x;
  items[1].is.whole = 41;
  items[2].is.halves[0] = 1;
  items[2].is.halves[1] = 7;
  for (int turn = 0; turn < 2; turn++)
    for (int i = 0; i < 3; i++)
      change(&items[i]);
  double result = items[0].is.real * items[0].is.real * items[1].is.whole + items[2].is.halves[1] * x;
  free(items);
  return result;
}

int main(void) {
  double expected = 2 * 81 * 43 + (7 + (2 << 20));
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 1.0), expected, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 1.0, 1.0), expected, 1e-12);
  return 0;
}
