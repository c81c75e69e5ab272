// Comparison of floats for the programs of this folder: says what differed and ends the program with status 1.
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check_close(double actual, double expected, double tolerance, const char *what, const char *file, int line) {
  double scale = fabs(expected) > 1.0 ? fabs(expected) : 1.0;
  // Written so that NaN on either side fails.
  if (fabs(actual - expected) <= tolerance * scale)
    return;
  fprintf(stderr, "%s:%d: %s is %.17g, expected %.17g (tolerance %g)\n", file, line, what, actual, expected, tolerance);
  exit(1);
}

// |actual - expected| <= tolerance * max(1, |expected|)
#define CHECK_CLOSE(actual, expected, tolerance) check_close((actual), (expected), (tolerance), #actual, __FILE__, __LINE__)

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);      \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

#endif
