// Derivatives on several threads: the same for every number of threads up to rounding, and the same bits at every run with one number of threads.
#include "check.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

extern int enzyme_dup, enzyme_const;

// How often the derivative runs with each number of threads.
static int count_runs(void) {
  const char *runs = getenv("FERROZYME_RUNS");
  return runs ? atoi(runs) : 3;
}

// Runs `gradient`, which fills `count` numbers, on 1, 2, 3 and 8 threads. With `exact` runs on as many threads give the same bits.
static void check_on_threads(void (*gradient)(double *), int count, int exact) {
  static const int threads[] = {1, 2, 3, 8};
  const int runs = count_runs();
  size_t bytes = sizeof(double) * count;
  double *expected = malloc(bytes), *first = malloc(bytes), *again = malloc(bytes);
  for (int t = 0; t < 4; t++) {
    omp_set_num_threads(threads[t]);
    for (int run = 0; run < runs; run++) {
      memset(again, 0, bytes);
      gradient(again);
      if (run == 0)
        memcpy(first, again, bytes);
      if (run == 0 && t == 0)
        memcpy(expected, again, bytes);
      if (exact && memcmp(first, again, bytes))
        CHECK(!"the same bits at every run");
      for (int i = 0; i < count; i++)
        CHECK_CLOSE(again[i], expected[i], 1e-9);
    }
  }
  free(expected);
  free(first);
  free(again);
}
