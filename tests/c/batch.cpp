// flags: -lm
// Several calls at once, with values for each, values for all, and memory at regular distances.
#include "check.h"

extern int enzyme_width, enzyme_vector, enzyme_scalar, enzyme_buffer, enzyme_out;
template <typename Result, typename... Arguments> Result __enzyme_batch(void *, Arguments...);
template <typename Result, typename... Arguments> Result __enzyme_autodiff(void *, Arguments...);

struct Four {
  double values[4];
};

struct Two {
  double first, second;
};

double power(double x, double y) { return pow(x, y); }
double slope(double x) { return __enzyme_autodiff<double>((void *)power, enzyme_out, x, enzyme_out, 3.0); }
double first_of(const double *x, int at) { return x[at]; }

int main() {
  Four all = __enzyme_batch<Four>((void *)power, enzyme_width, 4, enzyme_vector, 1.0, 2.0, 3.0, 4.0, enzyme_scalar, 2.0);
  for (int i = 0; i < 4; i++)
    CHECK_CLOSE(all.values[i], (i + 1) * (i + 1), 1e-12);
  Two slopes = __enzyme_batch<Two>((void *)slope, enzyme_width, 2, 1.0, 2.0);
  CHECK_CLOSE(slopes.first, 3.0, 1e-12);
  CHECK_CLOSE(slopes.second, 12.0, 1e-12);
  double rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
  Two middle = __enzyme_batch<Two>((void *)first_of, enzyme_width, 2, enzyme_buffer, (long)sizeof rows[0], (const double *)rows, enzyme_scalar, 1);
  CHECK_CLOSE(middle.first, 2.0, 1e-12);
  CHECK_CLOSE(middle.second, 5.0, 1e-12);
  return 0;
}
