//! Parallel regions whose meaning depends on the number of threads.
//!
//! ```text
//! call void @__kmpc_fork_call(ptr @place, i32 2, ptr @f.omp_outlined, ptr %a, ptr %b)
//! ==>
//! %team = call i32 @omp_get_max_threads()
//! for %thread in 0..%team:  call void @f.omp_outlined(&%thread, &%team, ptr %a, ptr %b)
//! ```
//!
//! The derivative runs the threads of the team one after the other, each with the share of worksharing loops that OpenMP's runtime would give it. That is correct if threads do not wait for each other and schedules
//! are static; the caller refuses regions with barriers, `single`, `master` and other schedules. As always, the first parameter of a region is the thread id; the second, otherwise unused, is
//! the team size.
//!
//! A region depends on the team if it uses thread ids, or if a thread carries a private value from one iteration of a worksharing loop to the next, and the first iteration starts from a value of the program or
//! the carried value is visible outside:
//!
//! ```c
//! #pragma omp parallel for firstprivate(x)
//! for (int i = 0; i < n; i++) { a[i] = x; x = 0; }      // one element for each thread is x
//! ```
//!
//! Sums that start from constants and are combined after the loop mean the same for every team.

use super::threads::{DIVIDING, THREAD, THREADS, WANTED};
use ferrozyme_llvm::{
    Block, Context, IntPredicate, Linkage, Module, Opcode, PassOptions, Place, Value, ValueKind,
};
use std::collections::HashSet;

/// The size that teams have.
const TEAM_SIZE: &str = "omp_get_max_threads";

/// LLVM's mask for functions that only read memory which the program cannot access: the program may change the size from one call of a derivative to the next, as between the two functions of split mode.
const READS_INACCESSIBLE_MEMORY: u64 = 0b0100;

const STATIC_INIT: &str = "__kmpc_for_static_init_";
const STATIC_END: &str = "__kmpc_for_static_fini";

/// What regions may call of OpenMP's runtime where threads run one after the other.
const ALONE: [&str; 8] = [
    STATIC_INIT,
    STATIC_END,
    "__kmpc_critical",
    "__kmpc_end_critical",
    "__kmpc_reduce",
    "__kmpc_end_reduce",
    "__kmpc_global_thread_num",
    "__kmpc_flush",
];

const BARRIER: &str = "__kmpc_barrier";

/// Whether a thread of the region carries something from iteration to iteration that makes the result depend on the number of threads.
pub(super) fn carries_values(region: Value<'_>) -> bool {
    if !region.is_function() || region.is_declaration() {
        return false;
    }
    let starts = calls_of(region, |name| {
        DIVIDING.iter().any(|start| name.starts_with(start))
    });
    if starts.is_empty() {
        return false;
    }
    // Where it cannot be done, only what is in memory anyway is seen.
    let _ = region.run_passes("sroa", None, PassOptions::default());
    let starts = calls_of(region, |name| {
        DIVIDING.iter().any(|start| name.starts_with(start))
    });
    let bounds: HashSet<Value<'_>> = starts.iter().flat_map(|call| call.arguments()).collect();
    let loops = divided_loops(region, &starts);
    loops.iter().any(|blocks| {
        carries_variable(blocks, &bounds) || changes_given_memory(region, blocks, &bounds)
    })
}

pub(super) fn calls_of<'c>(function: Value<'c>, is_meant: impl Fn(&str) -> bool) -> Vec<Value<'c>> {
    let calls = function.instructions().filter(|one| one.is_call());
    calls
        .filter(|call| {
            call.called_function()
                .is_some_and(|callee| is_meant(&callee.name()))
        })
        .collect()
}

/// What is reached behind a block without going through others.
pub(super) fn reached<'c>(from: Block<'c>, without: &HashSet<Block<'c>>) -> HashSet<Block<'c>> {
    let mut seen = HashSet::new();
    let mut work = from.successors();
    while let Some(block) = work.pop() {
        if !without.contains(&block) && seen.insert(block) {
            work.extend(block.successors());
        }
    }
    seen
}

/// The blocks of each loop whose iterations are divided: those between the calls that begin and end it, or around the call that asks for more iterations.
pub(super) fn divided_loops<'c>(
    region: Value<'c>,
    starts: &[Value<'c>],
) -> Vec<HashSet<Block<'c>>> {
    let blocks_of = |calls: Vec<Value<'c>>| -> HashSet<Block<'c>> {
        calls.iter().filter_map(|call| call.block()).collect()
    };
    let dividing = blocks_of(starts.to_vec());
    let ends = blocks_of(calls_of(region, |name| {
        name.starts_with(STATIC_END) || name.starts_with(super::DISPATCH[1])
    }));
    let mut loops: Vec<HashSet<Block<'c>>> = Vec::new();
    for start in &dividing {
        for block in reached(*start, &dividing) {
            if loops.iter().any(|known| known.contains(&block)) {
                continue;
            }
            let behind = reached(block, &dividing);
            // The block that ends one loop may begin the next.
            let ended = behind.iter().any(|block| {
                let next = block.successors();
                ends.contains(block) || next.iter().any(|next| ends.contains(next))
            });
            if behind.contains(&block) && ended {
                let around = behind.into_iter();
                let around = around.filter(|other| reached(*other, &dividing).contains(&block));
                loops.push(around.collect());
            }
        }
    }
    loops
}

/// Whether a variable is carried around a loop that starts from a value of the program, or that is stored where others see it.
fn carries_variable(blocks: &HashSet<Block<'_>>, bounds: &HashSet<Value<'_>>) -> bool {
    let headers = blocks.iter().filter(|block| {
        let mut before = block.predecessors().into_iter();
        before.any(|block| !blocks.contains(&block))
    });
    let phis = headers.flat_map(|block| block.instructions().take_while(|one| one.is(Opcode::Phi)));
    for phi in phis {
        let incoming = phi.incoming().into_iter();
        let (inside, outside): (Vec<_>, Vec<_>) =
            incoming.partition(|(_, from)| blocks.contains(from));
        let is_bound = |value: Value<'_>| {
            value.opcode() == Some(Opcode::Load) && bounds.contains(&value.operand(0))
        };
        let is_changed = inside.iter().any(|(value, _)| *value != phi);
        if !is_changed || outside.iter().any(|(value, _)| is_bound(*value)) {
            continue;
        }
        let unset = [ValueKind::Undef, ValueKind::Poison];
        let mut starts = outside
            .iter()
            .filter(|(value, _)| !unset.contains(&value.kind()))
            .peekable();
        if starts.peek().is_none() {
            // It is set anew in every iteration.
            continue;
        }
        if starts.any(|(value, _)| !value.is_constant()) {
            return true;
        }
        let carried = std::iter::once(phi).chain(inside.iter().map(|(value, _)| *value));
        for value in carried {
            let shown = value.users().into_iter().any(|user| {
                user.opcode() == Some(Opcode::Store)
                    && user.operand(0) == value
                    && user.block().is_some_and(|block| blocks.contains(&block))
            });
            if shown {
                return true;
            }
        }
    }
    false
}

/// Whether memory of the thread's own gets values of the program before the loop and others in it, by the region itself or by functions that it calls with the address (constructors, member functions).
fn changes_given_memory(
    region: Value<'_>,
    blocks: &HashSet<Block<'_>>,
    bounds: &HashSet<Value<'_>>,
) -> bool {
    let own = region.instructions().filter(|one| one.is(Opcode::Alloca));
    let leads_there = |block: Block<'_>| !reached(block, &HashSet::new()).is_disjoint(blocks);
    own.filter(|memory| !bounds.contains(memory)).any(|memory| {
        let (mut given, mut changed) = (false, false);
        let mut seen = HashSet::from([memory]);
        let mut work = vec![memory];
        while let Some(address) = work.pop() {
            for user in address.users() {
                let inside = user.block().is_some_and(|block| blocks.contains(&block));
                let before = !inside && user.block().is_some_and(leads_there);
                match user.opcode() {
                    Some(Opcode::GetElementPtr) if seen.insert(user) => work.push(user),
                    Some(Opcode::Store) if user.operand(1) == address => {
                        changed |= inside;
                        given |= before && !user.operand(0).is_constant();
                    }
                    Some(Opcode::Call | Opcode::Invoke) if !is_of_runtime(user) => {
                        // What a function returns may be an address within (`operator[]`).
                        if user.ty().is_pointer() && seen.insert(user) {
                            work.push(user);
                        }
                        if inside && !changed {
                            changed = writes_through(user, address, &mut HashSet::new());
                        }
                        given |= before && gives_values(user, address);
                    }
                    _ => {}
                }
            }
        }
        given && changed
    })
}

/// Whether a call gives values of the program to memory: a float that is no constant, or the address of other memory than the thread's own.
fn gives_values<'c>(call: Value<'c>, memory: Value<'c>) -> bool {
    let is_marker = |name: &str| name.starts_with("llvm.lifetime") || name.starts_with("llvm.dbg");
    if call.called_intrinsic().is_some_and(|name| is_marker(&name)) {
        return false;
    }
    let arguments = call.arguments().into_iter();
    let mut others = arguments.filter(|&argument| argument != memory && !argument.is_constant());
    others.any(|argument| {
        let mut start = argument;
        while start.opcode() == Some(Opcode::GetElementPtr) {
            start = start.operand(0);
        }
        argument.ty().is_float() || argument.ty().is_pointer() && !is_variable(start)
    })
}

/// Whether a call is one of OpenMP's own: the bounds of loops are its business.
fn is_of_runtime(call: Value<'_>) -> bool {
    call.called_function()
        .is_some_and(|callee| callee.name().starts_with("__kmpc_"))
}

fn is_variable(value: Value<'_>) -> bool {
    value.opcode() == Some(Opcode::Alloca)
}

/// Whether a call may write to memory whose address it is given, or that is reached from there.
fn writes_through<'c>(
    call: Value<'c>,
    address: Value<'c>,
    seen: &mut HashSet<(Value<'c>, u32)>,
) -> bool {
    if let Some(name) = call.called_intrinsic() {
        let writes = ["llvm.memcpy", "llvm.memmove", "llvm.memset"];
        return is_of(&writes, &name) && call.operand(0) == address;
    }
    let arguments = call.arguments();
    let Some(callee) = call.called_function() else {
        return true;
    };
    (0..arguments.len() as u32)
        .filter(|&index| arguments[index as usize] == address)
        .any(|index| {
            let place = Place::Parameter(index);
            let only_read = ["readonly", "readnone"];
            !only_read
                .iter()
                .any(|fact| call.call_has_attribute(place, fact))
                && (callee.is_declaration() || parameter_is_written(callee, index, seen))
        })
}

/// Whether a function may write through one of its parameters, or to memory that is reached from there.
fn parameter_is_written<'c>(
    function: Value<'c>,
    index: u32,
    seen: &mut HashSet<(Value<'c>, u32)>,
) -> bool {
    if index >= function.parameter_count() {
        return true;
    }
    if !seen.insert((function, index)) {
        return false;
    }
    // Unoptimised code keeps its parameters in variables.
    let mut work = vec![function.parameter(index)];
    let mut followed: HashSet<Value<'c>> = work.iter().copied().collect();
    while let Some(address) = work.pop() {
        for user in address.users() {
            let is_address = match user.opcode() {
                Some(Opcode::Store) if user.operand(1) == address => {
                    // A variable that holds the address is not what it points to.
                    if is_variable(address) {
                        continue;
                    }
                    return true;
                }
                Some(Opcode::Store) => {
                    let variable = user.operand(1);
                    if !is_variable(variable) {
                        return true;
                    }
                    if followed.insert(variable) {
                        work.push(variable);
                    }
                    false
                }
                Some(Opcode::GetElementPtr | Opcode::Phi | Opcode::Select | Opcode::BitCast) => {
                    true
                }
                Some(Opcode::Load) => user.ty().is_pointer(),
                Some(Opcode::Call | Opcode::Invoke) => {
                    if writes_through(user, address, seen) {
                        return true;
                    }
                    user.ty().is_pointer()
                }
                Some(Opcode::ICmp | Opcode::Ret) => false,
                _ => return true,
            };
            if is_address && followed.insert(user) {
                work.push(user);
            }
        }
    }
    false
}

/// Whether the threads of a region can run one after the other: they do not wait for each other, and whatever asks for thread numbers stands in the region itself.
pub(super) fn can_run_in_turn<'c>(region: Value<'c>, reached: &[Value<'c>]) -> bool {
    let is_alone = |name: &str| !name.starts_with("__kmpc_") || is_of(&ALONE, name);
    let of_runtime = |name: &str| {
        name.starts_with("__kmpc_") || name.starts_with("omp_") || name.starts_with("__tgt_")
    };
    let inside = calls_of(region, |name| name == BARRIER);
    let known = |name: &str| is_alone(name) || name == BARRIER;
    calls_of(region, |name| !known(name)).is_empty()
        && inside.into_iter().all(ends_region)
        && reached
            .iter()
            .filter(|function| **function != region && !of_runtime(&function.name()))
            .all(|function| calls_of(*function, of_runtime).is_empty())
}

fn is_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|start| name.starts_with(start))
}

/// Whether nothing happens behind a call any more.
fn ends_region(call: Value<'_>) -> bool {
    let mut seen = HashSet::new();
    let mut next = call.next_instruction();
    while let Some(one) = next {
        next = match one.opcode() {
            Some(Opcode::Ret) => return true,
            Some(Opcode::Br) => {
                let to = one.successors();
                let [to] = to[..] else {
                    return false;
                };
                if !seen.insert(to) {
                    return false;
                }
                to.first_instruction()
            }
            Some(Opcode::Call)
                if one
                    .called_intrinsic()
                    .is_some_and(|name| name.starts_with("llvm.lifetime")) =>
            {
                one.next_instruction()
            }
            _ => return false,
        };
    }
    false
}

fn team_size<'c>(context: &'c Context, module: Module<'c>) -> Value<'c> {
    let size = module.declare(TEAM_SIZE, context.integer(32).function(&[], false));
    let facts = [
        ("memory", READS_INACCESSIBLE_MEMORY),
        ("nounwind", 0),
        ("willreturn", 0),
    ];
    for (fact, number) in facts {
        size.add_attribute(Place::Function, context.attribute(fact, number));
    }
    size
}

/// The function that runs the region for each thread of a team, whose size comes before what the threads share.
pub(super) fn add_turns<'c>(
    context: &'c Context,
    module: Module<'c>,
    region: Value<'c>,
    shared: &[Value<'c>],
) -> Value<'c> {
    let number = context.integer(32);
    let types: Vec<_> = std::iter::once(number)
        .chain(shared.iter().map(|value| value.ty()))
        .collect();
    let ty = context.void().function(&types, false);
    let turns = module.add_function(&format!("{}.turns", region.name()), ty);
    turns.set_linkage(Linkage::Internal);
    turns.adopt_processor(context, region);
    let [entry, head, body, end] =
        ["entry", "head", "body", "end"].map(|name| context.append_block(turns, name));
    let parameters = turns.parameters();
    let builder = context.builder();
    builder.at_end(entry);
    let [thread, team] = [(); 2].map(|()| builder.alloca(number));
    builder.store(parameters[0], team);
    builder.branch(head);
    builder.at_end(head);
    let turn = builder.phi(number);
    turn.add_incoming(number.constant(0), entry);
    let more = builder.compare_integers(IntPredicate::Slt, turn, parameters[0]);
    builder.branch_if(more, body, end);
    builder.at_end(body);
    builder.store(turn, thread);
    let mut given = vec![thread, team];
    given.extend(&parameters[1..]);
    let types: Vec<_> = given.iter().map(|value| value.ty()).collect();
    builder.call(context.void().function(&types, false), region, &given);
    let next = builder.binary(Opcode::Add, turn, number.constant(1));
    turn.add_incoming(next, body);
    builder.branch(head);
    builder.at_end(end);
    builder.return_nothing();
    turns
}

/// The size of the team that is forked here: what the program wants, or what there is.
pub(super) fn size_at<'c>(
    context: &'c Context,
    module: Module<'c>,
    fork: Value<'c>,
    nested: bool,
) -> Value<'c> {
    let number = context.integer(32);
    if nested {
        return number.constant(1);
    }
    let before = std::iter::successors(fork.previous_instruction(), |one| {
        one.previous_instruction()
    });
    let wanted = before
        .filter(|one| one.is_call())
        .take_while(|call| {
            call.called_function()
                .is_none_or(|callee| callee.name() != super::FORK)
        })
        .find(|call| {
            call.called_function()
                .is_some_and(|callee| callee.name() == WANTED)
        });
    if let Some(wanted) = wanted {
        return wanted.arguments()[2];
    }
    let builder = context.builder();
    builder.before(fork);
    builder.call_function(team_size(context, module), &[])
}

/// Answers what a region asks about its team from its parameters.
pub(super) fn answer<'c>(context: &'c Context, region: Value<'c>) {
    let number = context.integer(32);
    let builder = context.builder();
    for (name, parameter) in [(THREAD, 0), (THREADS, 1)] {
        for call in calls_of(region, |called| called == name) {
            builder.before(call);
            let answer = builder.load(number, region.parameter(parameter));
            call.replace_uses_with(answer);
            call.erase();
        }
    }
}

/// Tells whoever divides loops how large the team is, in the place of a description of the source that nobody needs: `size` gives it for a call.
pub(super) fn tell_size<'c>(
    context: &'c Context,
    module: Module<'c>,
    size: impl Fn(Value<'c>) -> Option<Value<'c>>,
) {
    for of in super::DISPATCHED {
        let Some(function) = module.function(&format!("{STATIC_INIT}{of}")) else {
            continue;
        };
        for call in function.users() {
            if !call.is_instruction() || !call.is_call() || call.called() != function {
                continue;
            }
            let builder = context.builder();
            builder.before(call);
            let size = size(call).unwrap_or(context.integer(32).constant(1));
            let wide = builder.cast(Opcode::SExt, size, context.integer(64));
            let told = builder.cast(Opcode::IntToPtr, wide, context.pointer());
            call.set_operand(0, told);
        }
    }
}
