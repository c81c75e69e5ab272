// flags: -std=c++17 -lm
// Forward mode through the templates of <enzyme/enzyme>: tangents of values, structures, vectors and memory, with the result and without.
#include "check.h"
#include <enzyme/enzyme>
#include <vector>

double square(double x) { return x * x; }
double square_of_reference(const double &x) { return x * x; }

struct pair {
  double x, y;
};
double product(pair of) { return of.x * of.y; }

std::vector<double> doubled(const std::vector<double> &x) {
  std::vector<double> all(x.size());
  for (unsigned i = 0; i < x.size(); i++)
    all[i] = 2 * x[i];
  return all;
}
std::vector<double> copied(const std::vector<double> &x) { return x; }
void store_square(const double *x, double *y) { *y = *x * *x; }

double slope(double x) { return enzyme::get<0>(enzyme::autodiff<enzyme::Forward>(square, enzyme::Duplicated{x, 1.0})); }

int main() {
  for (double x = 1; x < 5; x++)
    CHECK_CLOSE(slope(x), 2 * x, 1e-12);
  {
    enzyme::tuple<double, double> both = enzyme::autodiff<enzyme::Forward, enzyme::Duplicated<double>>(square, enzyme::Duplicated<double>(3.0, 1.0));
    CHECK_CLOSE(enzyme::get<0>(both), 9, 1e-12);
    CHECK_CLOSE(enzyme::get<1>(both), 6, 1e-12);
    enzyme::tuple<double> primal = enzyme::autodiff<enzyme::Forward, enzyme::Const<double>>(square, enzyme::Duplicated<double>(3.0, 1.0));
    CHECK_CLOSE(enzyme::get<0>(primal), 9, 1e-12);
    enzyme::tuple<double> tangent = enzyme::autodiff<enzyme::Forward, enzyme::DuplicatedNoNeed<double>>(square, enzyme::Duplicated<double>(3.0, 1.0));
    CHECK_CLOSE(enzyme::get<0>(tangent), 6, 1e-12);
    const double x = 3, dx = 1;
    CHECK_CLOSE(enzyme::get<0>(enzyme::autodiff<enzyme::Forward>(square_of_reference, enzyme::Duplicated<const double &>{x, dx})), 6, 1e-12);
  }
  CHECK_CLOSE(enzyme::get<0>(enzyme::autodiff<enzyme::Forward>(product, enzyme::Duplicated{pair{2, 3}, pair{70, 110}})), 2 * 110 + 3 * 70, 1e-12);
  {
    std::vector<double> x{3, 5}, dx{9, 11};
    using argument = enzyme::Duplicated<const std::vector<double> &>;
    auto tangent = enzyme::get<0>(enzyme::autodiff<enzyme::Forward, enzyme::DuplicatedNoNeed<std::vector<double>>>(doubled, argument(x, dx)));
    CHECK_CLOSE(tangent[1], 22, 1e-12);
    auto both = enzyme::autodiff<enzyme::Forward, enzyme::Duplicated<std::vector<double>>>(copied, argument(x, dx));
    CHECK_CLOSE(enzyme::get<0>(both)[1], 5, 1e-12);
    CHECK_CLOSE(enzyme::get<1>(both)[1], 11, 1e-12);
  }
  double x = 3, dx = 1, y = 0, dy = 0;
  enzyme::autodiff<enzyme::Forward>(store_square, enzyme::Duplicated<const double *>{&x, &dx}, enzyme::Duplicated{&y, &dy});
  CHECK_CLOSE(y, 9, 1e-12);
  CHECK_CLOSE(dy, 6, 1e-12);
  return 0;
}
