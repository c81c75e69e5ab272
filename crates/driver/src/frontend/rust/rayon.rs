//! Parallel iterators of the crate `rayon`, as what they mean: one loop over all items, which is meant for several threads.
//!
//! Every parallel iterator ends in a function that either splits its items in two halves, for two jobs that other threads may take, or goes through them one after the other:
//!
//! ```text
//! fn helper(len, migrated, splitter, producer, consumer) {                        rayon::iter::plumbing::bridge_producer_consumer
//!     if splitter.try_split(len, migrated) {                                      never, since there are no splits
//!         let (left, right) = join_context(|| helper(…), || helper(…));           stops the program
//!         reducer.reduce(left, right)
//!     } else {
//!         producer.fold_with(consumer.into_folder()).complete()
//!     }
//! }
//! ```
//!
//! A splitter starts with as many splits as the pool has threads, so that number becomes zero where a splitter is made; what else the program does with it is its own business. Then only `with_max_len` asks
//! for splits, and such an iterator is refused, or stops the program with a message. The queues of jobs, with all that they need, are not brought into the working module at all.
//!
//! What is left is marked as meant for several threads (`rayon/loops.rs`), so that derivatives run it on them where that is proven right, as they do the loops that OpenMP divides.
//!
//! *Assumes* that a parallel iterator means the same however it is split, which is what the crate asks of reductions; sums are added up in another order than by the threads of the program.

mod loops;

pub(crate) use loops::mark_parallel_iterators;

use ferrozyme_convention::stop::call_stop;
use ferrozyme_library::demangle;
use ferrozyme_llvm::{Context, Module, Opcode, PassOptions, Place, SourcePlace, Value};
use ferrozyme_refusal::Refusal;
use std::collections::HashSet;

/// The functions that split.
const SPLITTING: [&str; 2] = [
    "rayon::iter::plumbing::bridge_producer_consumer::helper",
    "rayon::iter::plumbing::bridge_unindexed_producer_consumer",
];

/// Where splitters are made.
const PLUMBING: &str = "rayon::iter::plumbing::";

/// The number of threads of the pool.
const THREADS: &str = "rayon_core::current_num_threads";

/// What every function that hands over jobs asks first: whether its thread is one of the pool.
const THREAD_STATE: &str = "WORKER_THREAD_STATE";

/// What stands in place of splits until the module is complete.
const SPLIT: &str = "__ferrozyme_split_of_rayon";

/// Lets iterators in the working module go through their items one after the other.
pub(crate) fn fold_parallel_iterators<'c>(context: &'c Context, module: Module<'c>) {
    let of_rayon = |function: &Value<'c>| function.name().contains("rayon");
    let functions: Vec<Value<'c>> = module.functions().filter(of_rayon).collect();
    for &function in &functions {
        if is_path(function, THREADS) {
            start_without_splits(context, function);
        }
    }
    let mut cut = false;
    for &function in &functions {
        // The functions of jobs themselves are as they are.
        if !function.name().contains("rayon_core") {
            cut |= stop_at_splits(context, module, function);
        }
    }
    if cut
        && module
            .run_passes("function(simplifycfg)", None, PassOptions::default())
            .is_ok()
    {
        drop_unused(module);
    }
}

/// Defines what stops the program where an iterator is split in spite of all.
pub(crate) fn define_splits<'c>(context: &'c Context, module: Module<'c>) {
    let Some(split) = module.function(SPLIT) else {
        return;
    };
    let text = format!("{}\n", Refusal::Thread.stop_text());
    for call in split.users() {
        let builder = context.builder();
        builder.before(call);
        call_stop(context, module, &builder, &text);
        call.erase();
    }
    split.erase();
}

/// Whether a function has this path, whatever it is made for. Local functions have a number behind their names if they met others of the same name.
fn is_path(function: Value<'_>, path: &str) -> bool {
    let last = path.rsplit("::").next().unwrap_or(path);
    let name = function.name();
    name.contains(last) && {
        let own = demangle(&name);
        own.strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::<") || rest.starts_with('.'))
    }
}

/// Makes the number of threads zero wherever a splitter is made of it.
fn start_without_splits<'c>(context: &'c Context, threads: Value<'c>) {
    for call in threads.users() {
        if !call.is_instruction() || !call.is_call() || call.called() != threads {
            continue;
        }
        let places = call.source_places(context);
        let is_splitter = match places.first() {
            Some(innermost) => is_plumbing(&innermost.path()),
            None => reaches_splitting(call),
        };
        let inside = call.block().map(|block| block.function());
        let in_plumbing = inside.is_some_and(|function| {
            let path = demangle(&function.name());
            path.trim_start_matches('<').starts_with(PLUMBING)
        });
        if !is_splitter && !in_plumbing {
            continue;
        }
        call.replace_uses_with(call.ty().zero());
        if call.is(Opcode::Call) {
            call.erase();
        } else {
            // The end of a block stays, with a result that nobody looks at.
            call.add_attribute(Place::Function, context.attribute("nounwind", 0));
        }
    }
}

/// Whether a number is passed to a function that splits, as it is or after it was compared with others.
fn reaches_splitting(number: Value<'_>) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![number];
    while let Some(value) = work.pop() {
        for user in value.users() {
            if !user.is_instruction() || !seen.insert(user) {
                continue;
            }
            let called = user.is_call().then(|| user.called_function()).flatten();
            match (user.opcode(), called) {
                (_, Some(function)) if SPLITTING.iter().any(|path| is_path(function, path)) => {
                    return true;
                }
                (_, Some(function)) if function.name().starts_with("llvm.umax.") => work.push(user),
                (Some(Opcode::Select | Opcode::Phi | Opcode::InsertValue), _) => work.push(user),
                _ => {}
            }
        }
    }
    false
}

/// Stops the program where a function begins to hand over jobs. Whether there is such a place.
fn stop_at_splits<'c>(context: &'c Context, module: Module<'c>, function: Value<'c>) -> bool {
    let mut found = false;
    let splits = SPLITTING.iter().any(|path| is_path(function, path));
    for block in function.blocks() {
        let is_split = |one: &Value<'c>| hands_over(*one) && is_of_plumbing(context, *one, splits);
        let Some(first) = block.instructions().find(is_split) else {
            continue;
        };
        let before = first.previous_instruction();
        let called = before
            .filter(|one| one.is_call())
            .and_then(Value::called_function);
        if called.is_some_and(|called| called.name() == SPLIT) {
            continue;
        }
        let split = module.declare(SPLIT, context.void().function(&[], false));
        split.add_attribute(Place::Function, context.attribute("noreturn", 0));
        let builder = context.builder();
        builder.before(first);
        builder.call_function(split, &[]);
        found = true;
    }
    found
}

/// Whether it is an iterator that hands over a job, and not code of the program that an iterator runs: what is not of the crate for jobs itself belongs to where iterators are split. Without debug information, that is what
/// the function is there for.
fn is_of_plumbing<'c>(context: &'c Context, instruction: Value<'c>, splits: bool) -> bool {
    let places = instruction.source_places(context);
    let mut callers = places.iter().map(SourcePlace::path);
    let is_library = |file: &str| {
        let inside = ["/rayon-core-", "library/core/", "library/std/"];
        inside.iter().any(|part| file.contains(part))
    };
    match callers.find(|file| !is_library(file)) {
        Some(file) => is_plumbing(&file),
        None => splits,
    }
}

/// Whether a source file is that in which iterators are split.
fn is_plumbing(file: &str) -> bool {
    file.contains("rayon-") && file.ends_with("src/iter/plumbing/mod.rs")
}

/// Whether an instruction belongs to the handing over of jobs.
fn hands_over(instruction: Value<'_>) -> bool {
    if !instruction.is_call() {
        return false;
    }
    let of_state = |value: &Value<'_>| value.is_global() && value.name().contains(THREAD_STATE);
    if instruction.arguments().iter().any(of_state) {
        return true;
    }
    instruction.called_function().is_some_and(|called| {
        let name = called.name();
        name.contains("rayon_core") && !is_path(called, THREADS)
    })
}

/// Drops functions for jobs that nobody calls any more, so that nobody looks for what they call.
fn drop_unused(module: Module<'_>) {
    let for_jobs = |function: &Value<'_>| {
        let name = function.name();
        ["rayon_core", "crossbeam"]
            .iter()
            .any(|part| name.contains(part))
    };
    loop {
        let unused: Vec<Value<'_>> = module
            .functions()
            .filter(|function| for_jobs(function) && !function.is_used())
            .collect();
        if unused.is_empty() {
            return;
        }
        for function in unused {
            function.erase();
        }
    }
}
