// flags: -lm
// The GELU activation of GPT-2: forward into an output array, gradient of the input from that of the output.
#include "check.h"

extern int enzyme_dup, enzyme_const, enzyme_dupnoneed;
void __enzyme_autodiff(void *, ...);

static const float scaling = 0.7978845608028654f;

void gelu_forward(float *out, const float *in, int n) {
  for (int i = 0; i < n; i++) {
    float x = in[i];
    float cube = 0.044715f * x * x * x;
    out[i] = 0.5f * x * (1.0f + tanhf(scaling * (x + cube)));
  }
}

int main(void) {
  enum { N = 64 };
  float in[N], din[N] = {0}, out[N], dout[N];
  for (int i = 0; i < N; i++) {
    in[i] = 0.1f * (i - 32);
    dout[i] = 1;
  }
  __enzyme_autodiff((void *)gelu_forward, enzyme_dup, out, dout, enzyme_dup, in, din, enzyme_const, N);
  for (int i = 0; i < N; i++) {
    double x = in[i], inner = scaling * (x + 0.044715 * x * x * x), t = tanh(inner);
    double expected = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scaling * (1 + 3 * 0.044715 * x * x);
    CHECK_CLOSE(din[i], expected, 1e-5);
  }
  return 0;
}
