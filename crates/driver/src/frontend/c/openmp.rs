//! OpenMP's parallel regions in differentiated code.
//!
//! ```text
//! call void @__kmpc_fork_call(ptr @place, i32 2, ptr @f.omp_outlined, ptr %a, ptr %b)
//! ==>
//! call void @f.omp_outlined(ptr %thread, ptr %thread, ptr %a, ptr %b)
//! ```
//!
//! A region is differentiated as a team of one thread, since most regions mean the same for every number of threads. The loops that it divides among threads are marked (`marks.rs`), so that derivatives can run them on several where that is proven right. The caller of the driver provides the runtime functions that regions
//! call, in a form in which atomic operations are plain ones. The primal keeps its threads. If the number of threads matters, the threads of the team run one after the other
//! (`team.rs`); if that is impossible, the region is refused.

mod marks;
mod team;
mod threads;

use crate::report::Diagnostic;
use crate::requests::location_of;
use ferrozyme_llvm::{Context, Module, Opcode, PassOptions, Place, Value};
use ferrozyme_refusal::{C, Refusal};
use std::collections::{HashMap, HashSet};
use threads::{Reached, counts_on_threads};

const FORK: &str = "__kmpc_fork_call";

const ALWAYS: &str = "alwaysinline";

/// What the functions of schedules that are decided while the program runs are called, and what these names end in.
const DISPATCH: [&str; 2] = ["__kmpc_dispatch_init_", "__kmpc_dispatch_next_"];
const DISPATCHED: [&str; 4] = ["4", "4u", "8", "8u"];

/// Calls parallel regions where they are forked.
///
/// # Errors
/// The regions that depend on the number of threads, and whose threads cannot run one after the other.
pub(crate) fn call_parallel_regions<'c>(
    context: &'c Context,
    module: Module<'c>,
) -> Result<(), Vec<Diagnostic>> {
    let Some(fork) = module.function(FORK) else {
        return Ok(());
    };
    let forks_region =
        |call: &Value<'c>| call.is_instruction() && call.is(Opcode::Call) && call.called() == fork;
    let calls = fork.users().into_iter().filter(forks_region);
    let regions = calls.filter_map(|call| call.arguments().get(2).copied());
    inline_divided_work(context, module, regions.collect())?;
    marks::mark_divided_loops(context, module);
    let calls = fork.users().into_iter().filter(forks_region);
    let calls: Vec<Value<'c>> = calls.collect();
    let mut forks = Vec::new();
    for call in calls {
        let Some(&region) = call.arguments().get(2) else {
            continue;
        };
        let depends = match () {
            () if counts_on_threads(module, call) => Some(Dependence::Numbers),
            () if team::carries_values(region) => Some(Dependence::Carried),
            () => None,
        };
        let reached = Reached::from(module, region);
        forks.push(Fork {
            call,
            region,
            depends,
            in_turn: team::can_run_in_turn(region, &reached.functions),
            asks: reached.asks_for_own_memory(),
            reached: reached.functions,
        });
    }
    let as_team = forks.iter().any(|fork| fork.depends.is_some());
    // Who finds memory by the number of its thread would leave that of the rest of the team as it was.
    let is_refused =
        |fork: &&Fork<'c>| !fork.in_turn && (fork.depends.is_some() || as_team && fork.asks);
    let problems: Vec<Diagnostic> = forks
        .iter()
        .filter(is_refused)
        .map(|fork| refusal(context, fork))
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    for of in DISPATCHED {
        dispatch_once(context, module, of);
    }
    let inner: HashSet<Value<'c>> = forks
        .iter()
        .flat_map(|fork| fork.reached.iter().copied())
        .collect();
    let mut teams = HashSet::new();
    if as_team {
        for fork in forks.iter().filter(|fork| fork.in_turn) {
            team::answer(context, fork.region);
            teams.insert(fork.region);
        }
    }
    team::tell_size(context, module, |call| {
        let region = call.block()?.function();
        let builder = context.builder();
        builder.before(call);
        let team = teams.contains(&region);
        team.then(|| builder.load(context.integer(32), region.parameter(1)))
    });
    let mut regions = HashSet::new();
    for fork in &forks {
        let nested = fork
            .call
            .block()
            .is_some_and(|block| inner.contains(&block.function()));
        match teams.contains(&fork.region) {
            true => call_in_turn(context, module, fork.call, nested),
            false => call_region(context, fork.call),
        }
        if fork.region.is_function() && !fork.region.is_declaration() {
            forget_that_numbers_differ(fork.region);
            regions.insert(fork.region);
        }
    }
    for region in regions {
        // Where it cannot be done, the atomic operations are refused as everywhere else.
        let _ = region.run_passes("lower-atomic", None, PassOptions::default());
    }
    Ok(())
}

/// The two numbers of the thread that a region is given are one variable here.
fn forget_that_numbers_differ(region: Value<'_>) {
    for parameter in 0..region.parameter_count().min(2) {
        region.remove_attribute(Place::Parameter(parameter), "noalias");
    }
}

/// Brings what regions do by calls of OpenMP's runtime into the regions themselves. With debug information, clang puts all that a region does into a function of its own.
fn inline_divided_work<'c>(
    context: &'c Context,
    module: Module<'c>,
    regions: Vec<Value<'c>>,
) -> Result<(), Vec<Diagnostic>> {
    let is_defined = |function: &Value<'c>| function.is_function() && !function.is_declaration();
    let is_of_runtime = |function: Value<'c>| {
        let name = function.name();
        name.starts_with("__kmpc_") || name.starts_with("omp_")
    };
    let calls_runtime = |function: Value<'c>| {
        let mut calls = function.instructions().filter(|one| one.is_call());
        calls.any(|call| call.called_function().is_some_and(is_of_runtime))
    };
    let mut inlined = HashSet::new();
    for region in regions.into_iter().filter(is_defined) {
        let mut open = vec![region];
        let mut seen = HashSet::from([region]);
        while let Some(function) = open.pop() {
            for call in function.instructions().filter(|one| one.is_call()) {
                let Some(callee) = call.called_function().filter(is_defined) else {
                    continue;
                };
                if !is_of_runtime(callee) && calls_runtime(callee) && seen.insert(callee) {
                    for attribute in ["noinline", "optnone"] {
                        callee.remove_attribute(Place::Function, attribute);
                    }
                    forget_that_numbers_differ(callee);
                    call.add_attribute(Place::Function, context.attribute(ALWAYS, 0));
                    inlined.insert(callee);
                    open.push(callee);
                }
            }
        }
    }
    if inlined.is_empty() {
        return Ok(());
    }
    // Functions of the runtime are told by their names, which inlining would take away.
    let always = |function: &Value<'c>| function.has_attribute(Place::Function, ALWAYS);
    let others: Vec<Value<'c>> = module.functions().filter(always).collect();
    for function in &others {
        function.remove_attribute(Place::Function, ALWAYS);
    }
    let done = module.run_passes("always-inline", None, PassOptions::default());
    let left: HashSet<Value<'c>> = module.functions().collect();
    for function in others.iter().filter(|function| left.contains(function)) {
        function.add_attribute(Place::Function, context.attribute(ALWAYS, 0));
    }
    done.map_err(|error| vec![Diagnostic::error(error.to_string())])
}

/// A place where a parallel region is forked.
struct Fork<'c> {
    call: Value<'c>,
    region: Value<'c>,
    /// Why the number of threads matters, if it does.
    depends: Option<Dependence>,
    /// Whether its threads can run one after the other.
    in_turn: bool,
    /// Whether its threads find memory of their own by their numbers.
    asks: bool,
    /// The functions that the region reaches, itself among them.
    reached: Vec<Value<'c>>,
}

/// Why a region means something else for another number of threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dependence {
    /// Its threads use their numbers.
    Numbers,
    /// A thread carries a value from one iteration of a divided loop to the next.
    Carried,
}

fn refusal(context: &Context, fork: &Fork<'_>) -> Diagnostic {
    let refusal = match fork.depends {
        Some(Dependence::Carried) => Refusal::CarriedByThreads,
        _ => Refusal::ThreadNumber,
    };
    let in_turn = "derivatives run the threads of such a region one after the other, which is impossible if they wait for each other or share work dynamically";
    Diagnostic {
        notes: vec![in_turn.to_owned()],
        ..Diagnostic::refused_at(location_of(context, fork.call), &refusal, &C)
    }
}

/// Runs all threads of the team where the region is forked.
fn call_in_turn<'c>(context: &'c Context, module: Module<'c>, call: Value<'c>, nested: bool) {
    let arguments = call.arguments();
    let [_, _, region, shared @ ..] = &arguments[..] else {
        return;
    };
    let size = team::size_at(context, module, call, nested);
    let turns = team::add_turns(context, module, *region, shared);
    let mut given = vec![size];
    given.extend(shared);
    let builder = context.builder();
    builder.before(call);
    let direct = builder.call_function(turns, &given);
    direct.set_debug_location(call.debug_location(context));
    call.erase();
}

/// Runs a team of one where the region is forked.
fn call_region<'c>(context: &'c Context, call: Value<'c>) {
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
