// The gradient of GELU, a layer of neural networks, over an array, in its approximation by tanh:
//
//   y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

extern int enzyme_dup, enzyme_dupnoneed, enzyme_const;
void __enzyme_autodiff(void *, ...);

static void gelu(const float *restrict x, float *restrict y, int n) {
  const float scale = 0.7978845608f;
  for (int i = 0; i < n; i++) {
    float inner = scale * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
    y[i] = 0.5f * x[i] * (1.0f + tanhf(inner));
  }
}

// By hand, to compare.
static float gelu_slope(float x) {
  const float scale = 0.7978845608f;
  float t = tanhf(scale * (x + 0.044715f * x * x * x));
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * scale * (1.0f + 3 * 0.044715f * x * x);
}

int main(void) {
  enum { N = 1024 };
  float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
  float *dx = calloc(N, sizeof *dx), *dy = malloc(N * sizeof *dy);
  for (int i = 0; i < N; i++) {
    x[i] = 6.0f * i / N - 3.0f;
    dy[i] = 1.0f; // the gradient of what follows; here: the sum of y
  }
  __enzyme_autodiff((void *)gelu, enzyme_dup, x, dx, enzyme_dupnoneed, y, dy, enzyme_const, N);

  float worst = 0;
  for (int i = 0; i < N; i++)
    worst = fmaxf(worst, fabsf(dx[i] - gelu_slope(x[i])));
  printf("gelu'(-1) = %.4f, gelu'(1) = %.4f, largest difference from the formula: %.1e\n", dx[N / 3], dx[2 * N / 3], worst);
  free(x), free(y), free(dx), free(dy);
  return worst < 1e-5f ? 0 : 1;
}
