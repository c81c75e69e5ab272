// flags: -fopenmp -lm
// Places that are computed: histograms, sparse matrices, permutations. In reverse, additions to shared places are atomic, so that rounding may differ between runs.
#include "threads.h"

void __enzyme_autodiff(void *, ...);

enum { N = 20000, BINS = 64, ENTRIES = 5 * N };
static double x[N], y[N], a[ENTRIES];
static int bin[N], column[ENTRIES], row_start[N + 1], order[N];

static void histogram(double *bins, const double *x, const int *bin, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double value = x[i] * x[i];
#pragma omp atomic
    bins[bin[i]] += value;
  }
}

static void multiply(double *out, const double *a, const double *x, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int k = row_start[i]; k < row_start[i + 1]; k++)
      sum += a[k] * x[column[k]];
    out[i] = sum * sum;
  }
}

static void multiply_transposed(double *out, const double *a, const double *x, int n) {
#pragma omp parallel for schedule(dynamic, 32)
  for (int i = 0; i < n; i++)
    for (int k = row_start[i]; k < row_start[i + 1]; k++) {
      double product = a[k] * sin(x[i]);
#pragma omp atomic
      out[column[k]] += product;
    }
}

static void gather(double *out, const double *x, const int *order, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    out[i] = exp(x[order[i]]) * x[order[(i + 7) % n]];
}

static void scatter(double *out, const double *x, const int *order, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    out[order[i]] = x[i] * x[i] * x[i];
}

static void histogram_gradient(double *g) {
  double bins[BINS] = {0}, dbins[BINS];
  for (int k = 0; k < BINS; k++)
    dbins[k] = 1 + k;
  __enzyme_autodiff((void *)histogram, enzyme_dup, bins, dbins, enzyme_dup, x, g, enzyme_const, bin, enzyme_const, N);
}

static double out[N], dout[N];
static void prepare(void) {
  memset(out, 0, sizeof out);
  for (int i = 0; i < N; i++)
    dout[i] = 1 + i % 3;
}
static void multiply_gradient(double *g) {
  prepare();
  __enzyme_autodiff((void *)multiply, enzyme_dup, out, dout, enzyme_dup, a, g, enzyme_dup, x, g + ENTRIES, enzyme_const, N);
}
static void multiply_transposed_gradient(double *g) {
  prepare();
  __enzyme_autodiff((void *)multiply_transposed, enzyme_dup, out, dout, enzyme_dup, a, g, enzyme_dup, x, g + ENTRIES, enzyme_const, N);
}
static void gather_gradient(double *g) {
  prepare();
  __enzyme_autodiff((void *)gather, enzyme_dup, out, dout, enzyme_dup, x, g, enzyme_const, order, enzyme_const, N);
}
static void scatter_gradient(double *g) {
  prepare();
  __enzyme_autodiff((void *)scatter, enzyme_dup, out, dout, enzyme_dup, x, g, enzyme_const, order, enzyme_const, N);
}

int main(void) {
  for (int i = 0; i < N; i++) {
    x[i] = 0.5 + 0.3 * sin(0.1 * i);
    bin[i] = (i * 37 + i / 11) % BINS;
    order[i] = (int)((i * 7919LL) % N);
    row_start[i + 1] = row_start[i] + i % 6;
  }
  for (int k = 0; k < ENTRIES; k++) {
    a[k] = cos(0.3 * k);
    column[k] = (int)((k * 104729LL) % N);
  }
  check_on_threads(histogram_gradient, N, 1);
  check_on_threads(multiply_gradient, ENTRIES + N, 0);
  check_on_threads(multiply_transposed_gradient, ENTRIES + N, 0);
  check_on_threads(gather_gradient, N, 0);
  check_on_threads(scatter_gradient, N, 1);
  static double g[N];
  histogram_gradient(g);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(g[i], 2 * x[i] * (1 + bin[i]), 1e-12);
  memset(g, 0, sizeof g);
  scatter_gradient(g);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(g[i], 3 * x[i] * x[i] * (1 + order[i] % 3), 1e-12);
  return 0;
}
