// flags: -lm
// Objects in C: structs with a table of functions that the differentiated code fills and calls.
#include "check.h"

double __enzyme_autodiff(void *, ...);

struct Shape;
struct Table {
  double (*area)(const struct Shape *);
  void (*grow)(struct Shape *, double);
};
struct Shape {
  const struct Table *table;
  double size;
};

static double square_area(const struct Shape *s) { return s->size * s->size; }
static double disc_area(const struct Shape *s) { return M_PI * s->size * s->size; }
static void grow_sum(struct Shape *s, double by) { s->size += by; }
static void grow_product(struct Shape *s, double by) { s->size *= by; }

static const struct Table square = {square_area, grow_sum}, disc = {disc_area, grow_product};

double total(double x, int n) {
  struct Shape shapes[6];
  for (int i = 0; i < n; i++) {
    shapes[i].table = i % 2 ? &disc : &square;
    shapes[i].size = x + i;
  }
  double sum = 0;
  for (int i = 0; i < n; i++) {
    shapes[i].table->grow(&shapes[i], x);
    sum += shapes[i].table->area(&shapes[i]);
  }
  return sum;
}

int main(void) {
  double h = 1e-6;
  CHECK_CLOSE(__enzyme_autodiff((void *)total, 0.7, 6), (total(0.7 + h, 6) - total(0.7 - h, 6)) / (2 * h), 1e-7);
  return 0;
}
