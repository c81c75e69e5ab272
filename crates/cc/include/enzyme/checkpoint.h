// Loops that are marked for checkpointing:
//
//   [[enzyme::checkpoint("revolve", 3)]] for (…)                        C++ and C23
//   __attribute__((enzyme_checkpoint("revolve", 3))) for (…)
//   #pragma enzyme checkpoint("revolve", 3)                             on the line before the loop
//
// A mark changes memory and time, never a derivative. Ferrozyme decides for itself what it keeps, and takes marks as comments, so that there is nothing to declare here.
#pragma once
#include <stddef.h>
#include <stdint.h>
