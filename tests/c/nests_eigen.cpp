// flags: -I/usr/include/eigen3 -lm
// Products of Eigen, which has its own kernels for large ones; lazy products are loops.
#include "nests.h"
#include <Eigen/Core>

using Input = Eigen::Map<const Eigen::MatrixXd>;
using Output = Eigen::Map<Eigen::MatrixXd>;

// raised: 0
// loops: no product of two matrices
void lazy(const double *a, const double *b, double *c, int m, int k, int n) {
  Output(c, m, n) = Input(a, m, k).lazyProduct(Input(b, k, n));
}
GRADIENT(lazy)

// raised: 0
// loops: no product of two matrices
void lazy_transposed(const double *a, const double *b, double *c, int m, int k, int n) {
  Output(c, m, n) += Input(a, k, m).transpose().lazyProduct(Input(b, k, n));
}
GRADIENT(lazy_transposed)

// raised: 4
// loops: no product of two matrices
void coefficients(const double *a, const double *b, double *c, int m, int k, int n) {
  Input left(a, m, k), right(b, k, n);
  Output result(c, m, n);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += left(i, l) * right(l, j);
      result(i, j) = sum;
    }
}
GRADIENT(coefficients)

// raised: 0
// loops: no product of two matrices
void columns(const double *a, const double *b, double *c, int m, int k, int n) {
  Input left(a, m, k), right(b, k, n);
  Output result(c, m, n);
  result.setZero();
  for (int j = 0; j < n; j++)
    for (int l = 0; l < k; l++)
      result.col(j) += right(l, j) * left.col(l);
}
GRADIENT(columns)

int main() {
  CHECK_NEST(lazy);
  CHECK_NEST(lazy_transposed);
  CHECK_NEST(coefficients);
  CHECK_NEST(columns);
  return 0;
}
