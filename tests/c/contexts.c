// flags: -lm
// Sets of shadows of global variables: made by the program, seeded, read and cleared there.
#include "check.h"

void *__enzyme_context(int);
void *__enzyme_shadow(void *, void *, int);
void __enzyme_zero_shadows(void *);
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
typedef struct {
  double first, second;
} pair;
pair __enzyme_fwddiff_pair(void *, ...) __asm__("__enzyme_fwddiff");
extern int enzyme_context;

double scale = 2;
static double weights[40];
static struct {
  int rows;
  double *values;
  float bias[2];
} model = {40, weights, {1, 2}};
static long calls;

static double loss(double x) {
  double sum = model.bias[1] * x;
  for (int i = 0; i < model.rows; i++)
    sum += model.values[i] * x * (i + 1);
  calls++;
  return scale * sum;
}

int main(void) {
  double total = 0;
  for (int i = 0; i < 40; i++) {
    weights[i] = 0.1 * i;
    total += weights[i] * (i + 1);
  }
  void *context = __enzyme_context(1), *two = __enzyme_context(2);
  double *dscale = __enzyme_shadow(context, &scale, 0), *dweight = __enzyme_shadow(context, &weights[7], 0);
  float *dbias = __enzyme_shadow(context, &model.bias[1], 0);
  for (int times = 1; times <= 2; times++) {
    double dx = __enzyme_autodiff((void *)loss, enzyme_context, context, 3.0);
    CHECK_CLOSE(dx, 2 * (total + 2), 1e-12);
    CHECK_CLOSE(*dscale, times * 3 * (total + 2), 1e-12);
    CHECK_CLOSE(*dweight, times * 2 * 3 * 8, 1e-12);
    CHECK_CLOSE(*dbias, times * 2 * 3, 1e-6);
  }
  __enzyme_zero_shadows(context);
  CHECK_CLOSE(*dweight, 0, 0);
  *dweight = 1;
  CHECK_CLOSE(__enzyme_fwddiff((void *)loss, enzyme_context, context, 3.0, 0.0), 2 * 3 * 8, 1e-12);

  *(double *)__enzyme_shadow(two, &scale, 0) = 1;
  ((double *)__enzyme_shadow(two, weights, 1))[1] = 1;
  pair both = __enzyme_fwddiff_pair((void *)loss, enzyme_context, two, 3.0, 0.0, 0.0);
  CHECK_CLOSE(both.first, 3 * (total + 2), 1e-12);
  CHECK_CLOSE(both.second, 2 * 3 * 2, 1e-12);
  CHECK(calls > 0);
  return 0;
}
