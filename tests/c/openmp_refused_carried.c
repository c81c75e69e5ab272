// flags: -fopenmp -lm; refused: error: a value that each thread carries from one iteration to the next makes the result of this region depend on the number of threads [FZ0513]
// The threads wait for each other between the two loops, so that they cannot run one after the other.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double function(double x) {
  double a[100], sum = 0;
#pragma omp parallel firstprivate(x) // here
  {
#pragma omp for
    for (int i = 0; i < 100; i++) {
      a[i] = x;
      x = 0;
    }
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 100; i++)
      sum += a[i];
  }
  return sum;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 1.0, 1e-12);
  return 0;
}
