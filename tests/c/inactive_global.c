// flags: -lm
// Globals declared inactive: what is stored there carries no derivative.
#include "check.h"

double __enzyme_autodiff(void *, ...);

double offset = 2.0;
void *__enzyme_inactive_global_offset[] = {&offset};

double statistics[2];
void *__enzyme_inactive_global_statistics[] = {statistics};

double function(double x) {
  statistics[0] += x;
  statistics[1] = x * x;
  return x * offset + statistics[1];
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 3.0), 2.0, 1e-12);
  CHECK_CLOSE(statistics[1], 9.0, 1e-12);
  return 0;
}
