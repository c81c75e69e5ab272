// flags: -fopenmp -lm
// Reductions, and parameters that all iterations share.
#include "threads.h"

double __enzyme_autodiff(void *, ...);

enum { N = 50000, TERMS = 4 };
static double x[N], y[N];

static double dot(const double *x, const double *y, int n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; i++)
    sum += x[i] * y[i] * sin(x[i]);
  return sum;
}

// The parameters of a fit, one of them by reference.
static double residual(const double *w, const double *x, const double *y, int n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 16)
  for (int i = 0; i < n; i++) {
    double value = w[0] + w[1] * x[i] + w[2] * x[i] * x[i] + exp(-w[3] * x[i]);
    sum += (value - y[i]) * (value - y[i]);
  }
  return sum / n;
}

// Two passes, the first one a maximum.
static double log_sum_exp(const double *x, const double *y, int n) {
  double largest = x[0], sum = 0;
#pragma omp parallel for reduction(max : largest)
  for (int i = 0; i < n; i++)
    if (x[i] > largest)
      largest = x[i];
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; i++)
    sum += exp(x[i] - largest) * y[i] * y[i];
  return largest + log(sum);
}

// Several sums at once, one of them conditional.
static double moments(const double *x, const double *y, int n) {
  double first = 0, second = 0, third = 0;
#pragma omp parallel for reduction(+ : first, second) reduction(- : third)
  for (int i = 0; i < n; i++) {
    first += x[i];
    second += x[i] * x[i] * y[i];
    if (y[i] > 0.2)
      third -= x[i] * y[i];
  }
  return second / n - first * first / n / n + third * first;
}

// A sum by atomic additions, and one in a critical section.
static double atomic_sum(const double *x, const double *y, int n) {
  double sum = 0, other = 0;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double value = x[i] * x[i] * y[i];
#pragma omp atomic
    sum += value;
#pragma omp critical
    other += value * x[i];
  }
  return sum + other;
}

// A reduction over an array.
static double buckets(const double *x, const double *y, int n) {
  double sums[8] = {0};
#pragma omp parallel for reduction(+ : sums[ : 8])
  for (int i = 0; i < n; i++)
    sums[i % 8] += x[i] * y[i];
  double all = 0;
  for (int k = 0; k < 8; k++)
    all += sums[k] * sums[k];
  return all;
}

#define GRADIENT(name)                                                                                    \
  static void name##_gradient(double *g) {                                                                \
    __enzyme_autodiff((void *)name, enzyme_dup, x, g, enzyme_dup, y, g + N, enzyme_const, N);             \
  }
GRADIENT(dot)
GRADIENT(log_sum_exp)
GRADIENT(moments)
GRADIENT(atomic_sum)
GRADIENT(buckets)

static double w[TERMS] = {0.3, -0.2, 0.5, 0.7};
static void residual_gradient(double *g) {
  __enzyme_autodiff((void *)residual, enzyme_dup, w, g, enzyme_dup, x, g + TERMS, enzyme_dup, y, g + TERMS + N, enzyme_const, N);
}

int main(void) {
  for (int i = 0; i < N; i++) {
    x[i] = 0.5 + 0.4 * sin(0.013 * i);
    y[i] = cos(0.007 * i);
  }
  check_on_threads(dot_gradient, 2 * N, 1);
  check_on_threads(residual_gradient, TERMS + 2 * N, 1);
  check_on_threads(log_sum_exp_gradient, 2 * N, 1);
  check_on_threads(moments_gradient, 2 * N, 1);
  check_on_threads(atomic_sum_gradient, 2 * N, 1);
  check_on_threads(buckets_gradient, 2 * N, 1);
  static double g[2 * N + TERMS];
  residual_gradient(g);
  for (int k = 0; k < TERMS; k++) {
    double kept = w[k], h = 1e-5;
    w[k] = kept + h;
    double above = residual(w, x, y, N);
    w[k] = kept - h;
    double below = residual(w, x, y, N);
    w[k] = kept;
    CHECK_CLOSE(g[k], (above - below) / (2 * h), 1e-6);
  }
  memset(g, 0, sizeof g);
  dot_gradient(g);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(g[i], y[i] * (sin(x[i]) + x[i] * cos(x[i])), 1e-12);
  return 0;
}
