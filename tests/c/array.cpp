// flags: -lm
// std::array and matrices as templates over their size.
#include "check.h"
#include <array>
#include <cmath>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

template <std::size_t R, std::size_t C> struct Matrix {
  std::array<std::array<double, C>, R> rows{};
  double &operator()(std::size_t i, std::size_t j) { return rows[i][j]; }
  double operator()(std::size_t i, std::size_t j) const { return rows[i][j]; }
};

template <std::size_t R, std::size_t K, std::size_t C> Matrix<R, C> operator*(const Matrix<R, K> &a, const Matrix<K, C> &b) {
  Matrix<R, C> product;
  for (std::size_t i = 0; i < R; i++)
    for (std::size_t j = 0; j < C; j++)
      for (std::size_t k = 0; k < K; k++)
        product(i, j) += a(i, k) * b(k, j);
  return product;
}

static double trace_of_square(const Matrix<3, 3> &m) {
  Matrix<3, 3> square = m * m;
  double trace = 0;
  for (int i = 0; i < 3; i++)
    trace += square(i, i);
  return trace;
}

static double sum(std::array<double, 4> &x) {
  double total = 0;
  for (double v : x)
    total += std::sqrt(v);
  return total;
}

int main() {
  Matrix<3, 3> m, dm;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      m(i, j) = 1 + i - 0.5 * j;
  __enzyme_autodiff<void>((void *)trace_of_square, enzyme_dup, &m, &dm);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      CHECK_CLOSE(dm(i, j), 2 * m(j, i), 1e-12);
  std::array<double, 4> x{1, 4, 9, 16}, dx{};
  __enzyme_autodiff<void>((void *)sum, enzyme_dup, &x, &dx);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(dx[i], 0.5 / (i + 1), 1e-12);
  return 0;
}
