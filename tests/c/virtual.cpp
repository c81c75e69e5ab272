// flags: -lm
// Virtual calls on objects that the function makes.
#include "check.h"
#include <cmath>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);
template <typename Return, typename... T> Return __enzyme_fwddiff(void *, T...);

struct Shape {
  virtual double area() const = 0;
  virtual ~Shape() {}
};
struct Circle final : Shape {
  double radius;
  explicit Circle(double r) : radius(r) {}
  double area() const override { return M_PI * radius * radius; }
};
struct Square final : Shape {
  double side;
  explicit Square(double s) : side(s) {}
  double area() const override { return side * side; }
};

static double total(double x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    Shape *shape = i % 2 ? static_cast<Shape *>(new Circle(x * i)) : new Square(x + i);
    sum += shape->area();
    delete shape;
  }
  return sum;
}

int main() {
  // (x)² + π x² + (x + 2)² + π (3x)²
  double x = 0.5, expected = 2 * x + M_PI * 2 * x + 2 * (x + 2) + 18 * M_PI * x;
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)total, x, 4), expected, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff<double>((void *)total, x, 1.0, 4), expected, 1e-12);
  return 0;
}
