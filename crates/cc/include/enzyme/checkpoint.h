// Loops that are marked for checkpointing, or written as calls:
//
//   [[enzyme::checkpoint("revolve", 3)]] for (…)                        C++ and C23
//   __attribute__((enzyme_checkpoint("revolve", 3))) for (…)
//   #pragma enzyme checkpoint("revolve", 3)                             on the line before the loop
//
//   __enzyme_checkpoint_for(step, start, count, …, arguments…)          for (i = 0; i < count; i++) step(start + i, arguments…);
//   __enzyme_checkpoint_while(step, …, arguments…)                      for (i = 0; step(i, arguments…); i++);
//
// Before the arguments may stand `enzyme_scheme, &scheme, &config` and any number of `enzyme_checkpoint_region, address, bytes`. Addresses and sizes are pointers and int64_t.
//
// All of it changes memory and time, never a derivative. Ferrozyme decides for itself what it keeps: it takes marks as comments, and schedules by their names.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

extern int enzyme_scheme;
extern int enzyme_checkpoint_region;

void __enzyme_checkpoint_for(void *step, int64_t start, int64_t count, ...);
void __enzyme_checkpoint_while(void *step, ...);

// A schedule.
typedef struct EnzymeCheckpointScheme {
  const char *name;
} EnzymeCheckpointScheme;

// What a loop did. Each step is differentiated once and from what was saved when it ran, so that only `taped_steps` is written.
typedef struct EnzymeCkptStats {
  int64_t forward_steps;
  int64_t taped_steps;
  int64_t stores;
  int64_t restores;
  int64_t max_slots;
  uint64_t max_bytes;
} EnzymeCkptStats;

// Settings of a schedule.
typedef struct EnzymeCkptConfig {
  int64_t snapshots;
  int verbose;
  const char *spill_dir;
  uint64_t mem_budget;
  // Where to write what the loop did, or null.
  EnzymeCkptStats *stats;
} EnzymeCkptConfig;

static const EnzymeCheckpointScheme EnzymeCkptRevolve = {"revolve"};
static const EnzymeCheckpointScheme EnzymeCkptBinomial = {"binomial"};
static const EnzymeCheckpointScheme EnzymeCkptPeriodic = {"periodic"};
static const EnzymeCheckpointScheme EnzymeCkptStoreAll = {"store_all"};

#ifdef __cplusplus
}
#endif
