// flags: -lm
// Active values in a hash table.
#include "differences.h"
#include <unordered_map>

static double function(double *x, int n) {
  std::unordered_map<int, double> sums;
  for (int i = 0; i < n; i++)
    sums[i % 4] += x[i] * x[i];
  double total = 0;
  for (int key = 0; key < 4; key++)
    total += key * sums[key] * sums[key];
  return total;
}
