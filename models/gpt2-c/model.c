// The model: from parameters and tokens to the loss. One call of `__enzyme_autodiff` gives its gradient; below is the same gradient by hand.
#include "gpt2.h"
#include <stdlib.h>

extern int enzyme_const, enzyme_dup, enzyme_primal_return;
extern real __enzyme_autodiff(void *, ...);

#define FIELD(name, length) real *name;
typedef struct {
  PARAMETERS(FIELD)
} Parameters;
typedef struct {
  ACTIVATIONS(FIELD)
} Activations;

#define SIZES(config) size_t L = (config)->layers, C = (config)->channels, V = (config)->padded_vocabulary, S = (config)->max_steps
#define BATCH_SIZES(config, batch)                                                                                                             \
  size_t L = (config)->layers, C = (config)->channels, V = (config)->padded_vocabulary;                                                        \
  size_t N = (batch)->sequences * (batch)->steps, Q = N * (config)->heads * (batch)->steps
#define LENGTH(name, length) +(length)
#define TAKE(name, length) tensors.name = memory, memory += length;

size_t count_parameters(const Config *config) {
  SIZES(config);
  return 0 PARAMETERS(LENGTH);
}

size_t count_activations(const Config *config, const Batch *batch) {
  BATCH_SIZES(config, batch);
  return 0 ACTIVATIONS(LENGTH);
}

static Parameters cut_parameters(const Config *config, real *memory) {
  SIZES(config);
  Parameters tensors;
  PARAMETERS(TAKE)
  return tensors;
}

static Activations cut_activations(const Config *config, const Batch *batch, real *memory) {
  BATCH_SIZES(config, batch);
  Activations tensors;
  ACTIVATIONS(TAKE)
  return tensors;
}

// Each tensor is an argument of its own, so that `restrict` says that they lie apart: what a layer reads is not overwritten by others, and need not be kept a second time for the
// backward pass.
#define INPUT(name, length) const real *restrict name,
#define OUTPUT(name, length) real *restrict name,
#define ROW(tensor, length) (tensor + l * (length))
static real tensor_loss(const Config *config, const Batch *batch, PARAMETERS(INPUT) ACTIVATIONS(OUTPUT) const uint32_t *tokens, const uint32_t *targets) {
  BATCH_SIZES(config, batch);
  embedding_forward(N, tokens, wte, wpe, batch->steps, C, encoded);
  for (size_t l = 0; l < L; l++) {
    const real *in = l == 0 ? encoded : residual3 + (l - 1) * N * C;
    layer_norm_forward(N, C, in, ROW(ln1w, C), ROW(ln1b, C), ROW(ln1_mean, N), ROW(ln1_rstd, N), ROW(ln1, N * C));
    linear_forward(N, C, 3 * C, ROW(ln1, N * C), ROW(qkvw, 3 * C * C), ROW(qkvb, 3 * C), ROW(qkv, N * 3 * C));
    attention_forward(batch->sequences, batch->steps, C, config->heads, ROW(qkv, N * 3 * C), ROW(preatt, Q), ROW(att, Q), ROW(atty, N * C));
    linear_forward(N, C, C, ROW(atty, N * C), ROW(attprojw, C * C), ROW(attprojb, C), ROW(attproj, N * C));
    residual_forward(N * C, in, ROW(attproj, N * C), ROW(residual2, N * C));

    layer_norm_forward(N, C, ROW(residual2, N * C), ROW(ln2w, C), ROW(ln2b, C), ROW(ln2_mean, N), ROW(ln2_rstd, N), ROW(ln2, N * C));
    linear_forward(N, C, 4 * C, ROW(ln2, N * C), ROW(fcw, 4 * C * C), ROW(fcb, 4 * C), ROW(fch, N * 4 * C));
    gelu_forward(N * 4 * C, ROW(fch, N * 4 * C), ROW(fch_gelu, N * 4 * C));
    linear_forward(N, 4 * C, C, ROW(fch_gelu, N * 4 * C), ROW(fcprojw, C * 4 * C), ROW(fcprojb, C), ROW(fcproj, N * C));
    residual_forward(N * C, ROW(residual2, N * C), ROW(fcproj, N * C), ROW(residual3, N * C));
  }
  layer_norm_forward(N, C, residual3 + (L - 1) * N * C, lnfw, lnfb, lnf_mean, lnf_rstd, lnf);
  linear_forward(N, C, V, lnf, wte, NULL, logits);
  cross_entropy_forward(N, config->vocabulary, V, logits, targets, probabilities, losses);
  real sum = 0;
  for (size_t t = 0; t < N; t++)
    sum += losses[t];
  return sum / N;
}

#define PASS_PARAMETER(name, length) p.name,
#define PASS_ACTIVATION(name, length) a.name,
real loss(const Config *config, const Batch *batch, const real *parameters, real *activations, const uint32_t *tokens, const uint32_t *targets) {
  Parameters p = cut_parameters(config, (real *)parameters);
  Activations a = cut_activations(config, batch, activations);
  return tensor_loss(config, batch, PARAMETERS(PASS_PARAMETER) ACTIVATIONS(PASS_ACTIVATION) tokens, targets);
}

#define DUPLICATE_PARAMETER(name, length) enzyme_dup, p.name, dp.name,
#define DUPLICATE_ACTIVATION(name, length) enzyme_dup, a.name, da.name,
real gradient(const Config *config, const Batch *batch, const real *parameters, real *dparameters, real *activations, real *dactivations, const uint32_t *tokens,
              const uint32_t *targets) {
  Parameters p = cut_parameters(config, (real *)parameters), dp = cut_parameters(config, dparameters);
  Activations a = cut_activations(config, batch, activations), da = cut_activations(config, batch, dactivations);
  return __enzyme_autodiff((void *)tensor_loss, enzyme_primal_return, enzyme_const, config, enzyme_const, batch, PARAMETERS(DUPLICATE_PARAMETER)
                           ACTIVATIONS(DUPLICATE_ACTIVATION) enzyme_const, tokens, enzyme_const, targets);
}

real gradient_by_hand(const Config *config, const Batch *batch, const real *parameters, real *dparameters, real *activations, real *dactivations, const uint32_t *tokens,
                      const uint32_t *targets) {
  real value = loss(config, batch, parameters, activations, tokens, targets);

  BATCH_SIZES(config, batch);
  Parameters p = cut_parameters(config, (real *)parameters), dp = cut_parameters(config, dparameters);
  Activations a = cut_activations(config, batch, activations), da = cut_activations(config, batch, dactivations);
  for (size_t t = 0; t < N; t++)
    da.losses[t] = (real)1 / N;
  cross_entropy_backward(N, config->vocabulary, V, da.logits, targets, a.probabilities, da.losses);
  linear_backward(N, C, V, a.lnf, da.lnf, p.wte, dp.wte, NULL, da.logits);
  size_t last = (L - 1) * N * C;
  layer_norm_backward(N, C, a.residual3 + last, da.residual3 + last, p.lnfw, dp.lnfw, dp.lnfb, a.lnf_mean, a.lnf_rstd, da.lnf);
  for (size_t l = L; l-- > 0;) {
    const real *in = l == 0 ? a.encoded : a.residual3 + (l - 1) * N * C;
    real *din = l == 0 ? da.encoded : da.residual3 + (l - 1) * N * C;

    real *dresidual2 = da.residual2 + l * N * C, *dfcproj = da.fcproj + l * N * C, *dfch_gelu = da.fch_gelu + l * N * 4 * C;
    real *dfch = da.fch + l * N * 4 * C, *dln2 = da.ln2 + l * N * C;
    residual_backward(N * C, dresidual2, dfcproj, da.residual3 + l * N * C);
    linear_backward(N, 4 * C, C, a.fch_gelu + l * N * 4 * C, dfch_gelu, p.fcprojw + l * 4 * C * C, dp.fcprojw + l * 4 * C * C, dp.fcprojb + l * C, dfcproj);
    gelu_backward(N * 4 * C, a.fch + l * N * 4 * C, dfch, dfch_gelu);
    linear_backward(N, C, 4 * C, a.ln2 + l * N * C, dln2, p.fcw + l * 4 * C * C, dp.fcw + l * 4 * C * C, dp.fcb + l * 4 * C, dfch);
    layer_norm_backward(N, C, a.residual2 + l * N * C, dresidual2, p.ln2w + l * C, dp.ln2w + l * C, dp.ln2b + l * C, a.ln2_mean + l * N, a.ln2_rstd + l * N, dln2);

    real *dattproj = da.attproj + l * N * C, *datty = da.atty + l * N * C, *dqkv = da.qkv + l * N * 3 * C, *dln1 = da.ln1 + l * N * C;
    residual_backward(N * C, din, dattproj, dresidual2);
    linear_backward(N, C, C, a.atty + l * N * C, datty, p.attprojw + l * C * C, dp.attprojw + l * C * C, dp.attprojb + l * C, dattproj);
    attention_backward(batch->sequences, batch->steps, C, config->heads, a.qkv + l * N * 3 * C, dqkv, a.att + l * Q, da.preatt + l * Q, datty);
    linear_backward(N, C, 3 * C, a.ln1 + l * N * C, dln1, p.qkvw + l * 3 * C * C, dp.qkvw + l * 3 * C * C, dp.qkvb + l * 3 * C, dqkv);
    layer_norm_backward(N, C, in, din, p.ln1w + l * C, dp.ln1w + l * C, dp.ln1b + l * C, a.ln1_mean + l * N, a.ln1_rstd + l * N, dln1);
  }
  embedding_backward(N, tokens, dp.wte, dp.wpe, batch->steps, C, da.encoded);
  return value;
}
