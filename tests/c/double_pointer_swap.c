// flags: -lm
// Two buffers that take turns: a stencil in time, with pointers swapped in each step.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double diffuse(const double *start, int n, int steps) {
  double *now = malloc(n * sizeof *now), *next = malloc(n * sizeof *next);
  for (int i = 0; i < n; i++)
    now[i] = start[i];
  for (int s = 0; s < steps; s++) {
    next[0] = now[0];
    next[n - 1] = now[n - 1];
    for (int i = 1; i + 1 < n; i++)
      next[i] = now[i] + 0.1 * now[i] * (now[i - 1] - 2 * now[i] + now[i + 1]);
    double *t = now;
    now = next;
    next = t;
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += now[i] * now[i];
  free(now);
  free(next);
  return sum;
}

int main(void) {
  enum { N = 8 };
  double x[N], dx[N] = {0}, h = 1e-6;
  for (int i = 0; i < N; i++)
    x[i] = sin(i);
  __enzyme_autodiff((void *)diffuse, enzyme_dup, x, dx, enzyme_const, N, enzyme_const, 7);
  for (int i = 0; i < N; i++) {
    double kept = x[i];
    x[i] = kept + h;
    double up = diffuse(x, N, 7);
    x[i] = kept - h;
    double down = diffuse(x, N, 7);
    x[i] = kept;
    CHECK_CLOSE(dx[i], (up - down) / (2 * h), 1e-7);
  }
  return 0;
}
