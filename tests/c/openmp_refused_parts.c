// flags: -fopenmp -lm; refused: error: this region uses the thread id ('omp_get_thread_num') without the number of threads [FZ0514]
// Each thread takes the number that is meant for it: a team of one would take the first only.
#include "check.h"
#include <omp.h>

double __enzyme_autodiff(void *, ...);

double function(const double *x) {
  double y[4] = {0}, sum = 0;
#pragma omp parallel // here
  {
    int thread = omp_get_thread_num();
    y[thread] = x[thread] * x[thread];
#pragma omp barrier
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 4; i++)
      sum += y[i];
  }
  return sum;
}

int main(void) {
  double x[4] = {1, 2, 3, 4}, dx[4] = {0};
  omp_set_num_threads(4);
  __enzyme_autodiff((void *)function, x, dx);
  CHECK_CLOSE(dx[3], 8.0, 1e-12);
  return 0;
}
