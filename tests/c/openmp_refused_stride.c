// flags: -fopenmp -lm; refused: error: this region uses the thread id ('omp_get_thread_num') without the number of threads [FZ0514]
// Four threads are counted on beside a loop that OpenMP divides; that the region prints how many there are does not change it.
#include "check.h"
#include <omp.h>

double __enzyme_autodiff(void *, ...);

double function(double x) {
  double parts[100], sum = 0;
#pragma omp parallel // here
  {
    if (omp_get_thread_num() == 0)
      printf("%d threads\n", omp_get_num_threads());
    for (int i = omp_get_thread_num(); i < 100; i += 4)
      parts[i] = x * x * i;
#pragma omp barrier
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 100; i++)
      sum += parts[i];
  }
  return sum;
}

int main(void) {
  omp_set_num_threads(4);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 6 * 4950.0, 1e-12);
  return 0;
}
