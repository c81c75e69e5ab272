// flags: -fopenmp -lm; refused: error: the threads of this region use 'omp_get_thread_num', but not how many they are
// The work of all threads but the first, of which there are none in a team of one.
#include "check.h"
#include <omp.h>

double __enzyme_autodiff(void *, ...);

double function(double x) {
  double parts[100], sum = 0, squared = 0;
#pragma omp parallel // here
  {
    if (omp_get_thread_num() != 0) {
#pragma omp critical
      squared = x * x;
    }
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 100; i++)
      sum += parts[i] = x * i;
  }
  return sum + squared;
}

int main(void) {
  omp_set_num_threads(4);
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 4950.0 + 6.0, 1e-12);
  return 0;
}
