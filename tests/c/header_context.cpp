// flags: -std=c++17 -lm
// Sets of shadows of global variables, as the header has them.
#include "check.h"
#include <enzyme/enzyme>

static double rate = 0.5;
struct Model {
  static float bias;
};
float Model::bias = 3;

static double grown(double x) { return exp(rate * x) + Model::bias * x; }

int main() {
  auto shadows = enzyme::context();
  auto gradients = enzyme::autodiff<enzyme::Reverse>(shadows, grown, enzyme::Active(2.0));
  CHECK_CLOSE(enzyme::get<0>(enzyme::get<0>(gradients)), 0.5 * exp(1.0) + 3, 1e-12);
  CHECK_CLOSE(*enzyme::shadow(shadows, rate), 2 * exp(1.0), 1e-12);
  CHECK_CLOSE(*enzyme::shadow(shadows, Model::bias), 2, 1e-6);
  enzyme::zero_shadows(shadows);
  *enzyme::shadow(shadows, Model::bias) = 1;
  auto tangent = enzyme::autodiff<enzyme::Forward>(shadows, grown, enzyme::Duplicated<double>(2.0, 1.0));
  CHECK_CLOSE(enzyme::get<0>(tangent), 0.5 * exp(1.0) + 3 + 2, 1e-12);
  return 0;
}
