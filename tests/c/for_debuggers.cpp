// flags: -Og -g -lm
// With -Og clang keeps variables until their end.
#include "check.h"
#include <vector>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

struct point {
  double x, y;
};

__attribute__((noinline)) static double length(point p) {
  double sum = p.x * p.x + p.y * p.y;
  return std::sqrt(sum);
}

double path(double x) {
  std::vector<point> points;
  for (int i = 0; i < 4; i++) {
    double step = x * i;
    points.push_back({step, step * x});
  }
  double all = 0;
  for (const point &p : points)
    all += length(p);
  return all;
}

int main() {
  double x = 0.7, h = 1e-6, expected = (path(x + h) - path(x - h)) / (2 * h);
  CHECK_CLOSE(__enzyme_autodiff((void *)path, x), expected, 1e-8);
  CHECK_CLOSE(__enzyme_fwddiff((void *)path, x, 1.0), expected, 1e-8);
  return 0;
}
