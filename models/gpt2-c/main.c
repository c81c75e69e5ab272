// The program: `gpt2-c check` and `gpt2-c bench`.
#include "gpt2.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void) {
  fprintf(stderr, "usage: gpt2-c check\n"
                  "       gpt2-c bench [layers|whole] [NAME=NUMBER]...\n"
                  "names: layers heads channels vocabulary padded_vocabulary max_steps (the model: 124M), sequences (4), steps (64), rounds (3), threads (with OpenMP: 2)\n");
  return 2;
}

static int parse_bench(int count, char **arguments, BenchOptions *options) {
  struct {
    const char *name;
    size_t *value;
  } names[] = {
      {"layers", &options->config.layers},         {"heads", &options->config.heads},
      {"channels", &options->config.channels},     {"vocabulary", &options->config.vocabulary},
      {"max_steps", &options->config.max_steps},   {"padded_vocabulary", &options->config.padded_vocabulary},
      {"sequences", &options->batch.sequences},    {"steps", &options->batch.steps},
      {"rounds", &options->rounds},                {"threads", &options->threads},
  };
  for (int i = 0; i < count; i++) {
    char *equals = strchr(arguments[i], '='), *end = NULL;
    if (!strcmp(arguments[i], "layers"))
      options->whole = 0;
    else if (!strcmp(arguments[i], "whole"))
      options->layers = 0;
    else if (!equals)
      return 0;
    else {
      size_t name = 0, length = (size_t)(equals - arguments[i]), known = sizeof names / sizeof *names;
      while (name < known && (strlen(names[name].name) != length || strncmp(names[name].name, arguments[i], length)))
        name++;
      if (name == known)
        return 0;
      *names[name].value = strtoul(equals + 1, &end, 10);
      if (*end || *names[name].value == 0)
        return 0;
    }
  }
  const Config *config = &options->config;
  return config->channels % config->heads == 0 && config->padded_vocabulary >= config->vocabulary && config->max_steps >= options->batch.steps;
}

int main(int count, char **arguments) {
  if (count == 2 && !strcmp(arguments[1], "check"))
    return check() == 0 ? 0 : 1;
  BenchOptions options = {
      .config = {12, 12, 768, 50257, 50304, 1024},
      .batch = {4, 64},
      .rounds = 3,
#ifdef _OPENMP
      .threads = 2,
#else
      .threads = 1,
#endif
      .layers = 1,
      .whole = 1,
  };
  if (count < 2 || strcmp(arguments[1], "bench") || !parse_bench(count - 2, arguments + 2, &options))
    return usage();
#ifndef _OPENMP
  options.threads = 1;
#endif
  bench(&options);
  return 0;
}
