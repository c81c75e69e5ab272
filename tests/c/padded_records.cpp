// flags: -std=c++17 -lm
// Records with unused bytes, whose vectors grow in a vector: Dijkstra's algorithm on a graph with active weights.
#include "differences.h"
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

struct Edge {
  int to;
  double weight;
};

static double function(double *x, int n) {
  std::vector<std::vector<Edge>> graph(n);
  for (int i = 0; i < n; i++)
    for (int d = 1; d <= 3; d++)
      graph[i].push_back({(i * d + 1) % n, x[i] * x[(i + d) % n] + 0.1 * d});
  using Visit = std::pair<double, int>;
  std::priority_queue<Visit, std::vector<Visit>, std::greater<Visit>> next;
  std::vector<double> distance(n, std::numeric_limits<double>::infinity());
  distance[0] = 0;
  next.push({0.0, 0});
  while (!next.empty()) {
    auto [so_far, at] = next.top();
    next.pop();
    if (so_far > distance[at])
      continue;
    for (const Edge &edge : graph[at])
      if (so_far + edge.weight < distance[edge.to]) {
        distance[edge.to] = so_far + edge.weight;
        next.emplace(distance[edge.to], edge.to);
      }
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    if (distance[i] < 1e300)
      sum += distance[i] * (i + 1);
  return sum;
}
