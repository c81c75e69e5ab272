// flags: -std=c++17 -lm
// Reverse mode through the templates of <enzyme/enzyme>: values, references, pointers, constants among them, objects that are called, and the result as well.
#include "check.h"
#include <enzyme/enzyme>
#include <vector>

float square(float x) { return x * x; }
float square_of_reference(const float &x) { return x * x; }
float square_of_pointer(const float *x) { return *x * *x; }
double product(double x, double y) { return x * y; }
double product_and_count(double x, double &y) { return x * (y++); }
double sum(const std::vector<double> &x) {
  double all = 0;
  for (double one : x)
    all += one * one;
  return all;
}
void store_square(const double *x, double *y) { *y = *x * *x; }

struct gradients {
  double x, y;
};

int main() {
  const float x = 10;
  CHECK_CLOSE(enzyme::get<0>(enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(square, enzyme::Active{x}))), 20, 1e-6);
  {
    float dx = 0;
    enzyme::autodiff<enzyme::Reverse>(square_of_reference, enzyme::Duplicated<const float &>{x, dx});
    CHECK_CLOSE(dx, 20, 1e-6);
    enzyme::autodiff<enzyme::Reverse>(square_of_pointer, enzyme::Duplicated<const float *>{&x, &dx});
    CHECK_CLOSE(dx, 40, 1e-6);
  }
  {
    // Constants keep their place among the gradients.
    auto [gradients] = enzyme::autodiff<enzyme::Reverse>(product, enzyme::Const<double>{5}, enzyme::Active{3.0});
    static_assert(std::is_same_v<decltype(gradients), enzyme::tuple<enzyme::nodiff, double>>);
    CHECK_CLOSE(enzyme::get<1>(gradients), 5, 1e-12);
    double y = 5;
    auto more = enzyme::autodiff<enzyme::Reverse>(product_and_count, enzyme::Active{2.0}, enzyme::Const<double &>{y});
    CHECK_CLOSE(enzyme::get<0>(enzyme::get<0>(more)), 5, 1e-12);
    CHECK_CLOSE(y, 6, 1e-12);
  }
  {
    enzyme::Active<double> three{3.0};
    enzyme::tuple<enzyme::tuple<double, double>, double> both = enzyme::autodiff<enzyme::ReverseWithPrimal, enzyme::Active<double>>(product, three, enzyme::Active{7.0});
    CHECK_CLOSE(enzyme::get<0>(enzyme::get<0>(both)), 7, 1e-12);
    CHECK_CLOSE(enzyme::get<1>(enzyme::get<0>(both)), 3, 1e-12);
    CHECK_CLOSE(enzyme::get<1>(both), 21, 1e-12);
  }
  {
    const std::vector<double> values{3, 4, 5};
    std::vector<double> gradient(3);
    enzyme::autodiff<enzyme::Reverse>(sum, enzyme::DuplicatedNoNeed<const std::vector<double> &>{values, gradient});
    CHECK_CLOSE(gradient[2], 10, 1e-12);
  }
  {
    double factor = 2;
    auto scaled = [&](double x) { return factor * x * x; };
    CHECK_CLOSE(enzyme::get<0>(enzyme::get<0>(enzyme::autodiff<enzyme::Reverse>(scaled, enzyme::Active{3.0}))), 12, 1e-12);
  }
  {
    double x = 3, dx = 0, y = 0, dy = 1;
    enzyme::autodiff<enzyme::Reverse>(store_square, enzyme::Duplicated<const double *>{&x, &dx}, enzyme::Duplicated{&y, &dy});
    CHECK_CLOSE(dx, 6, 1e-12);
  }
  // The entry points are declared as well.
  auto [dx, dy] = __enzyme_autodiff<gradients>((void *)product, enzyme_out, 3.0, enzyme_out, 7.0);
  CHECK_CLOSE(dx, 7, 1e-12);
  CHECK_CLOSE(dy, 3, 1e-12);
  return 0;
}
