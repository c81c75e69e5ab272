// flags: -lm; with: parts/foreign_context.c; stops: a context of shadows is used in another file than the one that made it [FZ0713]
#include "check.h"

void *__enzyme_context(int);
double differentiated(void *context);

double here = 1;

int main(void) {
  CHECK_CLOSE(differentiated(__enzyme_context(1)), 3, 1e-12);
  return 0;
}
