// How long the forward pass and the gradients take, for single layers and for the whole model: a line of JSON for each, which `gpt2 bench --c` reads.
#define _POSIX_C_SOURCE 200809L
#include "gpt2.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

extern int enzyme_const, enzyme_dup;
extern void __enzyme_autodiff(void *, ...);

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// The seconds of the quickest of some rounds.
#define QUICKEST(rounds, work)                                                                                                                 \
  ({                                                                                                                                           \
    double quickest = HUGE_VAL;                                                                                                                \
    for (size_t round = 0; round < (rounds); round++) {                                                                                        \
      double start = now();                                                                                                                    \
      work;                                                                                                                                    \
      quickest = fmin(quickest, now() - start);                                                                                                \
    }                                                                                                                                          \
    quickest;                                                                                                                                  \
  })

// A line of the table. Memory is in bytes, 0 where it is not known.
static void print(const char *name, double forward, double manual, double automatic, size_t manual_memory, size_t automatic_memory, size_t threads) {
#ifdef _OPENMP
  const char *openmp = "true";
#else
  const char *openmp = "false";
#endif
  printf("{\"name\": \"%s\", \"language\": \"C\", \"openmp\": %s, \"threads\": %zu, \"forward\": %.9f, \"manual\": %.9f, \"automatic\": %.9f", name, openmp, threads, forward, manual, automatic);
  if (manual_memory && automatic_memory)
    printf(", \"manual_memory\": %zu, \"automatic_memory\": %zu", manual_memory, automatic_memory);
  printf("}\n");
  fflush(stdout);
}

// Starts counting the memory in use again. Where that is not possible the peak is that of the whole run.
static void forget_peak(void) {
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (file) {
    fputs("5", file);
    fclose(file);
  }
}

static size_t peak(void) {
  FILE *file = fopen("/proc/self/status", "r");
  if (!file)
    return 0;
  char line[256];
  size_t kilobytes = 0;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "VmHWM: %zu", &kilobytes) == 1)
      break;
  fclose(file);
  return kilobytes << 10;
}

// The derivative uses its seeds up, so they are copied for each round.
#define SEED(d, seeds, count) memcpy(d, seeds, (count) * sizeof(real))

static void bench_linear(const BenchOptions *options, size_t channels, size_t outputs) {
  size_t n = options->batch.sequences * options->batch.steps;
  real *x = random_numbers(n * channels, 1, 1), *w = random_numbers(outputs * channels, 1, 2), *b = random_numbers(outputs, 1, 3), *seeds = random_numbers(n * outputs, 1, 4);
  real *dx = zeros(n * channels), *dw = zeros(outputs * channels), *db = zeros(outputs), *y = zeros(n * outputs), *dy = zeros(n * outputs);
  double forward = QUICKEST(options->rounds, linear_forward(n, channels, outputs, x, w, b, y));
  double manual = QUICKEST(options->rounds, linear_forward(n, channels, outputs, x, w, b, y); linear_backward(n, channels, outputs, x, dx, w, dw, db, seeds));
  double automatic = QUICKEST(options->rounds, SEED(dy, seeds, n * outputs);
                              __enzyme_autodiff((void *)linear_forward, n, channels, outputs, enzyme_dup, x, dx, enzyme_dup, w, dw, enzyme_dup, b, db, enzyme_dup, y, dy));
  char name[64];
  snprintf(name, sizeof name, "matrix product %zu → %zu", channels, outputs);
  print(name, forward, manual, automatic, 0, 0, options->threads);
  free(x), free(w), free(b), free(seeds), free(dx), free(dw), free(db), free(y), free(dy);
}

static void bench_attention(const BenchOptions *options) {
  size_t sequences = options->batch.sequences, steps = options->batch.steps, channels = options->config.channels, heads = options->config.heads;
  size_t n = sequences * steps, squares = n * heads * steps;
  real *x = random_numbers(n * 3 * channels, 1, 1), *seeds = random_numbers(n * channels, 1, 2), *dx = zeros(n * 3 * channels);
  real *scores = zeros(squares), *weights = zeros(squares), *y = zeros(n * channels), *dscores = zeros(squares), *dweights = zeros(squares), *dy = zeros(n * channels);
  double forward = QUICKEST(options->rounds, attention_forward(sequences, steps, channels, heads, x, scores, weights, y));
  double manual = QUICKEST(options->rounds, attention_forward(sequences, steps, channels, heads, x, scores, weights, y);
                           attention_backward(sequences, steps, channels, heads, x, dx, weights, dscores, seeds));
  memset(dscores, 0, squares * sizeof(real));
  double automatic =
      QUICKEST(options->rounds, SEED(dy, seeds, n * channels); __enzyme_autodiff((void *)attention_forward, sequences, steps, channels, heads, enzyme_dup, x, dx, enzyme_dup,
                                                                                 scores, dscores, enzyme_dup, weights, dweights, enzyme_dup, y, dy));
  char name[64];
  snprintf(name, sizeof name, "attention %zu, %zu heads", channels, heads);
  print(name, forward, manual, automatic, 0, 0, options->threads);
  free(x), free(seeds), free(dx), free(scores), free(weights), free(y), free(dscores), free(dweights), free(dy);
}

static void bench_layer_norm(const BenchOptions *options) {
  size_t n = options->batch.sequences * options->batch.steps, channels = options->config.channels;
  real *x = random_numbers(n * channels, 1, 1), *w = random_numbers(channels, 1, 2), *b = random_numbers(channels, 1, 3), *seeds = random_numbers(n * channels, 1, 4);
  real *dx = zeros(n * channels), *dw = zeros(channels), *db = zeros(channels), *means = zeros(n), *reciprocals = zeros(n), *y = zeros(n * channels);
  real *dmeans = zeros(n), *dreciprocals = zeros(n), *dy = zeros(n * channels);
  double forward = QUICKEST(options->rounds, layer_norm_forward(n, channels, x, w, b, means, reciprocals, y));
  double manual = QUICKEST(options->rounds, layer_norm_forward(n, channels, x, w, b, means, reciprocals, y);
                           layer_norm_backward(n, channels, x, dx, w, dw, db, means, reciprocals, seeds));
  double automatic = QUICKEST(options->rounds, SEED(dy, seeds, n * channels);
                              __enzyme_autodiff((void *)layer_norm_forward, n, channels, enzyme_dup, x, dx, enzyme_dup, w, dw, enzyme_dup, b, db, enzyme_dup, means, dmeans,
                                                enzyme_dup, reciprocals, dreciprocals, enzyme_dup, y, dy));
  char name[64];
  snprintf(name, sizeof name, "layer norm %zu", channels);
  print(name, forward, manual, automatic, 0, 0, options->threads);
  free(x), free(w), free(b), free(seeds), free(dx), free(dw), free(db), free(means), free(reciprocals), free(y), free(dmeans), free(dreciprocals), free(dy);
}

static void bench_gelu(const BenchOptions *options) {
  size_t channels = 4 * options->config.channels, n = options->batch.sequences * options->batch.steps * channels;
  real *x = random_numbers(n, 1, 1), *seeds = random_numbers(n, 1, 2), *dx = zeros(n), *y = zeros(n), *dy = zeros(n);
  double forward = QUICKEST(options->rounds, gelu_forward(n, x, y));
  double manual = QUICKEST(options->rounds, gelu_forward(n, x, y); gelu_backward(n, x, dx, seeds));
  double automatic = QUICKEST(options->rounds, SEED(dy, seeds, n); __enzyme_autodiff((void *)gelu_forward, n, enzyme_dup, x, dx, enzyme_dup, y, dy));
  char name[64];
  snprintf(name, sizeof name, "GELU %zu", channels);
  print(name, forward, manual, automatic, 0, 0, options->threads);
  free(x), free(seeds), free(dx), free(y), free(dy);
}

static void bench_cross_entropy(const BenchOptions *options) {
  size_t n = options->batch.sequences * options->batch.steps, vocabulary = options->config.vocabulary, classes = options->config.padded_vocabulary;
  real *x = random_numbers(n * classes, 1, 1), *dx = zeros(n * classes), *p = zeros(n * classes), *dp = zeros(n * classes);
  real *losses = zeros(n), *dlosses = zeros(n), *seeds = zeros(n);
  uint32_t *targets = random_tokens(n, vocabulary, 2);
  for (size_t t = 0; t < n; t++)
    seeds[t] = (real)1 / n;
  double forward = QUICKEST(options->rounds, cross_entropy_forward(n, vocabulary, classes, x, targets, p, losses));
  double manual = QUICKEST(options->rounds, cross_entropy_forward(n, vocabulary, classes, x, targets, p, losses);
                           cross_entropy_backward(n, vocabulary, classes, dx, targets, p, seeds));
  double automatic =
      QUICKEST(options->rounds, SEED(dlosses, seeds, n); __enzyme_autodiff((void *)cross_entropy_forward, n, vocabulary, classes, enzyme_dup, x, dx, enzyme_const, targets,
                                                                           enzyme_dup, p, dp, enzyme_dup, losses, dlosses));
  char name[64];
  snprintf(name, sizeof name, "softmax cross-entropy %zu", classes);
  print(name, forward, manual, automatic, 0, 0, options->threads);
  free(x), free(dx), free(p), free(dp), free(losses), free(dlosses), free(seeds), free(targets);
}

typedef real Gradient(const Config *, const Batch *, const real *, real *, real *, real *, const uint32_t *, const uint32_t *);

static void bench_model(const BenchOptions *options) {
  const Config *config = &options->config;
  const Batch *batch = &options->batch;
  size_t count = count_parameters(config), work = count_activations(config, batch), tokens = batch->sequences * batch->steps;
  real *parameters = random_numbers(count, 0.02, 1);
  uint32_t *input = random_tokens(tokens, config->vocabulary, 2), *targets = random_tokens(tokens, config->vocabulary, 3);
  Gradient *functions[] = {gradient_by_hand, gradient};
  double forward = HUGE_VAL, seconds[2];
  size_t memory[2];
  for (int i = 0; i < 2; i++) {
    forget_peak();
    real *activations = zeros(work), *dactivations = zeros(work), *grads = zeros(count);
    forward = fmin(forward, QUICKEST(options->rounds, loss(config, batch, parameters, activations, input, targets)));
    seconds[i] = QUICKEST(options->rounds, memset(grads, 0, count * sizeof(real)); memset(dactivations, 0, work * sizeof(real));
                          functions[i](config, batch, parameters, grads, activations, dactivations, input, targets));
    memory[i] = peak();
    free(grads), free(dactivations), free(activations);
  }
  print("whole model", forward, seconds[0], seconds[1], memory[0], memory[1], options->threads);
  free(targets), free(input), free(parameters);
}

void bench(const BenchOptions *options) {
#ifdef _OPENMP
  omp_set_num_threads((int)options->threads);
#endif
  if (options->layers) {
    size_t channels = options->config.channels;
    bench_linear(options, channels, 4 * channels);
    bench_linear(options, 4 * channels, channels);
    bench_attention(options);
    bench_layer_norm(options);
    bench_gelu(options);
    bench_cross_entropy(options);
  }
  if (options->whole)
    bench_model(options);
}
