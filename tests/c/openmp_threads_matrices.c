// flags: -fopenmp -lm
// Rows and columns of matrices, with inputs that all threads share, memory of their own, and regions inside regions.
#include "threads.h"

void __enzyme_autodiff(void *, ...);

enum { ROWS = 120, COLUMNS = 90, WIDTH = 100 };
static double a[ROWS * COLUMNS], b[COLUMNS * WIDTH], v[COLUMNS], out[ROWS * WIDTH];

static void matrix_vector(double *out, const double *a, const double *v, int rows, int columns) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++) {
    double sum = 0;
    for (int j = 0; j < columns; j++)
      sum += a[i * columns + j] * tanh(v[j]);
    out[i] = sum * sum;
  }
}

static void columns_with_shared_inputs(double *out, const double *a, const double *v, int rows, int columns) {
#pragma omp parallel for
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < rows; i++)
      out[i * columns + j] = a[i * columns + j] * v[j] + exp(-v[j]) * v[(j + 1) % columns];
}

static void softmax(double *out, const double *a, const double *v, int rows, int columns) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++) {
    double e[COLUMNS], sum = 0;
    for (int j = 0; j < columns; j++) {
      e[j] = exp(a[i * columns + j] * v[j]);
      sum += e[j];
    }
    for (int j = 0; j < columns; j++)
      out[i * columns + j] = e[j] / sum;
  }
}

// The memory belongs to the thread, not to the iteration.
static void private_array(double *out, const double *a, const double *v, int rows, int columns) {
  double t[COLUMNS];
#pragma omp parallel for private(t)
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < columns; j++)
      t[j] = a[i * columns + j] * a[i * columns + j];
    for (int j = 0; j < columns; j++)
      out[i * columns + j] = t[j] * t[columns - 1 - j] + v[j];
  }
}

static void both_loops(double *out, const double *a, const double *v, int rows, int columns) {
#pragma omp parallel for collapse(2)
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      out[i * columns + j] = sin(a[i * columns + j]) * v[j] * v[j];
}

static void nested(double *out, const double *a, const double *v, int rows, int columns) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++) {
#pragma omp parallel for
    for (int j = 0; j < columns; j++)
      out[i * columns + j] = a[i * columns + j] * a[i * columns + j] * v[j];
  }
}

// Memory from the heap in each iteration, and a function that is not inlined.
__attribute__((noinline)) static double norm(const double *x, int n) {
  double sum = 1;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sqrt(sum);
}

static void normalised(double *out, const double *a, const double *v, int rows, int columns) {
#pragma omp parallel for schedule(static, 8)
  for (int i = 0; i < rows; i++) {
    double *row = malloc(columns * sizeof(double));
    for (int j = 0; j < columns; j++)
      row[j] = a[i * columns + j] + v[j];
    double scale = norm(row, columns);
    for (int j = 0; j < columns; j++)
      out[i * columns + j] = row[j] / scale;
    free(row);
  }
}

static void product(double *out, const double *a, const double *b, int rows, int columns, int width) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < width; j++) {
      double sum = 0;
      for (int k = 0; k < columns; k++)
        sum += a[i * columns + k] * b[k * width + j];
      out[i * width + j] = sum;
    }
}

static double dout[ROWS * WIDTH];
static void prepare(void) {
  memset(out, 0, sizeof out);
  for (int i = 0; i < ROWS * WIDTH; i++)
    dout[i] = 1 + i % 5;
}

#define GRADIENT(name)                                                                                                                                    \
  static void name##_gradient(double *g) {                                                                                                                \
    prepare();                                                                                                                                            \
    __enzyme_autodiff((void *)name, enzyme_dup, out, dout, enzyme_dup, a, g, enzyme_dup, v, g + ROWS * COLUMNS, enzyme_const, ROWS, enzyme_const, COLUMNS); \
  }
GRADIENT(matrix_vector)
GRADIENT(columns_with_shared_inputs)
GRADIENT(softmax)
GRADIENT(private_array)
GRADIENT(both_loops)
GRADIENT(nested)
GRADIENT(normalised)

static void product_gradient(double *g) {
  prepare();
  __enzyme_autodiff((void *)product, enzyme_dup, out, dout, enzyme_dup, a, g, enzyme_dup, b, g + ROWS * COLUMNS, enzyme_const, ROWS, enzyme_const, COLUMNS, enzyme_const, WIDTH);
}

int main(void) {
  for (int i = 0; i < ROWS * COLUMNS; i++)
    a[i] = sin(0.1 * i);
  for (int i = 0; i < COLUMNS * WIDTH; i++)
    b[i] = cos(0.3 * i);
  for (int j = 0; j < COLUMNS; j++)
    v[j] = 0.3 + 0.2 * cos(j);
  int inputs = ROWS * COLUMNS + COLUMNS;
  check_on_threads(matrix_vector_gradient, inputs, 1);
  check_on_threads(columns_with_shared_inputs_gradient, inputs, 0);
  check_on_threads(softmax_gradient, inputs, 1);
  check_on_threads(private_array_gradient, inputs, 1);
  check_on_threads(both_loops_gradient, inputs, 0);
  check_on_threads(nested_gradient, inputs, 1);
  check_on_threads(normalised_gradient, inputs, 0);
  check_on_threads(product_gradient, ROWS * COLUMNS + COLUMNS * WIDTH, 1);
  static double g[ROWS * COLUMNS + COLUMNS];
  prepare();
  nested_gradient(g);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++)
      CHECK_CLOSE(g[i * COLUMNS + j], (1 + (i * COLUMNS + j) % 5) * 2 * a[i * COLUMNS + j] * v[j], 1e-12);
  return 0;
}
