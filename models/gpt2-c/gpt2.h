// GPT-2 in plain C: sizes, tensors, layers, the loss of the whole model and its gradient, automatic and by hand.
#ifndef GPT2_H
#define GPT2_H

#include <stddef.h>
#include <stdint.h>

// Single precision for training; -DREAL=double for checks.
#ifndef REAL
#define REAL float
#endif
typedef REAL real;

typedef struct {
  size_t layers, heads, channels, vocabulary, padded_vocabulary, max_steps;
} Config;

typedef struct {
  size_t sequences, steps;
} Batch;

// All parameters lie in one array, and all activations in another, tensor by tensor, in the order of llm.c. Lengths are in terms of L layers, C channels, V rows of the token
// embedding, S positions, N tokens in the batch, and Q squares of attention.
#define PARAMETERS(TENSOR)                                                                                                                     \
  TENSOR(wte, V * C)                                                                                                                           \
  TENSOR(wpe, S * C)                                                                                                                           \
  TENSOR(ln1w, L * C)                                                                                                                          \
  TENSOR(ln1b, L * C)                                                                                                                          \
  TENSOR(qkvw, L * 3 * C * C)                                                                                                                  \
  TENSOR(qkvb, L * 3 * C)                                                                                                                      \
  TENSOR(attprojw, L * C * C)                                                                                                                  \
  TENSOR(attprojb, L * C)                                                                                                                      \
  TENSOR(ln2w, L * C)                                                                                                                          \
  TENSOR(ln2b, L * C)                                                                                                                          \
  TENSOR(fcw, L * 4 * C * C)                                                                                                                   \
  TENSOR(fcb, L * 4 * C)                                                                                                                       \
  TENSOR(fcprojw, L * C * 4 * C)                                                                                                               \
  TENSOR(fcprojb, L * C)                                                                                                                       \
  TENSOR(lnfw, C)                                                                                                                              \
  TENSOR(lnfb, C)

#define ACTIVATIONS(TENSOR)                                                                                                                    \
  TENSOR(encoded, N * C)                                                                                                                       \
  TENSOR(ln1, L * N * C)                                                                                                                       \
  TENSOR(ln1_mean, L * N)                                                                                                                      \
  TENSOR(ln1_rstd, L * N)                                                                                                                      \
  TENSOR(qkv, L * N * 3 * C)                                                                                                                   \
  TENSOR(atty, L * N * C)                                                                                                                      \
  TENSOR(preatt, L * Q)                                                                                                                        \
  TENSOR(att, L * Q)                                                                                                                           \
  TENSOR(attproj, L * N * C)                                                                                                                   \
  TENSOR(residual2, L * N * C)                                                                                                                 \
  TENSOR(ln2, L * N * C)                                                                                                                       \
  TENSOR(ln2_mean, L * N)                                                                                                                      \
  TENSOR(ln2_rstd, L * N)                                                                                                                      \
  TENSOR(fch, L * N * 4 * C)                                                                                                                   \
  TENSOR(fch_gelu, L * N * 4 * C)                                                                                                              \
  TENSOR(fcproj, L * N * C)                                                                                                                    \
  TENSOR(residual3, L * N * C)                                                                                                                 \
  TENSOR(lnf, N * C)                                                                                                                           \
  TENSOR(lnf_mean, N)                                                                                                                          \
  TENSOR(lnf_rstd, N)                                                                                                                          \
  TENSOR(logits, N * V)                                                                                                                        \
  TENSOR(probabilities, N * V)                                                                                                                 \
  TENSOR(losses, N)

size_t count_parameters(const Config *config);
size_t count_activations(const Config *config, const Batch *batch);

// layers.c: for each layer a forward pass, and a backward pass written by hand, which adds to the gradients that it is given.
void embedding_forward(size_t count, const uint32_t *tokens, const real *restrict wte, const real *restrict wpe, size_t steps, size_t channels, real *restrict out);
void embedding_backward(size_t count, const uint32_t *tokens, real *restrict dwte, real *restrict dwpe, size_t steps, size_t channels, const real *restrict dout);
void layer_norm_forward(size_t count, size_t channels, const real *restrict in, const real *restrict weight, const real *restrict bias, real *restrict means,
                        real *restrict reciprocals, real *restrict out);
void layer_norm_backward(size_t count, size_t channels, const real *restrict in, real *restrict din, const real *restrict weight, real *restrict dweight, real *restrict dbias,
                         const real *restrict means, const real *restrict reciprocals, const real *restrict dout);
// The bias may be missing (NULL).
void linear_forward(size_t count, size_t channels, size_t outputs, const real *restrict in, const real *restrict weight, const real *restrict bias, real *restrict out);
void linear_backward(size_t count, size_t channels, size_t outputs, const real *restrict in, real *restrict din, const real *restrict weight, real *restrict dweight,
                     real *restrict dbias, const real *restrict dout);
// `scores` and `weights` hold a square of `steps` numbers for each sequence and head, before and after the softmax.
void attention_forward(size_t sequences, size_t steps, size_t channels, size_t heads, const real *restrict in, real *restrict scores, real *restrict weights, real *restrict out);
void attention_backward(size_t sequences, size_t steps, size_t channels, size_t heads, const real *restrict in, real *restrict din, const real *restrict weights,
                        real *restrict dscores, const real *restrict dout);
void gelu_forward(size_t count, const real *restrict in, real *restrict out);
void gelu_backward(size_t count, const real *restrict in, real *restrict din, const real *restrict dout);
void residual_forward(size_t count, const real *restrict in, const real *restrict added, real *restrict out);
void residual_backward(size_t count, real *restrict din, real *restrict dadded, const real *restrict dout);
void cross_entropy_forward(size_t count, size_t vocabulary, size_t classes, const real *restrict logits, const uint32_t *targets, real *restrict probabilities,
                           real *restrict losses);
void cross_entropy_backward(size_t count, size_t vocabulary, size_t classes, real *restrict dlogits, const uint32_t *targets, const real *restrict probabilities,
                            const real *restrict dlosses);

// model.c: the mean loss over a batch. `activations` is overwritten. Gradients are added to what is in `dparameters`; `dactivations` must be zero.
real loss(const Config *config, const Batch *batch, const real *parameters, real *activations, const uint32_t *tokens, const uint32_t *targets);
real gradient(const Config *config, const Batch *batch, const real *parameters, real *dparameters, real *activations, real *dactivations, const uint32_t *tokens,
              const uint32_t *targets);
real gradient_by_hand(const Config *config, const Batch *batch, const real *parameters, real *dparameters, real *activations, real *dactivations, const uint32_t *tokens,
                      const uint32_t *targets);

// random.c: the same random numbers on every machine.
typedef struct {
  uint64_t state;
} Random;
Random random_from(uint64_t seed);
double random_uniform(Random *random);
double random_normal(Random *random);
// Memory for `count` numbers: random ones, or zeros. The program ends where there is none.
real *random_numbers(size_t count, double deviation, uint64_t seed);
real *zeros(size_t count);
uint32_t *random_tokens(size_t count, size_t vocabulary, uint64_t seed);

// check.c: compares gradients tensor by tensor, prints the differences and returns how many are too large.
int check(void);

// bench.c: measures, and prints a line of JSON for each measurement.
typedef struct {
  Config config;
  Batch batch;
  size_t rounds, threads;
  // Whether single layers, and the whole model, are measured.
  int layers, whole;
} BenchOptions;
void bench(const BenchOptions *options);

#endif
