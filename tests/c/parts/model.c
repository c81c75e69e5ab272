// Part of two_files.c.
#include "model.h"
#include <math.h>

static double activation(double x) { return x / (1 + exp(-x)); }

double model_loss(const double *w, const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += activation(w[i] * x[i]);
  return sum * sum;
}
