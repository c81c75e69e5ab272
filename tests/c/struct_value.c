// flags: -lm
// Structs by value: two doubles travel in registers, larger ones in memory.
#include "check.h"

extern int enzyme_const;

struct Point {
  double x, y;
};

extern struct Point __enzyme_autodiff(void *, ...);
extern double __enzyme_fwddiff(void *, ...);

static double length(struct Point p) { return sqrt(p.x * p.x + p.y * p.y); }

struct Box {
  double low[2], high[2];
};

static double area(struct Box b) { return (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]); }

double area_of(const double *corners) {
  struct Box b = {{corners[0], corners[1]}, {corners[2], corners[3]}};
  return area(b);
}

double length_of(double x, double y) {
  struct Point p = {x, y};
  return length(p);
}

int main(void) {
  struct Point g = __enzyme_autodiff((void *)length_of, 3.0, 4.0);
  CHECK_CLOSE(g.x, 0.6, 1e-12);
  CHECK_CLOSE(g.y, 0.8, 1e-12);

  double corners[4] = {1, 2, 4, 8}, dcorners[4] = {0};
  __enzyme_autodiff((void *)area_of, corners, dcorners);
  CHECK_CLOSE(dcorners[0], -6, 1e-12);
  CHECK_CLOSE(dcorners[1], -3, 1e-12);
  CHECK_CLOSE(dcorners[2], 6, 1e-12);
  CHECK_CLOSE(dcorners[3], 3, 1e-12);

  double tangent[4] = {0, 0, 1, 1};
  CHECK_CLOSE(__enzyme_fwddiff((void *)area_of, corners, tangent), 9, 1e-12);
  return 0;
}
