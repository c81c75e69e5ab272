// flags: -lm
// Matrix products in C++: templates, vectors, operators.
#include "nests.h"
#include <numeric>
#include <vector>

template <typename Number> struct Matrix {
  std::vector<Number> elements;
  long columns;
  Matrix(long rows, long columns) : elements(rows * columns), columns(columns) {}
  Matrix(const Number *from, long rows, long columns) : elements(from, from + rows * columns), columns(columns) {}
  long rows() const { return (long)elements.size() / columns; }
  Number &operator()(long row, long column) { return elements[row * columns + column]; }
  Number operator()(long row, long column) const { return elements[row * columns + column]; }
};

template <typename Number> Matrix<Number> operator*(const Matrix<Number> &a, const Matrix<Number> &b) {
  Matrix<Number> c(a.rows(), b.columns);
  for (long i = 0; i < a.rows(); i++)
    for (long j = 0; j < b.columns; j++)
      for (long l = 0; l < a.columns; l++)
        c(i, j) += a(i, l) * b(l, j);
  return c;
}

// raised: 1
// loops: no product of two matrices
void operators(const double *a, const double *b, double *c, int m, int k, int n) {
  Matrix<double> product = Matrix<double>(a, m, k) * Matrix<double>(b, k, n);
  for (long i = 0; i < m; i++)
    for (long j = 0; j < n; j++)
      c[i * n + j] = product(i, j);
}
GRADIENT(operators)

template <int Block> void by_blocks(const double *__restrict a, const double *__restrict b, double *__restrict c, int m, int k, int n) {
  for (int i = 0; i < m; i++)
    for (int l = 0; l < k; l++)
      for (int j = 0; j < n; j++)
        c[i * n * Block + j] += a[i * k + l] * b[l * n + j];
}

// raised: 3
void templates(const double *__restrict a, const double *__restrict b, double *__restrict c, int m, int k, int n) {
  by_blocks<2>(a, b, c, m, k, n);
}
GRADIENT(templates)

// raised: 0
// loops: no product of two matrices
void inner_product(const double *__restrict a, const double *__restrict b, double *__restrict c, int m, int k, int n) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++)
      c[i * n + j] = std::inner_product(a + i * k, a + (i + 1) * k, b + j * k, 0.0);
}
GRADIENT(inner_product)

// raised: 3
void lambdas(const double *__restrict a, const double *__restrict b, double *__restrict c, int m, int k, int n) {
  auto dot = [=](int i, int j) {
    double sum = 0;
    for (int l = 0; l < k; l++)
      sum += a[i * k + l] * b[l * n + j];
    return sum;
  };
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++)
      c[i * n + j] += 2 * dot(i, j);
}
GRADIENT(lambdas)

int main() {
  CHECK_NEST(operators);
  CHECK_NEST(templates);
  CHECK_NEST(inner_product);
  CHECK_NEST(lambdas);
  return 0;
}
