// The layers: what is differentiated, and beside it the same derivative by hand. Loops with `#pragma omp` run on several threads with -fopenmp.
#include "gpt2.h"
#include <tgmath.h>

// Tokens whose gradients one thread holds in its cache while the weights pass by.
enum { BLOCK = 32 };

// Sums may be taken in any order, or they would have to be taken number by number.
static real dot(size_t count, const real *a, const real *b) {
#pragma clang fp reassociate(on) contract(fast)
  real sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += a[i] * b[i];
  return sum;
}

static void add_scaled(size_t count, real *restrict y, real factor, const real *restrict x) {
  for (size_t i = 0; i < count; i++)
    y[i] += factor * x[i];
}

void embedding_forward(size_t count, const uint32_t *tokens, const real *restrict wte, const real *restrict wpe, size_t steps, size_t channels, real *restrict out) {
  for (size_t t = 0; t < count; t++)
    for (size_t i = 0; i < channels; i++)
      out[t * channels + i] = wte[tokens[t] * channels + i] + wpe[t % steps * channels + i];
}

void embedding_backward(size_t count, const uint32_t *tokens, real *restrict dwte, real *restrict dwpe, size_t steps, size_t channels, const real *restrict dout) {
  for (size_t t = 0; t < count; t++)
    for (size_t i = 0; i < channels; i++) {
      dwte[tokens[t] * channels + i] += dout[t * channels + i];
      dwpe[t % steps * channels + i] += dout[t * channels + i];
    }
}

void layer_norm_forward(size_t count, size_t channels, const real *restrict in, const real *restrict weight, const real *restrict bias, real *restrict means,
                        real *restrict reciprocals, real *restrict out) {
#pragma omp parallel for
  for (size_t t = 0; t < count; t++) {
#pragma clang fp reassociate(on)
    const real *x = in + t * channels;
    real mean = 0;
    for (size_t i = 0; i < channels; i++)
      mean += x[i];
    mean /= channels;
    real variance = 0;
    for (size_t i = 0; i < channels; i++)
      variance += (x[i] - mean) * (x[i] - mean);
    variance /= channels;
    real reciprocal = 1 / sqrt(variance + (real)1e-5);
    for (size_t i = 0; i < channels; i++)
      out[t * channels + i] = (x[i] - mean) * reciprocal * weight[i] + bias[i];
    means[t] = mean;
    reciprocals[t] = reciprocal;
  }
}

// With n the normalised row and d its gradient: din = (d - mean(d) - n mean(d n)) / deviation. Few numbers, so one thread will do.
void layer_norm_backward(size_t count, size_t channels, const real *restrict in, real *restrict din, const real *restrict weight, real *restrict dweight, real *restrict dbias,
                         const real *restrict means, const real *restrict reciprocals, const real *restrict dout) {
  for (size_t t = 0; t < count; t++) {
#pragma clang fp reassociate(on)
    const real *x = in + t * channels, *dy = dout + t * channels;
    real *dx = din + t * channels;
    real mean = means[t], reciprocal = reciprocals[t], constant = 0, along = 0;
    for (size_t i = 0; i < channels; i++) {
      real normalised = (x[i] - mean) * reciprocal, d = weight[i] * dy[i];
      constant += d;
      along += d * normalised;
      dbias[i] += dy[i];
      dweight[i] += normalised * dy[i];
    }
    constant /= channels;
    along /= channels;
    for (size_t i = 0; i < channels; i++)
      dx[i] += (weight[i] * dy[i] - constant - (x[i] - mean) * reciprocal * along) * reciprocal;
  }
}

// out = in weight^T + bias, where a row of weights belongs to one output and serves all tokens while it is in the cache.
void linear_forward(size_t count, size_t channels, size_t outputs, const real *restrict in, const real *restrict weight, const real *restrict bias, real *restrict out) {
#pragma omp parallel for
  for (size_t o = 0; o < outputs; o++) {
    real start = bias ? bias[o] : 0;
    for (size_t t = 0; t < count; t++)
      out[t * outputs + o] = start + dot(channels, in + t * channels, weight + o * channels);
  }
}

// din += dout weight, dweight += dout^T in: threads share the tokens in the first, and the outputs in the second.
void linear_backward(size_t count, size_t channels, size_t outputs, const real *restrict in, real *restrict din, const real *restrict weight, real *restrict dweight,
                     real *restrict dbias, const real *restrict dout) {
#pragma omp parallel for
  for (size_t start = 0; start < count; start += BLOCK) {
    size_t end = start + BLOCK < count ? start + BLOCK : count;
    for (size_t o = 0; o < outputs; o++)
      for (size_t t = start; t < end; t++)
        add_scaled(channels, din + t * channels, dout[t * outputs + o], weight + o * channels);
  }
#pragma omp parallel for
  for (size_t o = 0; o < outputs; o++)
    for (size_t t = 0; t < count; t++) {
      real d = dout[t * outputs + o];
      add_scaled(channels, dweight + o * channels, d, in + t * channels);
      if (dbias)
        dbias[o] += d;
    }
}

// Queries, keys and values of a token stand side by side. Each token looks at those before it and at itself.
void attention_forward(size_t sequences, size_t steps, size_t channels, size_t heads, const real *restrict in, real *restrict scores, real *restrict weights, real *restrict out) {
  size_t size = channels / heads;
  real scale = 1 / sqrt((real)size);
#pragma omp parallel for
  for (size_t h = 0; h < heads; h++)
    for (size_t b = 0; b < sequences; b++)
      for (size_t t = 0; t < steps; t++) {
        real *s = scores + ((b * heads + h) * steps + t) * steps, *w = weights + ((b * heads + h) * steps + t) * steps;
        const real *query = in + (b * steps + t) * 3 * channels + h * size;
        const real *keys = in + b * steps * 3 * channels + channels + h * size, *values = keys + channels;

        // How well the query fits each key.
        real largest = -HUGE_VALF;
        for (size_t u = 0; u <= t; u++) {
          s[u] = scale * dot(size, query, keys + u * 3 * channels);
          if (s[u] > largest)
            largest = s[u];
        }

        // Softmax.
        real sum = 0;
        for (size_t u = 0; u <= t; u++) {
          w[u] = exp(s[u] - largest);
          sum += w[u];
        }
        for (size_t u = 0; u <= t; u++)
          w[u] /= sum;
        for (size_t u = t + 1; u < steps; u++)
          w[u] = 0;

        // The weighted sum of the values.
        real *y = out + (b * steps + t) * channels + h * size;
        for (size_t i = 0; i < size; i++)
          y[i] = 0;
        for (size_t u = 0; u <= t; u++)
          add_scaled(size, y, w[u], values + u * 3 * channels);
      }
}

// With p the softmax's results and d their gradient, the scores have p (d - sum p d).
void attention_backward(size_t sequences, size_t steps, size_t channels, size_t heads, const real *restrict in, real *restrict din, const real *restrict weights,
                        real *restrict dscores, const real *restrict dout) {
  size_t size = channels / heads;
  real scale = 1 / sqrt((real)size);
#pragma omp parallel for
  for (size_t h = 0; h < heads; h++)
    for (size_t b = 0; b < sequences; b++)
      for (size_t t = 0; t < steps; t++) {
        const real *w = weights + ((b * heads + h) * steps + t) * steps, *dy = dout + (b * steps + t) * channels + h * size;
        real *d = dscores + ((b * heads + h) * steps + t) * steps;
        size_t query = (b * steps + t) * 3 * channels + h * size, keys = b * steps * 3 * channels + channels + h * size, values = keys + channels;

        // The weighted sum of the values.
        for (size_t u = 0; u <= t; u++) {
          d[u] = dot(size, in + values + u * 3 * channels, dy);
          add_scaled(size, din + values + u * 3 * channels, w[u], dy);
        }

        // Softmax, and queries times keys.
        real mean = dot(t + 1, w, d);
        for (size_t u = 0; u <= t; u++) {
          size_t key = keys + u * 3 * channels;
          d[u] = w[u] * (d[u] - mean);
          add_scaled(size, din + query, scale * d[u], in + key);
          add_scaled(size, din + key, scale * d[u], in + query);
        }
      }
}

static const real SCALE = 0.7978845608028654; // sqrt(2 / pi)
static const real CUBE = 0.044715;

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
void gelu_forward(size_t count, const real *restrict in, real *restrict out) {
#pragma omp parallel for
  for (size_t i = 0; i < count; i++) {
    real x = in[i];
    out[i] = (real)0.5 * x * (1 + tanh(SCALE * (x + CUBE * x * x * x)));
  }
}

void gelu_backward(size_t count, const real *restrict in, real *restrict din, const real *restrict dout) {
#pragma omp parallel for
  for (size_t i = 0; i < count; i++) {
    real x = in[i], t = tanh(SCALE * (x + CUBE * x * x * x));
    real slope = (real)0.5 * (1 + t) + (real)0.5 * x * (1 - t * t) * SCALE * (1 + 3 * CUBE * x * x);
    din[i] += slope * dout[i];
  }
}

void residual_forward(size_t count, const real *restrict in, const real *restrict added, real *restrict out) {
  for (size_t i = 0; i < count; i++)
    out[i] = in[i] + added[i];
}

void residual_backward(size_t count, real *restrict din, real *restrict dadded, const real *restrict dout) {
  for (size_t i = 0; i < count; i++) {
    din[i] += dout[i];
    dadded[i] += dout[i];
  }
}

// How surprising each target is. Rows are `classes` long, of which the first `vocabulary` count; the others have probability 0.
void cross_entropy_forward(size_t count, size_t vocabulary, size_t classes, const real *restrict logits, const uint32_t *targets, real *restrict probabilities,
                           real *restrict losses) {
#pragma omp parallel for
  for (size_t t = 0; t < count; t++) {
#pragma clang fp reassociate(on)
    const real *x = logits + t * classes;
    real *p = probabilities + t * classes;
    real largest = -HUGE_VALF;
    for (size_t i = 0; i < vocabulary; i++)
      if (x[i] > largest)
        largest = x[i];
    real sum = 0;
    for (size_t i = 0; i < vocabulary; i++) {
      p[i] = exp(x[i] - largest);
      sum += p[i];
    }
    for (size_t i = 0; i < vocabulary; i++)
      p[i] /= sum;
    for (size_t i = vocabulary; i < classes; i++)
      p[i] = 0;
    losses[t] = -log(p[targets[t]]);
  }
}

// Through the loss and the softmax at once: the probabilities, less one for the target.
void cross_entropy_backward(size_t count, size_t vocabulary, size_t classes, real *restrict dlogits, const uint32_t *targets, const real *restrict probabilities,
                            const real *restrict dlosses) {
#pragma omp parallel for
  for (size_t t = 0; t < count; t++) {
    const real *p = probabilities + t * classes;
    real *dx = dlogits + t * classes, d = dlosses[t];
    for (size_t i = 0; i < vocabulary; i++)
      dx[i] += p[i] * d;
    dx[targets[t]] -= d;
  }
}
