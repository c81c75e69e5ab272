// flags: -lm
// dynamic_cast asks what an object is, inside and of the caller's.
#include "check.h"
#include <memory>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_const, enzyme_dup;

struct term {
  virtual ~term() {}
  virtual double at(double x) const = 0;
};
struct line : term {
  double slope;
  line(double slope) : slope(slope) {}
  double at(double x) const override { return slope * x; }
};
struct square : term {
  double factor;
  square(double factor) : factor(factor) {}
  double at(double x) const override { return factor * x * x; }
};

double twice_if_square(const term *given, double x) {
  if (auto *found = dynamic_cast<const square *>(given))
    return 2 * found->factor * x * x;
  if (auto *found = dynamic_cast<const line *>(given))
    return found->slope * x;
  return 0;
}

double made_inside(double x) {
  std::unique_ptr<term> made(new square(x));
  term *any = made.get();
  auto *found = dynamic_cast<square *>(any);
  return found ? found->at(x) : 0;
}

int main() {
  square three(3);
  line five(5);
  CHECK_CLOSE(__enzyme_autodiff((void *)twice_if_square, enzyme_const, &three, 2.0), 24, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)twice_if_square, enzyme_const, &five, 2.0), 5, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)made_inside, 2.0), 12, 1e-12);
  CHECK_CLOSE(__enzyme_fwddiff((void *)made_inside, 2.0, 1.0), 12, 1e-12);
  return 0;
}
