// flags: -lm
// x86 intrinsics as libraries for vectors use them: doubles that are shuffled as pairs of integers, and an exponential that converts to integers and builds a power of two.
#include "differences.h"
#include <emmintrin.h>

static __m128d broadcast(__m128d v, int second) {
  __m128i bits = _mm_castpd_si128(v);
  return _mm_castsi128_pd(second ? _mm_shuffle_epi32(bits, 0xee) : _mm_shuffle_epi32(bits, 0x44));
}

static __m128d exponential(__m128d v) {
  const __m128d one = _mm_set1_pd(1.0);
  __m128i number = _mm_cvtpd_epi32(_mm_mul_pd(v, _mm_set1_pd(1.4426950408889634)));
  __m128d whole = _mm_cvtepi32_pd(number), rest = _mm_sub_pd(v, _mm_mul_pd(whole, _mm_set1_pd(0.6931471805599453)));
  __m128d sum = one;
  for (int k = 14; k > 0; k--)
    sum = _mm_add_pd(one, _mm_mul_pd(_mm_div_pd(rest, _mm_set1_pd(k)), sum));
  __m128i biased = _mm_add_epi32(number, _mm_set1_epi32(1023));
  return _mm_mul_pd(sum, _mm_castsi128_pd(_mm_slli_epi64(_mm_unpacklo_epi32(biased, _mm_setzero_si128()), 52)));
}

static double function(double *x, int n) {
  __m128d sum = _mm_setzero_pd();
  for (int i = 0; i + 1 < n; i += 2) {
    __m128d a = _mm_loadu_pd(x + i), b = _mm_loadu_pd(x + (i + 3) % (n - 1));
    sum = _mm_add_pd(sum, _mm_mul_pd(broadcast(a, 0), _mm_mul_pd(b, broadcast(a, 1))));
    sum = _mm_add_pd(sum, exponential(_mm_mul_pd(a, b)));
  }
  int nearest = _mm_cvtsd_si32(_mm_set_sd(x[0] + 2)), cut = _mm_cvttsd_si32(_mm_set_sd(x[1] - 4));
  double parts[2];
  _mm_storeu_pd(parts, sum);
  return parts[0] * nearest + parts[1] * cut;
}
