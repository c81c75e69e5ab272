// flags: -fopenmp -lm
// Threads that divide the work by their numbers and how many they are, or keep memory of their own.
#include "check.h"
#include <omp.h>
#include <stdlib.h>

double __enzyme_autodiff(void *, ...);

double divided(double x) {
  double sum = 0;
#pragma omp parallel
  {
    double own = 0;
    for (int i = omp_get_thread_num(); i < 100; i += omp_get_num_threads())
      own += x * x * i;
#pragma omp critical
    sum += own;
  }
  return sum;
}

double own_memory(double x) {
  const int threads = omp_get_max_threads();
  double *parts = calloc(threads, sizeof *parts), sum = 0;
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < 100; i++)
      parts[omp_get_thread_num()] += x * x * i;
  }
  for (int i = 0; i < threads; i++)
    sum += parts[i];
  free(parts);
  return sum;
}

enum { PADDING = 8 };

static int place(void) { return omp_get_thread_num() * PADDING; }

static void add(double *parts, int at, double what) { parts[at] += what; }

double padded(double x) {
  const int threads = omp_get_max_threads();
  double *parts = calloc(threads * PADDING, sizeof *parts), sum = 0;
#pragma omp parallel
  {
    if (omp_get_thread_num() == 0)
      printf("thread %d\n", omp_get_thread_num());
    double *own = parts + place();
#pragma omp for
    for (int i = 0; i < 100; i++) {
      *own += x * x * i;
      add(parts, PADDING * omp_get_thread_num() + 1, x * i);
    }
  }
  for (int i = 0; i < threads * PADDING; i++)
    sum += parts[i];
  free(parts);
  return sum;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)divided, 3.0), 6 * 4950.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)own_memory, 3.0), 6 * 4950.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)padded, 3.0), 7 * 4950.0, 1e-12);
  return 0;
}
