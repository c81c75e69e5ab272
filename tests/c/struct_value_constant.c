// flags: -lm
// A structure by value goes to a function that carries no derivatives, as such a function stays: the derivative has to pass it in the way that C does.
#include "check.h"

extern int enzyme_dup;
double __enzyme_autodiff(void *, ...);

struct Link {
  double weights[5];
  struct Link *next;
};

static double sum(const struct Link *link) {
  double total = 0.1;
  for (; link; link = link->next)
    total = sin(total * 0.7 + 0.7);
  return total;
}

static double visit(int depth, double value, struct Link link) {
  if (depth <= 0)
    return value;
  double values[2] = {visit(depth - 1, value, link), 0.7};
  values[1] += sum(&link);
  return 0.7;
}

void root(const double *x, double *y) {
  for (int i = 0; i < 2; i++)
    visit(2, 0.7, (struct Link){.weights[0] = y[0], .next = 0});
  y[0] = sin(x[0]) * y[0];
}

int main(void) {
  double x[1] = {0.3}, dx[1] = {0.0}, y[1] = {0.1}, dy[1] = {1.0};
  __enzyme_autodiff((void *)root, enzyme_dup, x, dx, enzyme_dup, y, dy);
  CHECK_CLOSE(dx[0], cos(0.3) * 0.1, 1e-14);
  CHECK_CLOSE(dy[0], sin(0.3), 1e-14);
  printf("passed\n");
  return 0;
}
