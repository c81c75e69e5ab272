// flags: -lm; stops: Ferrozyme: memory of an argument was freed without its size, so a gradient may be lost [FZ0708]
// An array of the caller's that is deleted: its operator does not get the size, so that whether a gradient would be lost is not known.
#include "check.h"

extern int enzyme_dup;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

struct Values {
  double *data;
  int count;
};

double function(Values *values) {
  double sum = 0;
  for (int i = 0; i < values->count; i++)
    sum += values->data[i] * values->data[i];
  delete[] values->data;
  values->data = nullptr;
  return sum;
}

int main() {
  Values values = {new double[2]{3, 4}, 2}, shadow = {new double[2]{0, 0}, 2};
  __enzyme_autodiff<void>((void *)function, enzyme_dup, &values, &shadow);
  return 0;
}
