// A function that has no derivative.
[[enzyme::inactive]] __attribute__((noinline)) inline double included(double x) { return x * 13; }
