// flags: -g -fopenmp -lm; refused: error: a value that each thread carries from one iteration to the next makes the result of this region depend on the number of threads [FZ0513]
// With debug information, what the region does stands in a function of its own.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x) {
  double a[60], sum = 0;
#pragma omp parallel firstprivate(x) // here
  {
#pragma omp for
    for (int i = 0; i < 60; i++) {
      a[i] = x * x;
      x = 0;
    }
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 60; i++)
      sum += a[i];
  }
  return sum;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6.0, 1e-12);
  return 0;
}
