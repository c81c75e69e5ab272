// flags: -lm
// A tree made on the heap and summed by recursion.
#include "check.h"

double __enzyme_autodiff(void *, ...);

struct Tree {
  double value;
  struct Tree *left, *right;
};

static struct Tree *grow(double x, int depth) {
  if (depth == 0)
    return NULL;
  struct Tree *tree = malloc(sizeof *tree);
  tree->value = x * depth;
  tree->left = grow(x * 0.5, depth - 1);
  tree->right = grow(x + 1, depth - 1);
  return tree;
}

static double sum(const struct Tree *tree) { return tree ? tree->value * tree->value + sum(tree->left) * sum(tree->right) : 0; }

static void fell(struct Tree *tree) {
  if (!tree)
    return;
  fell(tree->left);
  fell(tree->right);
  free(tree);
}

double function(double x, int depth) {
  struct Tree *tree = grow(x, depth);
  double result = sum(tree);
  fell(tree);
  return result;
}

int main(void) {
  double h = 1e-6;
  for (int depth = 1; depth < 5; depth++)
    CHECK_CLOSE(__enzyme_autodiff((void *)function, 0.4, depth), (function(0.4 + h, depth) - function(0.4 - h, depth)) / (2 * h), 1e-6);
  return 0;
}
