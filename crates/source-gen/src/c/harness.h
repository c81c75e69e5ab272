// Calls value, gradient and directional derivatives of each function, compares them with finite differences and each other, and prints what it found.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int enzyme_dup, enzyme_const;
extern double __enzyme_autodiff(void *, ...);
extern double __enzyme_fwddiff(void *, ...);

// A function and how to call it.
struct example {
  const char *name;
  int inputs;
  unsigned long long seed;
  double (*value)(const double *);
  double (*gradient)(const double *, double *);
  double (*tangent)(const double *, const double *);
};

enum { MOST = 8 };

static double weighted(const double *y) { return y[0] - 0.6 * y[1] + 0.4 * y[2]; }

static int near_to(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * fmax(fabs(a), 1.0); }

static double at(const struct example *e, const double *x, int index, double step) {
  double moved[MOST];
  memcpy(moved, x, sizeof moved);
  moved[index] += step;
  return e->value(moved);
}

static double central(const struct example *e, const double *x, int i, double h) {
  return (8 * (at(e, x, i, h) - at(e, x, i, -h)) - (at(e, x, i, 2 * h) - at(e, x, i, -2 * h))) / (12 * h);
}

static double side(const struct example *e, const double *x, int i, double h) {
  return (4 * at(e, x, i, h) - at(e, x, i, 2 * h) - 3 * at(e, x, i, 0)) / (2 * h);
}

// The partial derivative by finite differences; NaN where they do not agree with each other, near an edge.
static double difference(const struct example *e, const double *x, int i) {
  double left = side(e, x, i, -1e-5), right = side(e, x, i, 1e-5);
  if (!near_to(left, right, 1e-5))
    return NAN;
  double large = central(e, x, i, 2e-3), middle = central(e, x, i, 2e-4), small = central(e, x, i, 2e-5);
  if ((near_to(large, middle, 1e-5) || near_to(middle, small, 1e-5)) && near_to(middle, left, 1e-5))
    return middle;
  return NAN;
}

static void check(const struct example *e, const double *x) {
  double value = e->value(x), gradient[MOST] = {0}, repeated[MOST] = {0}, scale = 1;
  int clear = 1;
  if (!isfinite(value) || fabs(value) > 1e3) {
    printf("unclear the value is %g\n", value);
    return;
  }
  double primal = e->gradient(x, gradient);
  e->gradient(x, repeated);
  if (!near_to(primal, value, 1e-9)) {
    printf("wrong the primal returns %.17g, the derivative %.17g\n", value, primal);
    return;
  }
  for (int i = 0; i < e->inputs; i++) {
    if (gradient[i] != repeated[i] && !(isnan(gradient[i]) && isnan(repeated[i]))) {
      printf("wrong by x%d: the gradient is %.17g and then %.17g\n", i, gradient[i], repeated[i]);
      return;
    }
    scale = fmax(scale, fabs(gradient[i]));
  }
  for (int i = 0; i < e->inputs; i++) {
    double direction[MOST] = {0};
    direction[i] = 1;
    double tangent = e->tangent(x, direction), expected = difference(e, x, i);
    if (!isnan(expected)) {
      double most = 1e-4 * fmax(fabs(expected), 1.0);
      if (!(fabs(gradient[i] - expected) <= most)) {
        printf("wrong by x%d: reverse mode %.17g, differences %.17g\n", i, gradient[i], expected);
        return;
      }
      if (!(fabs(tangent - expected) <= most)) {
        printf("wrong by x%d: forward mode %.17g, differences %.17g\n", i, tangent, expected);
        return;
      }
    }
    int both_nan = isnan(gradient[i]) && isnan(tangent) && isnan(expected);
    if (!(fabs(gradient[i] - tangent) <= 1e-8 * scale) && !both_nan) {
      printf("wrong by x%d: reverse mode %.17g, forward mode %.17g\n", i, gradient[i], tangent);
      return;
    }
    clear = clear && !isnan(expected);
  }
  unsigned long long bits;
  memcpy(&bits, &value, sizeof bits);
  printf("%s %016llx", clear ? "right" : "edge", bits);
  for (int i = 0; i < e->inputs; i++) {
    memcpy(&bits, &gradient[i], sizeof bits);
    printf(" %016llx", bits);
  }
  printf("\n");
}

// Inputs that are the same for the same seed: SplitMix64.
static void inputs(unsigned long long seed, unsigned long long point, double *x) {
  unsigned long long state = seed * 0x9e3779b97f4a7c15ull ^ point << 60;
  for (int i = 0; i < MOST; i++) {
    state += 0x9e3779b97f4a7c15ull;
    unsigned long long bits = (state ^ state >> 30) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
    x[i] = -1.3 + 2.6 * (double)((bits ^ bits >> 31) >> 11) / 9007199254740992.0;
  }
}

static int run(const struct example *examples, int count, char **names) {
  for (const struct example *e = examples; e->name; e++) {
    int wanted = count < 2;
    for (int i = 1; i < count; i++)
      wanted = wanted || strcmp(names[i], e->name) == 0;
    for (int point = 0; wanted && point < 2; point++) {
      double x[MOST];
      inputs(e->seed, point, x);
      printf("start %s %d\n", e->name, point);
      fflush(stdout);
      check(e, x);
    }
  }
  printf("end\n");
  return 0;
}
