// flags: -lm
// The modulus and the argument of complex numbers in an array.
#include "check.h"
#include <complex.h>

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

double total(const double complex *z, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += cabs(z[i]);
  return sum;
}

int main(void) {
  double complex z[2] = {3 + 4 * I, -5 + 12 * I}, dz[2] = {0, 0};
  __enzyme_autodiff((void *)total, enzyme_dup, z, dz, enzyme_const, 2);
  CHECK_CLOSE(creal(dz[0]), 0.6, 1e-12);
  CHECK_CLOSE(cimag(dz[0]), 0.8, 1e-12);
  CHECK_CLOSE(creal(dz[1]), -5.0 / 13, 1e-12);
  CHECK_CLOSE(cimag(dz[1]), 12.0 / 13, 1e-12);
  return 0;
}
