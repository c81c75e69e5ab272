// flags: -lm
// Type objects behind a global pointer that the program can change: functions are chosen by their address. A function that gives a static table or one that it makes.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

typedef struct {
  const char *name;
  double (*evaluate)(double);
  double (*scale)(double, double);
} type;

static double square(double x) { return x * x; }
static double cube(double x) { return x * x * x; }
static double product(double x, double y) { return x * y; }
static const type square_type = {"square", square, product};
static const type cube_type = {"cube", cube, product};
const type *the_type = &square_type;

double by_global(double x) { return the_type->scale(the_type->evaluate(x), x); }

static const type *choose(int copy) {
  if (!copy)
    return &square_type;
  type *made = malloc(sizeof *made);
  *made = cube_type;
  return made;
}

double by_result(double x, int copy) {
  const type *t = choose(copy);
  double result = t->scale(t->evaluate(x), x);
  if (copy)
    free((void *)t);
  return result;
}

static double fixed[3] = {1, 2, 3};

static double *table(int n, double x) {
  if (n <= 3)
    return fixed;
  double *made = malloc(n * sizeof(double));
  for (int i = 0; i < n; i++)
    made[i] = i * x;
  return made;
}

double by_table(double x, int n) {
  double *t = table(n, x), sum = 0;
  for (int i = 0; i < n; i++)
    sum += t[i] * x;
  if (n > 3)
    free(t);
  return sum;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)by_global, 3.0), 27.0, 1e-12);
  the_type = &cube_type;
  CHECK_CLOSE(__enzyme_autodiff((void *)by_global, 3.0), 108.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)by_global, 3.0, 1.0), 108.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)by_result, 3.0, 0), 27.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)by_result, 3.0, 1), 108.0, 1e-12);
  for (int n = 0; n < 8; n++) {
    double slope = (by_table(3 + 1e-6, n) - by_table(3 - 1e-6, n)) / 2e-6;
    CHECK_CLOSE(__enzyme_autodiff((void *)by_table, 3.0, n), slope, 1e-7);
    CHECK_CLOSE(__enzyme_fwddiff((void *)by_table, 3.0, 1.0, n), slope, 1e-7);
  }
  return 0;
}
