// flags: -lm
// A linked list that the function makes, walks, and frees.
#include "check.h"

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

struct Node {
  double value;
  struct Node *next;
};

double function(double x, unsigned long n) {
  struct Node *list = NULL;
  for (unsigned long i = 0; i < n; i++) {
    struct Node *node = malloc(sizeof *node);
    node->value = x * (double)i;
    node->next = list;
    list = node;
  }
  double sum = 0;
  for (struct Node *node = list; node != NULL; node = node->next)
    sum += node->value * node->value;
  while (list) {
    struct Node *next = list->next;
    free(list);
    list = next;
  }
  return sum;
}

int main(void) {
  // 2x (0 + 1 + 4 + … + 81)
  CHECK_CLOSE(__enzyme_autodiff((void *)function, 1.5, 10UL), 3.0 * 285, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)function, 1.5, 1.0, 10UL), 3.0 * 285, 1e-12);
  return 0;
}
