// flags: -lm
// The node in which a set's tree ends counts elements where the others hold them: a word that is a number in one, and a float with a derivative in others. In both modes.
#include "check.h"
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

template <typename... T> double __enzyme_autodiff(void *, T...);
template <typename... T> double __enzyme_fwddiff(void *, T...);

static double sum_by_rank(double x) {
  std::set<double> values;
  for (int i = 0; i < 6; i++)
    values.insert(x * (i % 4) + 10 * i);
  values.erase(values.begin());
  double sum = 0;
  int rank = 1;
  for (double value : values)
    sum += value * value * rank++;
  return sum * values.size();
}

static double keys(double x) {
  std::multimap<double, int> marks;
  for (int i = 0; i < 5; i++)
    marks.insert({std::sin(x * i), i});
  double sum = 0;
  for (auto &mark : marks)
    sum += mark.first * mark.second;
  marks.erase(marks.begin());
  return sum * marks.size();
}

static double ends(double x) {
  std::list<double> line;
  for (int i = 0; i < 5; i++)
    i % 2 ? line.push_back(x * i) : line.push_front(x * x + 10 * i + 5);
  line.pop_front();
  line.sort();
  double sum = 0;
  for (double value : line)
    sum = sum * 0.5 + value * value;
  return sum * line.size();
}

static double words(double x) {
  std::map<std::string, double> sorted;
  std::unordered_map<std::string, double> scattered;
  const char *names[] = {"b", "a name that is too long for the string itself", "a", "b"};
  for (const char *name : names) {
    sorted[name] += x * x;
    scattered[name] += sorted[name] * x;
  }
  double product = 1;
  for (auto &entry : sorted)
    product *= entry.second + entry.first.size();
  return product + scattered["b"] * scattered.size();
}

static void check(const char *what, double (*f)(double), double reverse, double forward, double x) {
  double expected = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6;
  check_close(reverse, expected, 1e-6, what, __FILE__, __LINE__);
  check_close(forward, expected, 1e-6, what, __FILE__, __LINE__);
}

int main() {
  // The tangent has the same bits as the number 1.0.
  for (double x : {1.0, 0.3, 2.5}) {
    check("set", sum_by_rank, __enzyme_autodiff((void *)sum_by_rank, x), __enzyme_fwddiff((void *)sum_by_rank, x, 1.0), x);
    check("multimap", keys, __enzyme_autodiff((void *)keys, x), __enzyme_fwddiff((void *)keys, x, 1.0), x);
    check("list", ends, __enzyme_autodiff((void *)ends, x), __enzyme_fwddiff((void *)ends, x, 1.0), x);
    check("words", words, __enzyme_autodiff((void *)words, x), __enzyme_fwddiff((void *)words, x, 1.0), x);
  }
  return 0;
}
