// flags: -lm
// Names beside numbers: what writes text writes no floats.
#include "check.h"
#include <string.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

struct parameter {
  char name[16];
  double value;
};

double on_the_stack(double x) {
  struct parameter all[2];
  strcpy(all[0].name, "alpha");
  all[0].value = x * x;
  strncpy(all[1].name, "beta", sizeof all[1].name);
  all[1].value = 3 * x;
  double sum = 0;
  for (int i = 0; i < 2; i++)
    sum += strcmp(all[i].name, "alpha") ? 2 * all[i].value : all[i].value;
  return sum;
}

double on_the_heap(double x) {
  struct parameter *all = malloc(2 * sizeof *all);
  snprintf(all[0].name, sizeof all[0].name, "p%d", 0);
  all[0].value = x * x;
  strcpy(all[1].name, all[0].name);
  strcat(all[1].name, "x");
  all[1].value = all[0].value * x;
  double result = strlen(all[1].name) == 3 && strstr(all[1].name, "0x") ? all[1].value : 0;
  free(all);
  return result;
}

int main(void) {
  CHECK_CLOSE(__enzyme_autodiff((void *)on_the_stack, 2.0), 10, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)on_the_stack, 2.0, 1.0), 10, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)on_the_heap, 2.0), 12, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)on_the_heap, 2.0, 1.0), 12, 1e-12);
  return 0;
}
