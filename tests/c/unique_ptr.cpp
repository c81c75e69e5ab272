// flags: -lm
// std::unique_ptr as owner of values, arrays and nodes.
#include "check.h"
#include <memory>

template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

struct Node {
  double value;
  std::unique_ptr<Node> next;
  Node(double value, std::unique_ptr<Node> next) : value(value), next(std::move(next)) {}
};

static double chain(double x, int n) {
  std::unique_ptr<Node> head;
  for (int i = 1; i <= n; i++)
    head = std::make_unique<Node>(x / i, std::move(head));
  double product = 1;
  for (const Node *node = head.get(); node; node = node->next.get())
    product *= node->value;
  return product;
}

static double boxed(double x, int n) {
  auto values = std::make_unique<double[]>(n);
  for (int i = 0; i < n; i++)
    values[i] = x * x * i;
  std::unique_ptr<double> sum(new double(0));
  for (int i = 0; i < n; i++)
    *sum += values[i];
  return *sum;
}

int main() {
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)boxed, 3.0, 5), 60, 1e-12);
  // x⁴/24
  CHECK_CLOSE(__enzyme_autodiff<double>((void *)chain, 2.0, 4), 8.0 / 6, 1e-12);
  return 0;
}
