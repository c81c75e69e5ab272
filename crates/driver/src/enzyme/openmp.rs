//! Parallel regions of OpenMP in what is differentiated.
//!
//! ```text
//! call void @__kmpc_fork_call(ptr @place, i32 2, ptr @f.omp_outlined, ptr %a, ptr %b)
//! ==>
//! call void @f.omp_outlined(ptr %thread, ptr %thread, ptr %a, ptr %b)
//! ```
//!
//! A derivative runs the region as a team of one thread: a region means the same for every number of threads, and what threads add to shadows that they share needs no care. The functions of the runtime that regions call are
//! given by whoever drives the compiler, for a team of one as well, in which atomic operations of a region are plain ones. The primal keeps its threads.

use ferrozyme_llvm::{Context, Module, Opcode, PassOptions, Place, Value};
use std::collections::HashSet;

const FORK: &str = "__kmpc_fork_call";

/// Calls parallel regions where they are forked.
pub(crate) fn call_parallel_regions<'c>(context: &'c Context, module: Module<'c>) {
    let Some(fork) = module.function(FORK) else {
        return;
    };
    let mut regions = HashSet::new();
    for call in fork.users() {
        if call.is_instruction() && call.is(Opcode::Call) && call.called() == fork {
            call_region(context, call, &mut regions);
        }
    }
    for region in regions {
        // Where it cannot be done, the atomic operations are refused as everywhere else.
        let _ = region.run_passes("lower-atomic", None, PassOptions::default());
    }
}

fn call_region<'c>(context: &'c Context, call: Value<'c>, regions: &mut HashSet<Value<'c>>) {
    let arguments = call.arguments();
    let [_, _, region, shared @ ..] = &arguments[..] else {
        return;
    };
    let Some(entry) = call.block().and_then(|block| {
        let function = block.function();
        function.instructions().next()
    }) else {
        return;
    };
    let number = context.integer(32);
    let builder = context.builder();
    builder.before(entry);
    let thread = builder.alloca(number);
    builder.before(call);
    builder.store(number.constant(0), thread);
    let mut given = vec![thread, thread];
    given.extend(shared);
    let types: Vec<_> = given.iter().map(|value| value.ty()).collect();
    let ty = context.void().function(&types, false);
    let direct = builder.call(ty, *region, &given);
    direct.set_debug_location(call.debug_location(context));
    call.erase();
    if region.is_function() && !region.is_declaration() {
        // The two numbers of the thread are one variable here.
        for parameter in 0..2 {
            region.remove_attribute(Place::Parameter(parameter), "noalias");
        }
        regions.insert(*region);
    }
}
