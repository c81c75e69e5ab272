//! Whether a parallel region assumes a number of threads.
//!
//! A region that means the same for every number of threads means the same for a team of one. Two uses of a thread id are allowed: together with the team size, to divide work;
//! and to index per-thread storage in regions where OpenMP divides the work. Per-thread storage is memory in which floats are written too, not only read, as they are where each thread reads its share of an input. Any other use (loops that start at the thread id with a constant step, results that depend on it) would do
//! the share of one thread only in a team of one.
//!
//! Thread ids are followed through arithmetic, calls and results of the program's functions, after promotion of memory to values. A thread id that is stored to memory otherwise cannot be followed, and counts as any use.

use ferrozyme_llvm::{IntPredicate, Module, Opcode, PassOptions, Value};
use std::collections::HashSet;

/// What the functions are called that say which thread of the team it is, how large the team is, and how large it is to be.
pub(super) const THREAD: &str = "omp_get_thread_num";
pub(super) const THREADS: &str = "omp_get_num_threads";
pub(super) const WANTED: &str = "__kmpc_push_num_threads";

/// What the names of the functions start with that divide loops and sections among the threads.
pub(super) const DIVIDING: [&str; 2] = ["__kmpc_for_static_init", "__kmpc_dispatch_init"];

/// Whether the region that is forked here would do a part of its work in a team of one.
pub(super) fn counts_on_threads<'c>(module: Module<'c>, fork: Value<'c>) -> bool {
    let Some(region) = fork.arguments().get(2).copied() else {
        return false;
    };
    let reached = Reached::from(module, region);
    let numbers = reached.calls_of(THREAD);
    if numbers.is_empty() {
        return false;
    }
    for function in &reached.functions {
        // Where it cannot be done, what is stored in variables counts as used for anything.
        let _ = function.run_passes("sroa", None, PassOptions::default());
    }
    if reached.divides_by_count() {
        return false;
    }
    let divides = |name: &String| DIVIDING.iter().any(|start| name.starts_with(start));
    let divided = reached.names.iter().any(divides) && !wants_number(fork);
    !(divided && is_own_memory_only(reached.calls_of(THREAD)))
}

/// What a region calls, directly or not.
pub(super) struct Reached<'c> {
    /// Those with bodies.
    pub(super) functions: Vec<Value<'c>>,
    names: HashSet<String>,
}

impl<'c> Reached<'c> {
    pub(super) fn from(module: Module<'c>, region: Value<'c>) -> Reached<'c> {
        let mut reached = Reached {
            functions: Vec::new(),
            names: HashSet::new(),
        };
        let mut seen = HashSet::from([region]);
        let mut work = vec![region];
        while let Some(function) = work.pop() {
            if !function.is_function() || function.is_declaration() {
                continue;
            }
            reached.functions.push(function);
            for call in function.instructions().filter(|one| one.is_call()) {
                let callees = match call.called_function() {
                    Some(callee) => vec![callee],
                    // Behind a pointer there may be whoever asks for numbers.
                    None => callers_of(module, THREAD),
                };
                for callee in callees {
                    reached.names.insert(callee.name());
                    if seen.insert(callee) {
                        work.push(callee);
                    }
                }
            }
        }
        reached
    }

    /// Whether its threads use their numbers without how many they are.
    pub(super) fn asks_for_own_memory(&self) -> bool {
        !self.calls_of(THREAD).is_empty() && !self.divides_by_count()
    }

    fn divides_by_count(&self) -> bool {
        self.calls_of(THREADS).into_iter().any(is_more_than_shown)
    }

    fn calls_of(&self, name: &str) -> Vec<Value<'c>> {
        let calls = self.functions.iter().flat_map(|one| one.instructions());
        let of_name = |call: &Value<'c>| {
            call.is_call()
                && call
                    .called_function()
                    .is_some_and(|callee| callee.name() == name)
        };
        calls.filter(of_name).collect()
    }
}

/// The functions that call another.
fn callers_of<'c>(module: Module<'c>, name: &str) -> Vec<Value<'c>> {
    let users = module.function(name).map(|function| function.users());
    let users = users.into_iter().flatten();
    users
        .filter(|user| user.is_instruction() && user.is_call())
        .filter_map(|call| Some(call.block()?.function()))
        .collect()
}

/// Whether something is made of a number, other than to pass it to functions without body (which print it).
fn is_more_than_shown(number: Value<'_>) -> bool {
    let mut seen = HashSet::from([number]);
    let mut work = vec![number];
    while let Some(value) = work.pop() {
        for user in value.users() {
            match user.opcode() {
                Some(Opcode::SExt | Opcode::ZExt | Opcode::Trunc) => {
                    if seen.insert(user) {
                        work.push(user);
                    }
                }
                Some(_)
                    if user.is_call()
                        && user.called_function().is_some_and(Value::is_declaration) => {}
                _ => return true,
            }
        }
    }
    false
}

/// Whether numbers are nothing but indices of memory of the thread's own, shown, or asked whether they are 0, which in a team of one they are.
fn is_own_memory_only(numbers: Vec<Value<'_>>) -> bool {
    let mut places = Vec::new();
    let mut seen: HashSet<Value<'_>> = numbers.iter().copied().collect();
    let mut work = numbers;
    // What is made of them, and no number of a thread any more.
    let mut calculated: HashSet<Value<'_>> = HashSet::new();
    while let Some(value) = work.pop() {
        for user in value.users() {
            let is_copied = matches!(
                user.opcode(),
                Some(Opcode::SExt | Opcode::ZExt | Opcode::Trunc | Opcode::Ret)
            ) || user.is_call();
            let is_number = is_copied && !calculated.contains(&value);
            let follows = match user.opcode() {
                Some(
                    Opcode::SExt
                    | Opcode::ZExt
                    | Opcode::Trunc
                    | Opcode::Add
                    | Opcode::Sub
                    | Opcode::Mul
                    | Opcode::Shl,
                ) => vec![user],
                Some(Opcode::GetElementPtr) => {
                    places.push(user);
                    Vec::new()
                }
                Some(Opcode::ICmp)
                    if user.int_predicate() == IntPredicate::Eq
                        && user.operands().iter().any(|one| one.is_zero())
                        && !calculated.contains(&value) =>
                {
                    Vec::new()
                }
                Some(Opcode::Ret) => match user.block() {
                    Some(block) => calls_to(block.function()),
                    None => return false,
                },
                Some(_) if user.is_call() => match parameters(user, value) {
                    Some(parameters) => parameters,
                    None => return false,
                },
                _ => return false,
            };
            if !is_number {
                calculated.extend(follows.iter().copied());
            }
            work.extend(follows.into_iter().filter(|next| seen.insert(*next)));
        }
    }
    !looks_up_only(places)
}

/// Whether there is memory from which floats are read at these places, and that nobody writes at any of them.
fn looks_up_only(places: Vec<Value<'_>>) -> bool {
    let (mut read, mut written) = (HashSet::new(), HashSet::new());
    let mut seen: HashSet<Value<'_>> = places.iter().copied().collect();
    let mut work: Vec<_> = places
        .iter()
        .map(|place| (*place, memory_of(*place)))
        .collect();
    while let Some((place, memory)) = work.pop() {
        for user in place.users() {
            match user.opcode() {
                Some(Opcode::Load) if !user.ty().is_float() => {}
                Some(Opcode::Load) => {
                    read.insert(memory);
                }
                Some(Opcode::GetElementPtr) => {
                    if seen.insert(user) {
                        work.push((user, memory));
                    }
                }
                // A store, or something that may write.
                _ => {
                    written.insert(memory);
                }
            }
        }
    }
    !read.is_subset(&written)
}

/// What an address is an offset from: the variable that holds the pointer, or the pointer itself.
fn memory_of(mut address: Value<'_>) -> Value<'_> {
    while address.opcode() == Some(Opcode::GetElementPtr) {
        address = address.operand(0);
    }
    match address.opcode() {
        Some(Opcode::Load) => address.operand(0),
        _ => address,
    }
}

fn calls_to(function: Value<'_>) -> Vec<Value<'_>> {
    let users = function.users().into_iter();
    users
        .filter(|user| user.is_instruction() && user.is_call() && user.called() == function)
        .collect()
}

/// The parameters as which a callee sees a value; none for a function that prints it. There is no answer where the callee is not known.
fn parameters<'c>(call: Value<'c>, value: Value<'c>) -> Option<Vec<Value<'c>>> {
    let callee = call.called_function()?;
    if callee.is_declaration() {
        return call.called_type().is_variadic().then(Vec::new);
    }
    let parameters = callee.parameters();
    let passed = call.arguments().into_iter().enumerate();
    passed
        .filter(|(_, argument)| *argument == value)
        .map(|(index, _)| parameters.get(index).copied())
        .collect()
}

/// Whether a number of threads is asked for right before the fork.
fn wants_number(fork: Value<'_>) -> bool {
    let before = std::iter::successors(fork.previous_instruction(), |one| {
        one.previous_instruction()
    });
    let calls = before.filter(|one| one.is_call());
    calls
        .filter_map(|call| call.called_function())
        .map(|callee| callee.name())
        .take_while(|name| name != super::FORK)
        .any(|name| name == WANTED)
}
