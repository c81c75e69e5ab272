// Random numbers that are the same on every machine (xorshift64*), and memory filled with them.
#include "gpt2.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

Random random_from(uint64_t seed) {
  // One round of splitmix64: neighbouring seeds give unrelated streams.
  uint64_t state = seed + 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  state ^= state >> 31;
  return (Random){state ? state : 1};
}

double random_uniform(Random *random) {
  random->state ^= random->state >> 12;
  random->state ^= random->state << 25;
  random->state ^= random->state >> 27;
  return (double)(random->state * 0x2545f4914f6cdd1d >> 11) / (double)(1ULL << 53);
}

double random_normal(Random *random) {
  // Box and Muller; 1 - u is never 0.
  double radius = sqrt(-2 * log(1 - random_uniform(random)));
  return radius * cos(2 * 3.14159265358979323846 * random_uniform(random));
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (!memory && count > 0) {
    fprintf(stderr, "no memory for %zu numbers\n", count);
    exit(1);
  }
  return memory;
}

real *zeros(size_t count) { return allocate(count, sizeof(real)); }

real *random_numbers(size_t count, double deviation, uint64_t seed) {
  real *numbers = zeros(count);
  Random random = random_from(seed);
  for (size_t i = 0; i < count; i++)
    numbers[i] = deviation * random_normal(&random);
  return numbers;
}

uint32_t *random_tokens(size_t count, size_t vocabulary, uint64_t seed) {
  uint32_t *tokens = allocate(count, sizeof *tokens);
  Random random = random_from(seed);
  for (size_t i = 0; i < count; i++)
    tokens[i] = random_uniform(&random) * vocabulary;
  return tokens;
}
