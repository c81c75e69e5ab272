//! Parallel regions of OpenMP in what is differentiated.
//!
//! ```text
//! call void @__kmpc_fork_call(ptr @place, i32 2, ptr @f.omp_outlined, ptr %a, ptr %b)
//! ==>
//! call void @f.omp_outlined(ptr %thread, ptr %thread, ptr %a, ptr %b)
//! ```
//!
//! A derivative runs the region as a team of one thread: a region means the same for every number of threads, and what threads add to shadows that they share needs no care. The functions of the runtime that regions call are
//! given by whoever drives the compiler, for a team of one as well, in which atomic operations of a region are plain ones. The primal keeps its threads. Regions that count on a number of threads of their own making
//! are refused: a team of one would do a part of their work.

mod threads;

use crate::report::Diagnostic;
use crate::requests::location_of;
use ferrozyme_llvm::{Context, Module, Opcode, PassOptions, Place, Value};
use std::collections::{HashMap, HashSet};
use threads::{THREAD, THREADS, counts_on_threads};

const FORK: &str = "__kmpc_fork_call";

/// What the functions of schedules that are decided while the program runs are called, and what these names end in.
const DISPATCH: [&str; 2] = ["__kmpc_dispatch_init_", "__kmpc_dispatch_next_"];
const DISPATCHED: [&str; 4] = ["4", "4u", "8", "8u"];

/// Calls parallel regions where they are forked.
///
/// # Errors
/// The regions whose threads use their numbers for more than memory of their own, but not together with how many they are.
pub(crate) fn call_parallel_regions<'c>(
    context: &'c Context,
    module: Module<'c>,
) -> Result<(), Vec<Diagnostic>> {
    let Some(fork) = module.function(FORK) else {
        return Ok(());
    };
    let calls = fork.users().into_iter();
    let calls: Vec<Value<'c>> = calls
        .filter(|call| call.is_instruction() && call.is(Opcode::Call) && call.called() == fork)
        .collect();
    let problems: Vec<Diagnostic> = calls
        .iter()
        .filter(|call| counts_on_threads(module, **call))
        .map(|call| Diagnostic {
            location: location_of(context, *call),
            notes: vec!["derivatives run parallel regions on one thread, which would do the work of one only".to_owned()],
            remedy: Some(format!(
                "divide the work with '#pragma omp for', or by '{THREADS}()'"
            )),
            ..Diagnostic::error(format!(
                "the threads of this region use '{THREAD}', but not how many they are"
            ))
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    for of in DISPATCHED {
        dispatch_once(context, module, of);
    }
    let mut regions = HashSet::new();
    for call in calls {
        call_region(context, call, &mut regions);
    }
    for region in regions {
        // Where it cannot be done, the atomic operations are refused as everywhere else.
        let _ = region.run_passes("lower-atomic", None, PassOptions::default());
    }
    Ok(())
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

/// The range that a loop gets, as variables of its function.
struct Range<'c> {
    /// Whether it is still to be given out.
    left: Value<'c>,
    /// Where it starts, where it ends, and the distance of its numbers.
    parts: [Value<'c>; 3],
}

/// Gives out the range of a loop as a whole:
///
/// ```text
/// call void @__kmpc_dispatch_init_4(…, i32 %from, i32 %to, i32 %step, …)              store i32 1, ptr %left;  store i32 %from, ptr %range.from; …
/// %more = call i32 @__kmpc_dispatch_next_4(…, ptr %last, ptr %a, ptr %b, ptr %c)  ⇒   %more = load i32, ptr %left;  store i32 0, ptr %left;  %a ← %range.from; …
/// ```
fn dispatch_once<'c>(context: &'c Context, module: Module<'c>, of: &str) {
    let calls = |name: &str| -> Vec<Value<'c>> {
        let function = module.function(&format!("{name}{of}"));
        let users = function.map(|function| (function, function.users()));
        let (function, users) = match users {
            Some(found) => found,
            None => return Vec::new(),
        };
        users
            .into_iter()
            .filter(|user| user.is_instruction() && user.is(Opcode::Call))
            .filter(|user| user.called() == function)
            .collect()
    };
    let number = context.integer(32);
    let builder = context.builder();
    let mut ranges: HashMap<Value<'c>, Range<'c>> = HashMap::new();
    for call in calls(DISPATCH[0]) {
        let arguments = call.arguments();
        let Some(function) = call.block().map(|block| block.function()) else {
            continue;
        };
        let Some(entry) = function.instructions().next() else {
            continue;
        };
        let range = ranges.entry(function).or_insert_with(|| {
            builder.before(entry);
            Range {
                left: builder.alloca(number),
                parts: [3, 4, 5].map(|part| builder.alloca(arguments[part].ty())),
            }
        });
        builder.before(call);
        builder.store(number.constant(1), range.left);
        for (part, value) in range.parts.iter().zip(&arguments[3..]) {
            builder.store(*value, *part);
        }
        call.erase();
    }
    for call in calls(DISPATCH[1]) {
        let arguments = call.arguments();
        let function = call.block().map(|block| block.function());
        // Without a start it is refused as a call of something unknown.
        let Some(range) = function.and_then(|function| ranges.get(&function)) else {
            continue;
        };
        builder.before(call);
        let more = builder.load(number, range.left);
        builder.store(number.constant(0), range.left);
        if !arguments[2].is_zero() {
            builder.store(number.constant(1), arguments[2]);
        }
        for (part, to) in range.parts.iter().zip(&arguments[3..]) {
            let value = builder.load(part.allocated_type(), *part);
            builder.store(value, *to);
        }
        call.replace_uses_with(more);
        call.erase();
    }
}
