// Iterations to a fixed point, written as calls:
//
//   __enzyme_fixed_point(step, …, arguments…)          for (i = 0; step(i, arguments…); i++);
//
// Before the arguments may stand `enzyme_fp_state, address, bytes`, `enzyme_fp_reduction, number`, `enzyme_fp_max_iters, number`, `enzyme_fp_control, function` and
// `enzyme_checkpoint_region, address, bytes`. They have no effect: derivatives go through all iterations, which converges with them.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern int enzyme_fp_state;
extern int enzyme_fp_reduction;
extern int enzyme_fp_max_iters;
extern int enzyme_fp_control;
extern int enzyme_checkpoint_region;

void __enzyme_fixed_point(void *step, ...);

#ifdef __cplusplus
}
#endif
