// flags: -fopenmp -lm
// Particles: every iteration reads all of them, so that in reverse every iteration adds to all of them.
#include "threads.h"

double __enzyme_autodiff(void *, ...);

enum { N = 300 };
static double p[3 * N], charge[N];

static double energy(const double *p, const double *charge, int n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (i == j)
        continue;
      double d2 = 0.01;
      for (int k = 0; k < 3; k++) {
        double d = p[3 * i + k] - p[3 * j + k];
        d2 += d * d;
      }
      sum += charge[i] * charge[j] / sqrt(d2);
    }
  return 0.5 * sum;
}

// Each pair once.
static double energy_of_pairs(const double *p, const double *charge, int n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(guided)
  for (int i = 1; i < n; i++)
    for (int j = 0; j < i; j++) {
      double dx = p[3 * i] - p[3 * j], dy = p[3 * i + 1] - p[3 * j + 1], dz = p[3 * i + 2] - p[3 * j + 2];
      sum += charge[i] * charge[j] / sqrt(dx * dx + dy * dy + dz * dz + 0.01);
    }
  return sum;
}

static void forces(double *f, const double *p, const double *charge, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double force[3] = {0, 0, 0};
    for (int j = 0; j < n; j++) {
      double d[3], d2 = 0.01;
      for (int k = 0; k < 3; k++) {
        d[k] = p[3 * i + k] - p[3 * j + k];
        d2 += d[k] * d[k];
      }
      double scale = charge[i] * charge[j] / (d2 * sqrt(d2));
      for (int k = 0; k < 3; k++)
        force[k] += scale * d[k];
    }
    for (int k = 0; k < 3; k++)
      f[3 * i + k] = force[k];
  }
}

#define GRADIENT(name)                                                                                      \
  static void name##_gradient(double *g) {                                                                  \
    __enzyme_autodiff((void *)name, enzyme_dup, p, g, enzyme_dup, charge, g + 3 * N, enzyme_const, N);      \
  }
GRADIENT(energy)
GRADIENT(energy_of_pairs)

static void forces_gradient(double *g) {
  static double f[3 * N], df[3 * N];
  for (int i = 0; i < 3 * N; i++)
    df[i] = cos(0.2 * i);
  __enzyme_autodiff((void *)forces, enzyme_dup, f, df, enzyme_dup, p, g, enzyme_dup, charge, g + 3 * N, enzyme_const, N);
}

int main(void) {
  for (int i = 0; i < 3 * N; i++)
    p[i] = 3 * sin(1.7 * i * i + i);
  for (int i = 0; i < N; i++)
    charge[i] = i % 2 ? 1.5 : -1;
  check_on_threads(energy_gradient, 4 * N, 1);
  check_on_threads(energy_of_pairs_gradient, 4 * N, 1);
  check_on_threads(forces_gradient, 4 * N, 1);
  static double a[4 * N], b[4 * N];
  energy_gradient(a);
  energy_of_pairs_gradient(b);
  for (int i = 0; i < 4 * N; i++)
    CHECK_CLOSE(a[i], b[i], 1e-10);
  for (int i = 0; i < 4 * N; i += 97) {
    double *at = i < 3 * N ? &p[i] : &charge[i - 3 * N], kept = *at, h = 1e-6;
    *at = kept + h;
    double above = energy(p, charge, N);
    *at = kept - h;
    double below = energy(p, charge, N);
    *at = kept;
    CHECK_CLOSE(a[i], (above - below) / (2 * h), 1e-4);
  }
  return 0;
}
