// flags: -msse4.1; refused: error: cannot differentiate this machine instruction [FZ0506]
// An instruction of the processor whose meaning is not known here.
#include <immintrin.h>

extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);

double function(double *x) {
  __m128d v = _mm_loadu_pd(x);
  return _mm_cvtsd_f64(_mm_dp_pd(v, v, 0x31)); // here
}

int main(void) {
  double x[2] = {2, 3}, dx[2] = {0, 0};
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx);
  return 0;
}
