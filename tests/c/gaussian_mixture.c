// flags: -lm
// The likelihood of a mixture of Gaussians: logarithms of sums of exponentials, with their maxima taken out.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

static double log_sum_exp(const double *x, int n) {
  double most = x[0], sum = 0;
  for (int i = 1; i < n; i++)
    if (x[i] > most)
      most = x[i];
  for (int i = 0; i < n; i++)
    sum += exp(x[i] - most);
  return most + log(sum);
}

double likelihood(const double *alphas, const double *means, const double *log_widths, const double *data, int n, int k) {
  double *terms = malloc(k * sizeof *terms), total = -n * log_sum_exp(alphas, k);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < k; j++) {
      double z = (data[i] - means[j]) / exp(log_widths[j]);
      terms[j] = alphas[j] - log_widths[j] - 0.5 * z * z;
    }
    total += log_sum_exp(terms, k);
  }
  free(terms);
  return total;
}

int main(void) {
  enum { N = 9, K = 3 };
  double p[3][K] = {{0.1, 0.3, -0.2}, {-1, 0.5, 2}, {0.1, -0.3, 0.2}}, d[3][K] = {{0}}, data[N], h = 1e-6;
  for (int i = 0; i < N; i++)
    data[i] = 3 * sin(i);
  __enzyme_autodiff((void *)likelihood, enzyme_dup, p[0], d[0], enzyme_dup, p[1], d[1], enzyme_dup, p[2], d[2], enzyme_const, data, enzyme_const, N,
                    enzyme_const, K);
  for (int a = 0; a < 3; a++)
    for (int j = 0; j < K; j++) {
      double kept = p[a][j];
      p[a][j] = kept + h;
      double up = likelihood(p[0], p[1], p[2], data, N, K);
      p[a][j] = kept - h;
      double down = likelihood(p[0], p[1], p[2], data, N, K);
      p[a][j] = kept;
      CHECK_CLOSE(d[a][j], (up - down) / (2 * h), 1e-7);
    }
  return 0;
}
