// flags: -lm
// A file that is opened when it is first written to, and a handler of errors in a global pointer.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;

typedef void error_handler(const char *reason, int line);
static error_handler *handler;
static FILE *log_file;
static int errors;

static void count_errors(const char *reason, int line) { errors++; }

static void log_value(const char *name, double value) {
  if (!log_file)
    log_file = fopen("/dev/null", "w");
  if (log_file) {
    fprintf(log_file, "%s = %g\n", name, value);
    fflush(log_file);
  }
}

static void fail(const char *reason, int line) {
  if (handler) {
    handler(reason, line);
    return;
  }
  fprintf(stderr, "%s\n", reason);
  abort();
}

double function(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] < 0) {
      fail("a negative number", __LINE__);
      return 0;
    }
    sum += x[i] * sqrt(x[i]);
    log_value("sum", sum);
  }
  return sum;
}

int main(void) {
  double x[3] = {1, 4, 9}, dx[3] = {0}, tangent[3] = {1, 1, 1};
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_const, 3);
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dx[i], 1.5 * sqrt(x[i]), 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, enzyme_dup, x, tangent, enzyme_const, 3), 9, 1e-12);
  handler = count_errors;
  x[1] = -1;
  __enzyme_autodiff((void *)function, enzyme_dup, x, dx, enzyme_const, 3);
  CHECK(errors == 1);
  return 0;
}
