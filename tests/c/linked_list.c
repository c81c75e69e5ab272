// flags: -lm
// A linked list, made by the caller with a shadow list beside it.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

struct Node {
  double value;
  struct Node *next;
};

double product_of(const struct Node *node) {
  double product = 1;
  while (node) {
    product *= node->value;
    node = node->next;
  }
  return product;
}

static struct Node *push(double value, struct Node *next) {
  struct Node *node = malloc(sizeof *node);
  node->value = value;
  node->next = next;
  return node;
}

int main(void) {
  struct Node *list = NULL, *shadow = NULL;
  for (int i = 1; i <= 5; i++) {
    list = push(i, list);
    shadow = push(0, shadow);
  }
  __enzyme_autodiff((void *)product_of, enzyme_dup, list, shadow);
  for (; list; list = list->next, shadow = shadow->next)
    CHECK_CLOSE(shadow->value, 120.0 / list->value, 1e-12);
  return 0;
}
