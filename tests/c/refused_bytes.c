// flags: -maes; refused: error: cannot tell whether these bytes are floats or integers, and derivatives depend on it [FZ0301]
// Floats that are encrypted, and read as floats again.
#include <immintrin.h>

extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);

double function(double *x) {
  __m128i bits = _mm_castpd_si128(_mm_loadu_pd(x)); // here
  double mixed[2];
  _mm_storeu_pd(mixed, _mm_castsi128_pd(_mm_aesenc_si128(bits, bits)));
  return mixed[0];
}

int main(void) {
  double x[2] = {2, 3}, dx[2] = {0, 0};
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx);
  return 0;
}
