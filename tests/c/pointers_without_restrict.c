// flags: -lm
// Layers over pieces of one array, through pointers without `restrict`: what they read may be overwritten as far as the compiler knows. The derivative is right where pieces
// lie apart and where they overlap, and where they lie apart it needs no memory of the size of the work.
#include "check.h"
#include <string.h>
#include <sys/resource.h>

int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

// out = in weight^T + bias, eight rows at a time.
static void product(double *out, const double *in, const double *weight, const double *bias, int rows, int channels, int outputs) {
  for (int block = 0; block < rows; block += 8)
    for (int o = 0; o < outputs; o++) {
      double sums[8];
      for (int k = 0; k < 8; k++)
        sums[k] = bias ? bias[o] : 0;
      for (int i = 0; i < channels; i++)
        for (int k = 0; k < 8; k++)
          sums[k] += in[(block + k) * channels + i] * weight[o * channels + i];
      for (int k = 0; k < 8; k++)
        out[(block + k) * outputs + o] = sums[k];
    }
}

static void square(double *out, const double *in, int count) {
  for (int i = 0; i < count; i++)
    out[i] = in[i] * in[i];
}

typedef struct {
  int layers, rows, channels;
  // Each a piece of an array of parameters or of one of activations, layer by layer.
  double *weight, *bias, *start, *linear, *squared;
} Model;

__attribute__((noinline)) static void run(Model *model) {
  int n = model->channels, rows = model->rows, layers = model->layers;
  double *weight = model->weight, *bias = model->bias, *start = model->start, *linear = model->linear, *squared = model->squared;
  for (int l = 0; l < layers; l++) {
    const double *in = l == 0 ? start : squared + (l - 1) * rows * n;
    product(linear + l * rows * n, in, weight + l * n * n, bias + l * n, rows, n, n);
    square(squared + l * rows * n, linear + l * rows * n, rows * n);
  }
}

static Model cut(int layers, int rows, int channels, double *parameters, double *activations, int overlap) {
  Model model = {layers, rows, channels};
  model.weight = parameters;
  model.bias = model.weight + layers * channels * channels;
  model.start = activations;
  model.linear = model.start + rows * channels;
  model.squared = model.linear + (overlap ? 0 : layers * rows * channels);
  return model;
}

static double sum_of(const double *numbers, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += numbers[i];
  return sum;
}

static double random_number(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) / (double)(1 << 24) - 0.5;
}

// Compares the gradient of the sum of the last layer in one direction with a difference.
static void check_gradient(int layers, int rows, int channels, int overlap) {
  int parameters = layers * (channels * channels + channels), activations = (1 + 2 * layers) * rows * channels;
  int last = (layers - 1) * rows * channels, count = rows * channels;
  double *p = calloc(parameters, 8), *dp = calloc(parameters, 8), *a = calloc(activations, 8), *da = calloc(activations, 8), *towards = calloc(parameters, 8);
  unsigned state = 1;
  for (int i = 0; i < parameters; i++)
    p[i] = random_number(&state), towards[i] = random_number(&state);
  for (int i = 0; i < count; i++)
    a[i] = random_number(&state);
  Model model = cut(layers, rows, channels, p, a, overlap), shadow = cut(layers, rows, channels, dp, da, overlap);
  for (int i = 0; i < count; i++)
    shadow.squared[last + i] = 1;
  __enzyme_autodiff((void *)run, enzyme_dup, &model, &shadow);
  double slope = 0, values[2], step = 1e-6;
  for (int i = 0; i < parameters; i++)
    slope += dp[i] * towards[i];
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < parameters; i++)
      p[i] += (side ? -2 : 1) * step * towards[i];
    state = 1;
    for (int i = 0; i < 2 * parameters; i++)
      random_number(&state);
    memset(a, 0, activations * 8);
    for (int i = 0; i < count; i++)
      a[i] = random_number(&state);
    run(&model);
    values[side] = sum_of(model.squared + last, count);
  }
  CHECK_CLOSE(slope, (values[0] - values[1]) / (2 * step), 1e-6);
  free(p), free(dp), free(a), free(da), free(towards);
}

static long peak(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// The gradient of one product, whose terms are many more than its numbers.
static void check_memory(int rows, int channels, int outputs) {
  double *in = calloc(rows * channels, 8), *din = calloc(rows * channels, 8), *weight = calloc(outputs * channels, 8), *dweight = calloc(outputs * channels, 8);
  double *out = calloc(rows * outputs, 8), *dout = calloc(rows * outputs, 8);
  for (int i = 0; i < rows * channels; i++)
    in[i] = i % 7;
  for (int i = 0; i < rows * outputs; i++)
    dout[i] = 1;
  long before = peak();
  __enzyme_autodiff((void *)product, enzyme_dup, out, dout, enzyme_dup, in, din, enzyme_dup, weight, dweight, enzyme_const, NULL, rows, channels, outputs);
  double expected = 0;
  for (int t = 0; t < rows; t++)
    expected += t * channels % 7;
  CHECK_CLOSE(dweight[0], expected, 1e-12);
  CHECK_CLOSE(dweight[channels * (outputs - 1)], expected, 1e-12);
#ifndef PERTURBED
  // A tape of the terms would have 32 megabytes and more.
  CHECK(peak() - before < 16 << 10);
#endif
  free(in), free(din), free(weight), free(dweight), free(out), free(dout);
}

int main(void) {
  check_memory(256, 128, 128);
  check_gradient(3, 8, 4, 0);
  check_gradient(3, 8, 4, 1);
  return 0;
}
