// flags: -lm
// A structure with an array and, behind it, the number of its elements: where the index is not known, the two look like one.
#include "check.h"

void __enzyme_autodiff(void *, ...);

struct samples {
  double values[4];
  int count;
};

__attribute__((noinline)) double weighed(struct samples *samples) {
  double sum = 0;
  for (int i = 0; i < samples->count; i++)
    sum += i * samples->values[i] * samples->values[i];
  return sum;
}

int main(void) {
  struct samples samples = {{1, 2, 3, 4}, 4}, gradient = {{0}, 0};
  __enzyme_autodiff((void *)weighed, &samples, &gradient);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(gradient.values[i], 2 * i * samples.values[i], 1e-12);
  return 0;
}
