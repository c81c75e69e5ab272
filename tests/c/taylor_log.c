// flags: -lm
// Series summed until its terms are small, with powers computed anew or carried along.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double log_series(double x, unsigned long terms) {
  double sum = 0;
  for (unsigned long i = 1; i <= terms; i++)
    sum += pow(x, (double)i) / i;
  return sum;
}

double exp_series(double x) {
  double sum = 1, term = 1;
  int i = 1;
  do {
    term *= x / i++;
    sum += term;
  } while (fabs(term) > 1e-17);
  return sum;
}

int main(void) {
  // -log(1 - x)
  CHECK_CLOSE(__enzyme_autodiff((void *)log_series, 0.5, 60UL), 2.0, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)log_series, 0.5, 1.0, 60UL), 2.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)exp_series, 1.5), exp(1.5), 1e-12);
  return 0;
}
