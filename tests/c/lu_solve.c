// flags: -lm
// A linear system by elimination with pivoting: rows are swapped through pointers. The adjoint of A⁻¹b is known.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static void solve(double *a, double *b, int n) {
  for (int k = 0; k < n; k++) {
    int best = k;
    for (int i = k + 1; i < n; i++)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k]))
        best = i;
    if (best != k) {
      for (int j = 0; j < n; j++) {
        double t = a[k * n + j];
        a[k * n + j] = a[best * n + j];
        a[best * n + j] = t;
      }
      double t = b[k];
      b[k] = b[best];
      b[best] = t;
    }
    for (int i = k + 1; i < n; i++) {
      double factor = a[i * n + k] / a[k * n + k];
      for (int j = k; j < n; j++)
        a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++)
      b[i] -= a[i * n + j] * b[j];
    b[i] /= a[i * n + i];
  }
}

double first_of_solution(const double *a, const double *b, int n) {
  double *copy = malloc(n * n * sizeof *copy), *x = malloc(n * sizeof *x);
  for (int i = 0; i < n * n; i++)
    copy[i] = a[i];
  for (int i = 0; i < n; i++)
    x[i] = b[i];
  solve(copy, x, n);
  double result = x[0];
  free(copy);
  free(x);
  return result;
}

int main(void) {
  enum { N = 4 };
  double a[N * N] = {1, 5, 2, 0.5, 4, 1, -1, 3, 2, 2, 6, 1, 0.5, 1, 1, 7}, b[N] = {1, 2, 3, 4};
  double da[N * N] = {0}, db[N] = {0}, h = 1e-6;
  __enzyme_autodiff((void *)first_of_solution, enzyme_dup, a, da, enzyme_dup, b, db, enzyme_const, N);
  for (int i = 0; i < N * N; i++) {
    double kept = a[i];
    a[i] = kept + h;
    double up = first_of_solution(a, b, N);
    a[i] = kept - h;
    double down = first_of_solution(a, b, N);
    a[i] = kept;
    CHECK_CLOSE(da[i], (up - down) / (2 * h), 1e-7);
  }
  for (int i = 0; i < N; i++) {
    double kept = b[i];
    b[i] = kept + h;
    double up = first_of_solution(a, b, N);
    b[i] = kept - h;
    double down = first_of_solution(a, b, N);
    b[i] = kept;
    CHECK_CLOSE(db[i], (up - down) / (2 * h), 1e-7);
  }
  return 0;
}
