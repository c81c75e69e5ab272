// flags: -lm
// Classes with operators, member functions, and static member functions to differentiate.
#include "check.h"
#include <cmath>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

namespace geometry {
struct Vector {
  double x, y, z;
  Vector operator+(const Vector &o) const { return {x + o.x, y + o.y, z + o.z}; }
  Vector operator*(double s) const { return {x * s, y * s, z * s}; }
  double dot(const Vector &o) const { return x * o.x + y * o.y + z * o.z; }
  Vector cross(const Vector &o) const { return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x}; }
  double length() const { return std::sqrt(dot(*this)); }
  static double volume(const Vector &a, const Vector &b, const Vector &c) { return a.cross(b).dot(c); }
};
} // namespace geometry

using geometry::Vector;

static double path(const Vector *points, int n) {
  double length = 0;
  for (int i = 1; i < n; i++)
    length += (points[i] + points[i - 1] * -1.0).length();
  return length;
}

int main() {
  Vector a{1, 2, 3}, b{4, 5, 7}, c{-1, 0, 2}, da{}, db{}, dc{};
  __enzyme_autodiff<void>((void *)&Vector::volume, enzyme_dup, &a, &da, enzyme_dup, &b, &db, enzyme_dup, &c, &dc);
  Vector expected = b.cross(c);
  CHECK_CLOSE(da.x, expected.x, 1e-12);
  CHECK_CLOSE(da.y, expected.y, 1e-12);
  CHECK_CLOSE(da.z, expected.z, 1e-12);
  expected = a.cross(b);
  CHECK_CLOSE(dc.x, expected.x, 1e-12);
  CHECK_CLOSE(dc.z, expected.z, 1e-12);

  Vector points[3] = {a, b, c}, dpoints[3] = {};
  __enzyme_autodiff<void>((void *)path, enzyme_dup, points, dpoints, enzyme_const, 3);
  Vector first = b + a * -1.0;
  CHECK_CLOSE(dpoints[0].x, -first.x / first.length(), 1e-12);
  CHECK_CLOSE(dpoints[0].y, -first.y / first.length(), 1e-12);
  return 0;
}
