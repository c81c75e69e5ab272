// flags: -lm
// A matrix class with its memory on the heap: constructors, copies, moves, operators, destructors.
#include "check.h"
#include <algorithm>
#include <cmath>
#include <utility>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

class Matrix {
  int n;
  double *data;

public:
  explicit Matrix(int n) : n(n), data(new double[n * n]()) {}
  Matrix(const Matrix &o) : n(o.n), data(new double[o.n * o.n]) { std::copy(o.data, o.data + n * n, data); }
  Matrix(Matrix &&o) noexcept : n(o.n), data(o.data) { o.data = nullptr; }
  Matrix &operator=(Matrix o) {
    std::swap(n, o.n);
    std::swap(data, o.data);
    return *this;
  }
  ~Matrix() { delete[] data; }
  double &operator()(int i, int j) { return data[i * n + j]; }
  double operator()(int i, int j) const { return data[i * n + j]; }
  int size() const { return n; }
};

static Matrix operator*(const Matrix &a, const Matrix &b) {
  Matrix c(a.size());
  for (int i = 0; i < a.size(); i++)
    for (int j = 0; j < a.size(); j++)
      for (int k = 0; k < a.size(); k++)
        c(i, j) += a(i, k) * b(k, j);
  return c;
}

static double power_trace(const double *values, int n, int power) {
  Matrix m(n), p(n);
  for (int i = 0; i < n; i++) {
    p(i, i) = 1;
    for (int j = 0; j < n; j++)
      m(i, j) = values[i * n + j];
  }
  for (int k = 0; k < power; k++)
    p = p * m;
  double trace = 0;
  for (int i = 0; i < n; i++)
    trace += p(i, i);
  return trace;
}

int main() {
  const int n = 3;
  double x[n * n], dx[n * n] = {}, h = 1e-6;
  for (int i = 0; i < n * n; i++)
    x[i] = 0.3 * std::sin(i + 1.0);
  __enzyme_autodiff<void>((void *)power_trace, enzyme_dup, x, dx, enzyme_const, n, enzyme_const, 3);
  for (int i = 0; i < n * n; i++) {
    double kept = x[i];
    x[i] = kept + h;
    double up = power_trace(x, n, 3);
    x[i] = kept - h;
    double down = power_trace(x, n, 3);
    x[i] = kept;
    CHECK_CLOSE(dx[i], (up - down) / (2 * h), 1e-8);
  }
  return 0;
}
