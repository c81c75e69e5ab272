// Compares the automatic gradient with the hand-written one and, in double precision, with finite differences: every tensor of small models.
#include "gpt2.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

// A model, and a batch to look at.
typedef struct {
  Config config;
  Batch batch;
  real *parameters, *activations;
  uint32_t *tokens, *targets;
} Case;

static double loss_of(Case *c) { return loss(&c->config, &c->batch, c->parameters, c->activations, c->tokens, c->targets); }

// The slope of the loss along parameter `i`, by central differences of fourth order.
static real slope(Case *c, size_t i) {
  const double step = 1e-3;
  real middle = c->parameters[i];
  double at[5];
  for (int offset = -2; offset <= 2; offset++) {
    c->parameters[i] = middle + offset * step;
    at[offset + 2] = loss_of(c);
  }
  c->parameters[i] = middle;
  return (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * step);
}

// The gradient by finite differences at up to 200 parameters of each tensor; others are as in `like`.
static real *finite_differences(Case *c, const real *like) {
  size_t L = c->config.layers, C = c->config.channels, V = c->config.padded_vocabulary, S = c->config.max_steps;
  size_t count = count_parameters(&c->config), start = 0;
  real *gradient = zeros(count);
  memcpy(gradient, like, count * sizeof(real));
#define DIFFERENCES(name, length)                                                                                                          \
  for (size_t i = 0; i < (length); i += ((length) + 199) / 200)                                                                                \
    gradient[start + i] = slope(c, start + i);                                                                                             \
  start += (length);
  PARAMETERS(DIFFERENCES)
  return gradient;
}

// Whether a tensor of two gradients is the same up to `tolerance` times its largest number.
static int tensor_differs(const char *name, size_t length, const real *expected, const real *actual, double tolerance) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < length; i++) {
    double d = fabs((double)expected[i] - (double)actual[i]);
    largest = fmax(largest, fabs((double)expected[i]));
    if (d > difference || isnan(d))
      difference = d;
  }
  double relative = difference == 0 ? 0 : difference / largest;
  int good = largest > 0 && relative <= tolerance;
  printf("    %-9s largest %9.2e  relative difference %8.1e  %s\n", name, largest, relative, good ? "good" : "WRONG");
  return !good;
}

static int compare(const char *what, const Config *config, const real *expected, const real *actual, double tolerance) {
  size_t L = config->layers, C = config->channels, V = config->padded_vocabulary, S = config->max_steps;
  int wrong = 0;
  printf("  automatic and %s\n", what);
#define COMPARE(name, length)                                                                                                              \
  wrong += tensor_differs(#name, length, expected, actual, tolerance);                                                                         \
  expected += length;                                                                                                                      \
  actual += length;
  PARAMETERS(COMPARE)
  return wrong;
}

static int check_case(Case *c) {
  size_t count = count_parameters(&c->config), tokens = c->batch.sequences * c->batch.steps, work = count_activations(&c->config, &c->batch);
  printf("%zu layers, %zu heads, %zu channels, %zu x %zu tokens, %s precision\n", c->config.layers, c->config.heads, c->config.channels, c->batch.sequences, c->batch.steps,
         sizeof(real) == 8 ? "double" : "single");
  c->parameters = random_numbers(count, 0.3, 1);
  c->activations = zeros(work);
  c->tokens = random_tokens(tokens, c->config.vocabulary, 2);
  c->targets = random_tokens(tokens, c->config.vocabulary, 3);
  real *automatic = zeros(count), *manual = zeros(count), *dactivations = zeros(work);

  double value = gradient(&c->config, &c->batch, c->parameters, automatic, c->activations, dactivations, c->tokens, c->targets);
  memset(dactivations, 0, work * sizeof(real));
  double manual_value = gradient_by_hand(&c->config, &c->batch, c->parameters, manual, c->activations, dactivations, c->tokens, c->targets);
  int wrong = !(fabs(value - manual_value) <= (sizeof(real) == 8 ? 1e-12 : 1e-5) * fabs(value));
  printf("  losses %.12g (automatic) and %.12g (hand-written)  %s\n", value, manual_value, wrong ? "WRONG" : "good");
  wrong += compare("hand-written", &c->config, manual, automatic, sizeof(real) == 8 ? 1e-10 : 1e-4);
  if (sizeof(real) == 8) {
#ifdef _OPENMP
    // So many and so small steps are quicker without other threads.
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    real *differences = finite_differences(c, automatic);
    wrong += compare("finite differences", &c->config, differences, automatic, 1e-6);
    free(differences);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
  }

  free(dactivations);
  free(manual);
  free(automatic);
  free(c->targets);
  free(c->tokens);
  free(c->activations);
  free(c->parameters);
  return wrong;
}

int check(void) {
  Case cases[] = {
      {.config = {1, 1, 4, 11, 16, 2}, .batch = {1, 2}},
      {.config = {2, 2, 8, 11, 16, 5}, .batch = {2, 5}},
      {.config = {2, 3, 24, 11, 11, 9}, .batch = {1, 9}},
  };
  int wrong = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    wrong += check_case(&cases[i]);
  if (wrong)
    printf("%d tensors differ by too much\n", wrong);
  else
    printf("all gradients agree\n");
  return wrong;
}
