// flags: -fopenmp -lm
// The number of threads belongs to each call: the two functions of split mode may run on different numbers, and what a program makes of the number is made of the real one.
#include "check.h"
#include <omp.h>
#include <stdlib.h>

extern int enzyme_dup, enzyme_const;
void *__enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
double __enzyme_autodiff(void *, ...);

enum { N = 12, LARGE = 20000, TERMS = 3 };

// An element for each thread is not zero.
static void first_of_each(double *out, const double *x, int n) {
  double v = x[0];
#pragma omp parallel for firstprivate(v) schedule(static)
  for (int i = 0; i < n; i++) {
    out[i] = v * x[i];
    v = 0;
  }
}

static void two_sizes(int forward, int reverse) {
  double x[N], dx[N] = {0}, out[N], dout[N];
  for (int i = 0; i < N; i++) {
    x[i] = 2 + i;
    dout[i] = 1 + i;
  }
  omp_set_num_threads(forward);
  void *tape = __enzyme_augmentfwd((void *)first_of_each, enzyme_dup, out, dout, enzyme_dup, x, dx, enzyme_const, N);
  omp_set_num_threads(reverse);
  __enzyme_reverse((void *)first_of_each, enzyme_dup, out, dout, enzyme_dup, x, dx, enzyme_const, N, tape);
  double expected[N] = {0};
  for (int i = 0; i < N; i += N / forward) {
    CHECK_CLOSE(out[i], x[0] * x[i], 1e-15);
    expected[i] += (1 + i) * x[0];
    expected[0] += (1 + i) * x[i];
  }
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(dx[i], expected[i], 1e-15);
}

// A loop on several threads in both sweeps, with a tape.
static void curve(double *out, const double *w, const double *x, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double t = x[i];
    for (int k = 0; k < TERMS; k++)
      t = sin(w[k] * t) + t * t;
    out[i] = t;
  }
}

static void several_loops(int forward, int reverse, double *dw) {
  static double x[LARGE], dx[LARGE], out[LARGE], dout[LARGE];
  double w[TERMS] = {0.3, -0.2, 0.5};
  for (int i = 0; i < LARGE; i++) {
    x[i] = 0.3 * sin(0.1 * i);
    dx[i] = 0;
    dout[i] = cos(0.2 * i);
  }
  for (int k = 0; k < TERMS; k++)
    dw[k] = 0;
  omp_set_num_threads(forward);
  void *tape = __enzyme_augmentfwd((void *)curve, enzyme_dup, out, dout, enzyme_dup, w, dw, enzyme_dup, x, dx, enzyme_const, LARGE);
  omp_set_num_threads(reverse);
  __enzyme_reverse((void *)curve, enzyme_dup, out, dout, enzyme_dup, w, dw, enzyme_dup, x, dx, enzyme_const, LARGE, tape);
}

static double shares(double x) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < 100; i++)
    sum += x * x;
  return sum * omp_get_max_threads();
}

static double shares_without_region(double x) { return x * omp_get_max_threads(); }

int main(void) {
  two_sizes(4, 4);
  two_sizes(4, 2);
  two_sizes(2, 6);
  two_sizes(1, 3);
  double expected[TERMS], found[TERMS];
  several_loops(1, 1, expected);
  for (int forward = 1; forward <= 8; forward += forward) {
    several_loops(forward, 9 - forward, found);
    for (int k = 0; k < TERMS; k++)
      CHECK_CLOSE(found[k], expected[k], 1e-11);
  }
  for (int threads = 1; threads <= 8; threads++) {
    omp_set_num_threads(threads);
    CHECK_CLOSE(__enzyme_autodiff((void *)shares, 3.0), 600.0 * threads, 1e-13);
    CHECK_CLOSE(__enzyme_autodiff((void *)shares_without_region, 3.0), threads, 1e-15);
  }
  return 0;
}
