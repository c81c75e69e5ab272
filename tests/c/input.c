// flags: -lm
// Numbers that are read are constants: what was in their place before is gone, and what could not be read is still there.
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

double scanned(double x) {
  double y = x * x;
  if (sscanf("5", "%lf", &y) != 1)
    return 0;
  return y * y + x;
}

// The last number is missing.
double scanned_partly(double x) {
  double v[4] = {x, x * x, x * x * x, 1};
  float small = (float)x;
  int count;
  int found = sscanf("3 1.5 2.5 none", "%d %lf %f %lf", &count, &v[1], &small, &v[2]);
  return v[0] * v[1] + v[2] * count + small * x + found * x;
}

double from_file(double x) {
  double v[3] = {x, x * x, 2}, written[] = {4, 5};
  FILE *file = tmpfile();
  fwrite(written, sizeof *written, 2, file);
  rewind(file);
  size_t found = fread(v, sizeof *v, 3, file);
  fclose(file);
  return v[0] * x + v[1] * x * x + v[2] * x + found;
}

double from_pipe(double x) {
  double v[2] = {x, x * x}, written = 7;
  int ends[2];
  if (pipe(ends) || write(ends[1], &written, sizeof written) != sizeof written)
    return 0;
  long found = read(ends[0], v, sizeof written);
  close(ends[1]);
  found += read(ends[0], v + 1, sizeof written); // the end
  close(ends[0]);
  return v[0] * v[1] * found;
}

double from_text_of_file(double x) {
  char line[40];
  double y = x, z = x;
  FILE *file = tmpfile();
  fputs("1.5 2.5\n", file);
  rewind(file);
  if (!fgets(line, sizeof line, file) || sscanf(line, "%*f %lf", &y) != 1)
    return 0;
  rewind(file);
  fscanf(file, "%lf", &z);
  fclose(file);
  return y * x * x + z * x + strtod(line, NULL) * x;
}

int main(void) {
  const double x = 0.73;
  double (*const functions[])(double) = {scanned, scanned_partly, from_file, from_pipe, from_text_of_file};
  const double forward[] = {__enzyme_fwddiff((void *)scanned, x, 1.0), __enzyme_fwddiff((void *)scanned_partly, x, 1.0),
                            __enzyme_fwddiff((void *)from_file, x, 1.0), __enzyme_fwddiff((void *)from_pipe, x, 1.0),
                            __enzyme_fwddiff((void *)from_text_of_file, x, 1.0)};
  const double reverse[] = {__enzyme_autodiff((void *)scanned, x), __enzyme_autodiff((void *)scanned_partly, x), __enzyme_autodiff((void *)from_file, x),
                            __enzyme_autodiff((void *)from_pipe, x), __enzyme_autodiff((void *)from_text_of_file, x)};
  for (int i = 0; i < 5; i++) {
    // A float is among them, so that steps are large.
    const double step = i == 1 ? 1e-3 : 1e-6, expected = (functions[i](x + step) - functions[i](x - step)) / (2 * step);
    CHECK_CLOSE(forward[i], expected, i == 1 ? 1e-4 : 1e-7);
    CHECK_CLOSE(reverse[i], expected, i == 1 ? 1e-4 : 1e-7);
  }
  return 0;
}
