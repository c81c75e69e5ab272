// flags: -lm
// A float that somebody else sets is waited for: volatile floats that are only compared are read each time.
#include "check.h"
#include <signal.h>
#include <sys/time.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static volatile float ready;
static volatile double rounds;

static void set(int number) {
  (void)number;
  ready = 1;
  rounds = 3;
}

static void start(void) {
  ready = 0;
  rounds = 0;
  signal(SIGALRM, set);
  struct itimerval once = {{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &once, NULL);
}

double function(double x) {
  while (ready == 0)
    ;
  double product = x;
  for (int i = 0; i < rounds; i++)
    product *= x;
  volatile double kept = product;
  // The number is compared and computed with.
  return kept > 0 ? kept * x : 0;
}

int main(void) {
  start();
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 2.0), 5 * 16.0, 1e-12);
  start();
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 2.0, 1.0), 5 * 16.0, 1e-12);
  return 0;
}
