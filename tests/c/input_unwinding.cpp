// flags: -lm
// Input and output between objects that have to be destroyed if anything is thrown.
#include "check.h"
#include <cstdio>
#include <cstdlib>
#include <vector>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double read_some(double x) {
  std::vector<double> v(3, x * x);
  FILE *file = tmpfile();
  std::vector<double> written{1.5};
  fwrite(written.data(), sizeof(double), 1, file);
  fputs("2.5", file);
  rewind(file);
  size_t found = fread(v.data(), sizeof(double), 1, file);
  fscanf(file, "%lf", &v[1]);
  fclose(file);
  std::fprintf(stderr, "%g %g %g\n", v[0], v[1], v[2]);
  return v[0] * x + v[1] * x + v[2] * x + found;
}

int main() {
  const double x = 1.3, step = 1e-6, expected = (read_some(x + step) - read_some(x - step)) / (2 * step);
  CHECK_CLOSE(__enzyme_fwddiff((void *)read_some, x, 1.0), expected, 1e-7);
  CHECK_CLOSE(__enzyme_autodiff((void *)read_some, x), expected, 1e-7);
  return 0;
}
