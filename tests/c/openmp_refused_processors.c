// flags: -fopenmp -lm; refused: error: this region uses the thread id ('omp_get_thread_num') without the number of threads [FZ0514]
// As many threads as there are processors, in a function that is called through a pointer.
#include "check.h"
#include <omp.h>

double __enzyme_autodiff(void *, ...);

static void part(double x, double *parts) {
  for (int i = omp_get_thread_num(); i < 100; i += omp_get_num_procs())
    parts[i] = x * x * i;
}

double function(double x) {
  double parts[100], sum = 0;
  void (*volatile work)(double, double *) = part;
#pragma omp parallel // here
  {
    work(x, parts);
#pragma omp barrier
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 100; i++)
      sum += parts[i];
  }
  return sum;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6 * 4950.0, 1e-12);
  return 0;
}
