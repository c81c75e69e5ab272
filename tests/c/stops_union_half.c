// flags: -lm; stops: Ferrozyme: an active float is moved or used as if it were a pointer or an integer [FZ0710]
// In forward mode: half of the bits of a float, with a tangent whose other half alone is not zero, are calculated with as if they were a number.
#include "check.h"

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

double function(double x, int which) {
  struct item *items = malloc(3 * sizeof *items);
  for (int i = 0; i < 3; i++) {
    items[i].kind = 2;
    items[i].is.whole = 41;
  }
  items[0].is.real = x;
  items[2].kind = 0;
  items[2].is.real = x;
  change(&items[which]);
  double result = items[0].is.real + items[2].is.real + items[1].kind;
  free(items);
  return result;
}

int main(void) {
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 1.0, 1.0, 1), 2.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 1.0, 1.0, 2), 4.0, 1e-12);
  return __enzyme_fwddiff((void *)function, 1.0, 1.0, 0) != 0;
}
