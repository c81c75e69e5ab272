// flags: -fopenmp -lm
// Stencils: in reverse, iterations next to each other add to the same places.
#include "threads.h"

void __enzyme_autodiff(void *, ...);

enum { N = 40000, ROWS = 200, COLUMNS = 200, STEPS = 4 };
static double x[N], out[N], seed[N];

static void fill(void) {
  for (int i = 0; i < N; i++) {
    x[i] = sin(0.37 * i) + 0.1;
    seed[i] = cos(0.11 * i);
  }
}

static void three_points(double *restrict out, const double *restrict x, int n) {
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    out[i] = x[i - 1] * x[i] + sin(x[i + 1]) * x[i];
}

// Nothing says that the arrays lie apart.
static void five_points(double *out, const double *x, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 2; i < n - 2; i++)
    out[i] = x[i] * (x[i - 2] - 4 * x[i - 1] + 6 * x[i] - 4 * x[i + 1] + x[i + 2]);
}

static void heat(double *restrict out, const double *restrict x, int rows, int columns) {
#pragma omp parallel for
  for (int i = 1; i < rows - 1; i++)
    for (int j = 1; j < columns - 1; j++) {
      double c = x[i * columns + j];
      double flow = x[(i - 1) * columns + j] + x[(i + 1) * columns + j] + x[i * columns + j - 1] + x[i * columns + j + 1] - 4 * c;
      out[i * columns + j] = c + 0.1 * flow * c * c;
    }
}

static void heat_of_constant_size(double out[ROWS][COLUMNS], double x[ROWS][COLUMNS]) {
#pragma omp parallel for
  for (int i = 1; i < ROWS - 1; i++)
    for (int j = 1; j < COLUMNS - 1; j++)
      out[i][j] = x[i][j] * (x[i - 1][j] + x[i + 1][j] + x[i][j - 1] * x[i][j + 1]);
}

// Steps in time between two buffers, in one parallel region.
static void ping_pong(double *out, const double *x, int n) {
  double *a = malloc(n * sizeof(double)), *b = malloc(n * sizeof(double));
  for (int i = 0; i < n; i++)
    a[i] = b[i] = x[i];
#pragma omp parallel
  for (int t = 0; t < STEPS; t++) {
    double *from = t % 2 ? b : a, *to = t % 2 ? a : b;
#pragma omp for
    for (int i = 1; i < n - 1; i++)
      to[i] = from[i] + 0.1 * (from[i - 1] - 2 * from[i] + from[i + 1]) * from[i];
  }
  for (int i = 0; i < n; i++)
    out[i] = a[i];
  free(a);
  free(b);
}

// Each step a region of its own, with the buffers exchanged.
static void exchanged(double *out, double *x, int n) {
  for (int t = 0; t < STEPS; t++) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++)
      out[i] = 0.5 * x[i] * x[i - 1] + 0.25 * x[i + 1];
    double *other = out;
    out = x;
    x = other;
  }
}

#define GRADIENT(name, ...)                                                         \
  static void name##_gradient(double *dx) {                                         \
    static double dout[N], copy[N];                                                 \
    memcpy(dout, seed, sizeof dout);                                                \
    memcpy(copy, x, sizeof copy);                                                   \
    memset(out, 0, sizeof out);                                                     \
    __enzyme_autodiff((void *)name, enzyme_dup, out, dout, enzyme_dup, copy, dx, ##__VA_ARGS__); \
  }

GRADIENT(three_points, enzyme_const, N)
GRADIENT(five_points, enzyme_const, N)
GRADIENT(heat, enzyme_const, ROWS, enzyme_const, COLUMNS)
GRADIENT(heat_of_constant_size)
GRADIENT(ping_pong, enzyme_const, N)
GRADIENT(exchanged, enzyme_const, N)

int main(void) {
  fill();
  check_on_threads(three_points_gradient, N, 1);
  check_on_threads(five_points_gradient, N, 1);
  check_on_threads(heat_gradient, N, 1);
  check_on_threads(heat_of_constant_size_gradient, N, 1);
  check_on_threads(ping_pong_gradient, N, 1);
  check_on_threads(exchanged_gradient, N, 1);
  // A closed form: out[i] = x[i-1] x[i] + sin(x[i+1]) x[i].
  static double dx[N];
  three_points_gradient(dx);
  for (int i = 3; i < N - 3; i++)
    CHECK_CLOSE(dx[i], seed[i] * (x[i - 1] + sin(x[i + 1])) + seed[i + 1] * x[i + 1] + seed[i - 1] * cos(x[i]) * x[i - 1], 1e-12);
  return 0;
}
