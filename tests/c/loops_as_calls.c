// flags: -lm
// Loops that are written as calls, with what is said of snapshots and convergence: their derivatives are those of the loops.
#include "check.h"
#include <enzyme/checkpoint.h>
#include <enzyme/fixed_point.h>

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

enum { N = 3 };
static double load[N];

static void advance(int64_t step, double *u) {
  double next[N];
  for (int k = 0; k < N; k++)
    next[k] = u[k] + 0.1 * sin(u[(k + 1) % N] + load[k] + 0.2 * step);
  for (int k = 0; k < N; k++) {
    load[k] = 0.7 * load[k] + 0.1 * next[k] * u[k];
    u[k] = next[k];
  }
}

static double loss(const double *u) {
  double sum = 0;
  for (int k = 0; k < N; k++)
    sum += u[k] * u[k] * (k + 1) + load[k];
  return sum;
}

static double plain(const double *x, int64_t n) {
  double u[N];
  for (int k = 0; k < N; k++) {
    u[k] = x[k];
    load[k] = 0.1 * k;
  }
  for (int64_t i = 0; i < n; i++)
    advance(2 + i, u);
  return loss(u);
}

static double counted(const double *x, int64_t n, EnzymeCkptConfig *config) {
  double u[N];
  for (int k = 0; k < N; k++) {
    u[k] = x[k];
    load[k] = 0.1 * k;
  }
  __enzyme_checkpoint_for((void *)advance, 2, n, enzyme_scheme, &EnzymeCkptRevolve, config, enzyme_checkpoint_region, u, (int64_t)sizeof u, u);
  return loss(u);
}

// Whether to go on.
static int grow(int64_t step, double *u, const double *limit) {
  advance(step, u);
  return u[0] < *limit;
}

static double until(double *x, double *limit) {
  double u[N];
  for (int k = 0; k < N; k++) {
    u[k] = x[k];
    load[k] = 0.1 * k;
  }
  __enzyme_checkpoint_while((void *)grow, enzyme_scheme, &EnzymeCkptStoreAll, (EnzymeCkptConfig *)0, u, limit);
  return loss(u);
}

// Newton's iteration for a root.
static int improve(int64_t step, double *root, const double *a) {
  double next = 0.5 * (*root + *a / *root), change = fabs(next - *root);
  *root = next;
  return step < 50 && change > 1e-14;
}

static double root_of(double a) {
  double root = 1;
  __enzyme_fixed_point((void *)improve, enzyme_fp_state, &root, (int64_t)sizeof root, enzyme_fp_reduction, 1e-30, &root, &a);
  return root * a;
}

int main(void) {
  double x[N] = {0.3, 0.9, 1.4};
  for (int64_t n = 0; n < 6; n++) {
    EnzymeCkptStats stats = {0};
    EnzymeCkptConfig config = {2, 0, 0, 0, &stats};
    double dx[N] = {0}, expected[N] = {0};
    CHECK_CLOSE(counted(x, n, &config), plain(x, n), 1e-14);
    __enzyme_autodiff((void *)plain, enzyme_dup, x, expected, enzyme_const, n);
    __enzyme_autodiff((void *)counted, enzyme_dup, x, dx, enzyme_const, n, enzyme_const, &config);
    for (int k = 0; k < N; k++)
      CHECK_CLOSE(dx[k], expected[k], 1e-13);
    CHECK(stats.taped_steps == n);
  }
  double limit = 0.7, dx[N] = {0}, h = 1e-6;
  __enzyme_autodiff((void *)until, enzyme_dup, x, dx, enzyme_const, &limit);
  for (int k = 0; k < N; k++) {
    double up[N] = {x[0], x[1], x[2]}, down[N] = {x[0], x[1], x[2]};
    up[k] += h;
    down[k] -= h;
    CHECK_CLOSE(dx[k], (until(up, &limit) - until(down, &limit)) / (2 * h), 1e-7);
  }
  CHECK_CLOSE(__enzyme_autodiff((void *)root_of, 2.0), 1.5 * sqrt(2.0), 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)root_of, 2.0, 1.0), 1.5 * sqrt(2.0), 1e-12);
  return 0;
}
