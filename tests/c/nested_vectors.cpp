// flags: -lm
// Matrices as vectors of vectors, returned by value: constructors that clean up behind themselves.
#include "differences.h"
#include <vector>

using Matrix = std::vector<std::vector<double>>;

static Matrix product(const Matrix &a, const Matrix &b) {
  std::size_t n = a.size();
  Matrix c(n, std::vector<double>(n, 0.0));
  for (std::size_t i = 0; i < n; i++)
    for (std::size_t j = 0; j < n; j++)
      for (std::size_t k = 0; k < n; k++)
        c[i][j] += a[i][k] * b[k][j];
  return c;
}

static double function(double *x, int n) {
  Matrix a(3, std::vector<double>(3));
  for (int i = 0; i < 9; i++)
    a[i / 3][i % 3] = x[i % n];
  Matrix cube = product(product(a, a), a);
  return cube[0][1] + cube[2][2];
}
