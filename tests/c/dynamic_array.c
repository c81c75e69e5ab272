// flags: -lm
// An array that grows by realloc, behind a structure.
#include "differences.h"

struct Array {
  double *items;
  size_t count, capacity;
};

static void append(struct Array *array, double item) {
  if (array->count == array->capacity) {
    array->capacity = array->capacity ? 2 * array->capacity : 1;
    array->items = realloc(array->items, array->capacity * sizeof *array->items);
  }
  array->items[array->count++] = item;
}

static double function(double *x, int n) {
  struct Array array = {0};
  for (int i = 0; i < n; i++) {
    append(&array, x[i]);
    append(&array, x[i] * x[i]);
  }
  double sum = 0;
  for (size_t i = 0; i < array.count; i++)
    sum += array.items[i] * sin(i + 1.0);
  free(array.items);
  return sum;
}
