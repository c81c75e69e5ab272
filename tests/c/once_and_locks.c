// flags: -pthread -lm
// A table that is made by pthread_once, and a lock around a counter.
#include "check.h"
#include <pthread.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double table[4];
static int made, calls;

static void make_table(void) {
  made++;
  for (int i = 0; i < 4; i++)
    table[i] = i + 1;
}

double polynomial(double x) {
  pthread_once(&once, make_table);
  pthread_mutex_lock(&lock);
  calls++;
  pthread_mutex_unlock(&lock);
  double sum = 0;
  for (int i = 3; i >= 0; i--)
    sum = sum * x + table[i];
  return sum;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)polynomial, 2.0), 62, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)polynomial, 2.0, 1.0), 62, 1e-12);
  CHECK_CLOSE(polynomial(2.0), 49, 1e-12);
  CHECK(made == 1 && calls == 3);
  return 0;
}
