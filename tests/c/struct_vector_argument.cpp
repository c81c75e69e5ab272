// flags: -lm
// A struct of vectors as the argument, with a shadow struct; vectors of vectors.
#include "check.h"
#include <cmath>
#include <string>
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename... T> void __enzyme_autodiff(void *, T...);

struct Model {
  std::string name;
  std::vector<double> weights;
  std::vector<std::vector<double>> table;
  int order = 0;
};

static double loss(const Model &m, double x) {
  double sum = 0;
  for (std::size_t i = 0; i < m.weights.size(); i++)
    sum += m.weights[i] * std::pow(x, m.order + (int)i);
  for (const auto &row : m.table)
    for (double v : row)
      sum += v * v;
  return sum * sum;
}

int main() {
  Model m{"model", {1, 2, 3}, {{1, 2}, {3}}, 1}, dm{"model", {0, 0, 0}, {{0, 0}, {0}}, 1};
  __enzyme_autodiff((void *)loss, enzyme_dup, &m, &dm, enzyme_const, 0.5);
  double sum = 1 * 0.5 + 2 * 0.25 + 3 * 0.125 + 14;
  for (int i = 0; i < 3; i++)
    CHECK_CLOSE(dm.weights[i], 2 * sum * std::pow(0.5, i + 1), 1e-12);
  CHECK_CLOSE(dm.table[0][1], 2 * sum * 4, 1e-12);
  CHECK_CLOSE(dm.table[1][0], 2 * sum * 6, 1e-12);
  return 0;
}
