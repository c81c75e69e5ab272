// flags: -lm
// A recursive Fourier transform on the heap: the gradient of a spectral energy, which Parseval knows.
#include "check.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static void transform(double *re, double *im, int n) {
  if (n == 1)
    return;
  int half = n / 2;
  double *part = malloc(2 * n * sizeof *part);
  double *er = part, *ei = part + half, *odr = part + n, *odi = part + n + half;
  for (int i = 0; i < half; i++) {
    er[i] = re[2 * i];
    ei[i] = im[2 * i];
    odr[i] = re[2 * i + 1];
    odi[i] = im[2 * i + 1];
  }
  transform(er, ei, half);
  transform(odr, odi, half);
  for (int k = 0; k < half; k++) {
    double c = cos(2 * M_PI * k / n), s = -sin(2 * M_PI * k / n);
    double tr = c * odr[k] - s * odi[k], ti = c * odi[k] + s * odr[k];
    re[k] = er[k] + tr;
    im[k] = ei[k] + ti;
    re[k + half] = er[k] - tr;
    im[k + half] = ei[k] - ti;
  }
  free(part);
}

double energy(const double *x, int n) {
  double *re = malloc(n * sizeof *re), *im = calloc(n, sizeof *im);
  for (int i = 0; i < n; i++)
    re[i] = x[i];
  transform(re, im, n);
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += re[i] * re[i] + im[i] * im[i];
  free(re);
  free(im);
  return sum;
}

int main(void) {
  enum { N = 16 };
  double x[N], dx[N] = {0};
  for (int i = 0; i < N; i++)
    x[i] = sin(1.3 * i) + 0.1 * i;
  __enzyme_autodiff((void *)energy, enzyme_dup, x, dx, enzyme_const, N);
  for (int i = 0; i < N; i++)
    CHECK_CLOSE(dx[i], 2 * N * x[i], 1e-10);
  return 0;
}
