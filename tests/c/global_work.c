// flags: -lm
// Work memory that globals point to: made and released inside. Counters and files behind globals are no part of it. What is left in shadows of globals by one derivative means nothing to the next.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static double *work;
static int room;

double inside(const double *x, int n) {
  if (room < n) {
    free(work);
    work = malloc(n * sizeof(double));
    room = n;
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    work[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += work[i];
  free(work);
  work = 0;
  room = 0;
  return sum;
}

struct statistics {
  long calls;
};
static struct statistics *counted;
static FILE *log_file;
static double product = 1;

double accumulated(double x) {
  counted->calls++;
  if (log_file)
    fprintf(log_file, "%g\n", x);
  product = product * x;
  return product * product;
}

int main(void) {
  for (int n = 1; n <= 8; n++) {
    double x[8], dx[8] = {0};
    for (int i = 0; i < n; i++)
      x[i] = i + 1;
    inside(x, n);
    __enzyme_autodiff((void *)inside, enzyme_dup, x, dx, enzyme_const, n);
    __enzyme_autodiff((void *)inside, enzyme_dup, x, dx, enzyme_const, n);
    for (int i = 0; i < n; i++)
      CHECK_CLOSE(dx[i], 4 * x[i], 1e-12);
  }
  counted = calloc(1, sizeof *counted);
  log_file = fopen("/dev/null", "w");
  double expected = 1;
  for (int i = 0; i < 3; i++) {
    CHECK_CLOSE(__enzyme_autodiff((void *)accumulated, 3.0), 2 * expected * 3, 1e-12);
    expected *= 9;
  }
  CHECK(counted->calls == 3);
  return 0;
}
