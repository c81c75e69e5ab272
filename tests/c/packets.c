// flags: -lm
// x86 intrinsics as libraries for vectors use them: doubles that are shuffled as pairs of integers.
#include "differences.h"
#include <emmintrin.h>

static __m128d broadcast(__m128d v, int second) {
  __m128i bits = _mm_castpd_si128(v);
  return _mm_castsi128_pd(second ? _mm_shuffle_epi32(bits, 0xee) : _mm_shuffle_epi32(bits, 0x44));
}

static double function(double *x, int n) {
  __m128d sum = _mm_setzero_pd();
  for (int i = 0; i + 1 < n; i += 2) {
    __m128d a = _mm_loadu_pd(x + i), b = _mm_loadu_pd(x + (i + 3) % (n - 1));
    sum = _mm_add_pd(sum, _mm_mul_pd(broadcast(a, 0), _mm_mul_pd(b, broadcast(a, 1))));
  }
  double parts[2];
  _mm_storeu_pd(parts, sum);
  return parts[0] * parts[1];
}
