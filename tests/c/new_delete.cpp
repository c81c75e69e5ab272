// flags: -lm
// new and delete, of objects and arrays, in loops.
#include "check.h"

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);
template <typename Return, typename... T> Return __enzyme_fwddiff(void *, T...);

class Accumulator {
  double *history;
  int length;

public:
  explicit Accumulator(int capacity) : history(new double[capacity]), length(0) {}
  ~Accumulator() { delete[] history; }
  Accumulator(const Accumulator &) = delete;
  Accumulator &operator=(const Accumulator &) = delete;
  void add(double x) { history[length++] = x; }
  double energy() const {
    double sum = 0;
    for (int i = 0; i < length; i++)
      sum += history[i] * history[i];
    return sum;
  }
};

static double function(double x, int n) {
  double total = 0;
  for (int round = 1; round <= n; round++) {
    Accumulator *a = new Accumulator(round);
    for (int i = 0; i < round; i++)
      a->add(x * (i + 1));
    total += a->energy();
    delete a;
  }
  return total;
}

int main() {
  // 2x (1 + (1 + 4) + (1 + 4 + 9))
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)function, 0.5, 3), 20, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff<double>((void *)function, 0.5, 1.0, 3), 20, 1e-12);
  return 0;
}
