// Checks values and gradients of nests `void nest(const double *a, const double *b, double *c, int m, int k, int n)` against differences along random directions. What becomes of each in its
// derivative is said above it (tests/nests).
#ifndef NESTS_H
#define NESTS_H

#include "check.h"
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
extern int enzyme_dup, enzyme_const;
extern void __enzyme_autodiff(void *, ...);
#ifdef __cplusplus
}
#endif

enum { ROOM = 4096 };

typedef void nest(const double *, const double *, double *, int, int, int);
typedef void gradient(const double *, double *, const double *, double *, double *, double *, int, int, int);

static void fill(double *x, int count, unsigned state) {
  for (int i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    x[i] = (state >> 8) / 8388608.0 - 1;
  }
}

static double moved(nest *f, const double *seed, const int *size, double step) {
  static double x[3][ROOM], direction[ROOM];
  double sum = 0;
  for (int i = 0; i < 3; i++) {
    fill(x[i], ROOM, i);
    fill(direction, ROOM, 10 + i);
    for (int j = 0; j < ROOM; j++)
      x[i][j] += step * direction[j];
  }
  f(x[0], x[1], x[2], size[0], size[1], size[2]);
  for (int j = 0; j < ROOM; j++)
    sum += x[2][j] * seed[j];
  return sum;
}

static void check_nest(const char *name, nest *f, gradient *df) {
  static const int sizes[][3] = {{12, 9, 10}, {8, 40, 17}, {20, 7, 9}, {3, 2, 4}, {1, 1, 1}};
  static double x[3][ROOM], d[3][ROOM], seed[ROOM], c[ROOM], direction[ROOM];
  for (int at = 0; at < 5; at++) {
    const int *size = sizes[at];
    for (int i = 0; i < 3; i++)
      fill(x[i], ROOM, i);
    memcpy(c, x[2], sizeof c);
    fill(seed, ROOM, 20);
    memset(d, 0, sizeof d);
    memcpy(d[2], seed, sizeof seed);
    df(x[0], d[0], x[1], d[1], x[2], d[2], size[0], size[1], size[2]);
    f(x[0], x[1], c, size[0], size[1], size[2]);
    double along = 0;
    for (int i = 0; i < 3; i++) {
      fill(direction, ROOM, 10 + i);
      for (int j = 0; j < ROOM; j++)
        along += d[i][j] * direction[j];
    }
    double step = 1e-4, difference = (moved(f, seed, size, step) - moved(f, seed, size, -step)) / (2 * step);
    for (int j = 0; j < ROOM; j++)
      if (fabs(x[2][j] - c[j]) > 1e-12) {
        fprintf(stderr, "%s: value %d is %.17g, expected %.17g\n", name, j, x[2][j], c[j]);
        exit(1);
      }
    if (!(fabs(along - difference) <= 1e-7 * (1 + fabs(difference)))) {
      fprintf(stderr, "%s: gradient %.17g, expected %.17g\n", name, along, difference);
      exit(1);
    }
  }
}

// A function that calls the derivative of a nest.
#define GRADIENT(f)                                                                                                                                  \
  static void d_##f(const double *a, double *da, const double *b, double *db, double *c, double *dc, int m, int k, int n) {                        \
    __enzyme_autodiff((void *)f, enzyme_dup, a, da, enzyme_dup, b, db, enzyme_dup, c, dc, enzyme_const, m, enzyme_const, k, enzyme_const, n); \
  }

#define CHECK_NEST(f) check_nest(#f, f, d_##f)

#endif
