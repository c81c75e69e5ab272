// flags: -fopenmp -lm
// Loops whose derivatives stay on one thread, and memory that overlaps when the program runs.
#include "threads.h"

double __enzyme_autodiff(void *, ...);

enum { N = 20000 };
static double x[N], y[N];

// Something is kept in an order that no sum explains, under a lock; the result does not depend on it.
static double largest(const double *x, const double *y, int n) {
  double best = -1e300;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double value = x[i] * y[i];
#pragma omp critical
    if (value > best)
      best = value;
  }
  return best;
}

// A list in the order of the iterations.
static double in_order(const double *x, const double *y, int n) {
  double *list = malloc(n * sizeof(double)), sum = 0;
  int length = 0;
#pragma omp parallel for ordered
  for (int i = 0; i < n; i++) {
    double value = x[i] * x[i] * y[i];
#pragma omp ordered
    if (value > 0.1)
      list[length++] = value;
  }
  for (int i = 0; i < length; i++)
    sum += list[i] * (1 + i % 3);
  free(list);
  return sum;
}

// A product, which is no sum.
static double product(const double *x, const double *y, int n) {
  double all = 1;
#pragma omp parallel for reduction(* : all)
  for (int i = 0; i < n; i++)
    all *= 1 + 1e-4 * x[i] * y[i];
  return all;
}

static void shift(double *to, const double *from, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    to[i] = from[i] * from[i];
}

#define GRADIENT(name)                                                                        \
  static void name##_gradient(double *g) {                                                    \
    __enzyme_autodiff((void *)name, enzyme_dup, x, g, enzyme_dup, y, g + N, enzyme_const, N); \
  }
GRADIENT(largest)
GRADIENT(in_order)
GRADIENT(product)

// The same array and the same shadow: each place is read and written by its own iteration.
static void in_place_gradient(double *g) {
  static double memory[N];
  memcpy(memory, x, sizeof memory);
  for (int i = 0; i < N; i++)
    g[i] = 1;
  __enzyme_autodiff((void *)shift, enzyme_dup, memory, g, enzyme_dup, memory, g, enzyme_const, N);
}

// The shadow of what is written overlaps the shadow of what is read, since somebody else's gradient is in it; the values lie apart.
static void one_shadow_gradient(double *g) {
  static double to[N], dto[N];
  for (int i = 0; i < N; i++)
    dto[i] = i % 4;
  __enzyme_autodiff((void *)shift, enzyme_dup, to, dto, enzyme_dup, x, g, enzyme_const, N);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(g[i], 2 * x[i] * (i % 4), 1e-12);
}

int main(void) {
  for (int i = 0; i < N; i++) {
    x[i] = 0.5 + 0.4 * sin(0.013 * i);
    y[i] = cos(0.007 * i);
  }
  check_on_threads(largest_gradient, 2 * N, 1);
  check_on_threads(in_order_gradient, 2 * N, 1);
  check_on_threads(product_gradient, 2 * N, 1);
  check_on_threads(in_place_gradient, N, 1);
  check_on_threads(one_shadow_gradient, N, 1);
  return 0;
}
