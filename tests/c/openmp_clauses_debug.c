// flags: -g -fopenmp -lm
// The same with debug information.
#include "openmp_clauses.c"
