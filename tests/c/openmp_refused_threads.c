// flags: -fopenmp -lm; refused: error: the threads of this region use 'omp_get_thread_num', but not how many they are
#include "check.h"
#include <omp.h>

double __enzyme_autodiff(void *, ...);

double function(double x) {
  double parts[4] = {0};
#pragma omp parallel num_threads(4) // here
  {
    int thread = omp_get_thread_num();
    for (int i = thread; i < 100; i += 4)
      parts[thread] += x * i;
  }
  return parts[0] + parts[1] + parts[2] + parts[3];
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 4950.0, 1e-12);
  return 0;
}
