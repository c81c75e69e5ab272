//! Loops that are written as calls: `__enzyme_checkpoint_for`, `__enzyme_checkpoint_while` and `__enzyme_fixed_point`.
//!
//! ```text
//! __enzyme_checkpoint_for(step, start, count, enzyme_scheme, scheme, config, enzyme_checkpoint_region, u, bytes, u)
//! ==>
//! for (i = 0; i < count; i++) step(start + i, u);
//!
//! __enzyme_fixed_point(step, enzyme_fp_state, u, bytes, enzyme_fp_reduction, 1e-30, u, p)
//! ==>
//! i = 0; do more = step(i++, u, p); while (more);
//! ```
//!
//! What is said of snapshots and of convergence changes memory and time. Derivatives go through all iterations, and the caching plan decides what is saved.

use super::arguments::{Problem, memory_type, refuse};
use super::entries::{Entry, marker};
use super::thunk::{add_thunk, convert, described, plain_name, put_call};
use crate::trace::trace;
use ferrozyme_llvm::{Builder, Context, DataLayout, GepFlags, IntPredicate, Module, Opcode, Value};
use ferrozyme_refusal::{Argument, Refusal};

/// The markers, and how many operands belong to each.
const MARKERS: &[(&str, usize)] = &[
    (SCHEME, 2),
    ("enzyme_checkpoint_region", 2),
    ("enzyme_fp_state", 2),
    ("enzyme_fp_reduction", 1),
    ("enzyme_fp_max_iters", 1),
    ("enzyme_fp_control", 1),
];

/// Precedes the schedule and its settings.
const SCHEME: &str = "enzyme_scheme";

/// Where `EnzymeCkptConfig` holds the address of `EnzymeCkptStats`, and where that holds the number of steps.
const STATISTICS: i128 = 32;
const STEPS: i128 = 8;

/// What a call says.
struct ReadLoop<'c> {
    step: Value<'c>,
    /// The first number and how many there are; none if the step decides.
    counted: Option<[Value<'c>; 2]>,
    /// Where the settings of the schedule are.
    settings: Option<Value<'c>>,
    /// What the step gets behind its number.
    arguments: Vec<Value<'c>>,
}

/// Replaces a call by a loop over calls of its step.
pub(super) fn replace_loop<'c>(
    context: &'c Context,
    module: Module<'c>,
    entry: Entry,
    call: Value<'c>,
) -> Result<(), Problem> {
    let problem = |refusal: Refusal| refuse(context, call, &refusal);
    let read = read(entry, call).map_err(problem)?;
    let passed: Vec<Value<'c>> = (read.counted.iter().flatten())
        .chain(&read.settings)
        .chain(&read.arguments)
        .copied()
        .collect();
    let thunk = add_thunk(context, module, call, &passed);
    let mut parameters = thunk.parameters().into_iter();
    let mut next = || {
        parameters
            .next()
            .expect("there is a parameter for each operand")
    };
    // In terms of the thunk's own parameters.
    let own = ReadLoop {
        step: read.step,
        counted: read.counted.map(|both| both.map(|_| next())),
        settings: read.settings.map(|_| next()),
        arguments: read.arguments.iter().map(|_| next()).collect(),
    };
    build(context, module, thunk, &own).map_err(problem)?;
    put_call(context, call, thunk, &passed);
    Ok(())
}

fn read<'c>(entry: Entry, call: Value<'c>) -> Result<ReadLoop<'c>, Refusal> {
    let mut operands = call.arguments().into_iter();
    let step = operands
        .next()
        .map(trace)
        .filter(|function| function.is_function())
        .ok_or(Refusal::UnknownPrimal {
            entry: entry.name(),
        })?;
    if memory_type(step, 0, "sret").is_some() {
        return Err(Refusal::ResultInMemory {
            entry: entry.name(),
            function: plain_name(step),
        });
    }
    let missing = || Refusal::MisplacedMarker {
        problem: "the call ends before all arguments are given",
    };
    let counted = match entry {
        Entry::CheckpointFor => {
            let mut next = || operands.next().ok_or_else(missing);
            Some([next()?, next()?])
        }
        _ => None,
    };
    let mut settings = None;
    let mut arguments = Vec::new();
    while let Some(operand) = operands.next() {
        let name = match marker(operand) {
            None => {
                arguments.push(operand);
                continue;
            }
            Some(Err(name)) => name,
            Some(Ok(_)) => {
                return Err(Refusal::MisplacedMarker {
                    problem: "this marker has no meaning here",
                });
            }
        };
        let Some(&(_, count)) = MARKERS.iter().find(|(known, _)| *known == name) else {
            return Err(Refusal::UnknownMarker { name });
        };
        let said: Vec<Value<'c>> = operands.by_ref().take(count).collect();
        if said.len() < count {
            return Err(missing());
        }
        if name == SCHEME {
            settings = said.last().copied();
        }
    }
    let wanted = step.value_type().parameters().len();
    match wanted == 1 + arguments.len() {
        true => Ok(ReadLoop {
            step,
            counted,
            settings,
            arguments,
        }),
        false => Err(Refusal::ArgumentCount {
            function: plain_name(step),
            wanted,
            given: 1 + arguments.len(),
        }),
    }
}

/// The body of the thunk.
fn build<'c>(
    context: &'c Context,
    module: Module<'c>,
    thunk: Value<'c>,
    read: &ReadLoop<'c>,
) -> Result<(), Refusal> {
    let layout = DataLayout::of(module);
    let builder = context.builder();
    let entry = context.append_block(thunk, "entry");
    let body = context.append_block(thunk, "body");
    let exit = context.append_block(thunk, "exit");
    let number = context.integer(64);
    let one_argument = |builder: &Builder<'c>, index: usize, value: Value<'c>| {
        let of = read.step.value_type().parameters()[index];
        convert(builder, &layout, value, of).ok_or_else(|| Refusal::ArgumentType {
            argument: Argument::Number {
                number: index + 1,
                function: plain_name(read.step),
            },
            wanted: described(of),
            given: described(value.ty()),
        })
    };
    builder.at_end(entry);
    let wide = |value: Value<'c>| convert(&builder, &layout, value, number).unwrap_or(value);
    let counted = read.counted.map(|both| both.map(wide));
    match counted {
        Some([_, count]) => {
            let some = builder.compare_integers(IntPredicate::Sgt, count, number.zero());
            builder.branch_if(some, body, exit);
        }
        None => {
            builder.branch(body);
        }
    }
    builder.at_end(body);
    let index = builder.phi(number);
    index.add_incoming(number.zero(), entry);
    let first = match counted {
        Some([start, _]) => builder.binary(Opcode::Add, start, index),
        None => index,
    };
    let mut arguments = vec![one_argument(&builder, 0, first)?];
    for (position, &argument) in read.arguments.iter().enumerate() {
        arguments.push(one_argument(&builder, position + 1, argument)?);
    }
    let answer = builder.call_function(read.step, &arguments);
    let following = builder.binary(Opcode::Add, index, number.constant(1));
    index.add_incoming(following, body);
    let more = match counted {
        Some([_, count]) => builder.compare_integers(IntPredicate::Slt, following, count),
        None if answer.ty().integer_width().is_some() => {
            builder.compare_integers(IntPredicate::Ne, answer, answer.ty().zero())
        }
        None => {
            return Err(Refusal::MisplacedMarker {
                problem: "the step must return an integer that says whether to go on",
            });
        }
    };
    builder.branch_if(more, body, exit);
    builder.at_end(exit);
    let steps = builder.phi(number);
    if counted.is_some() {
        steps.add_incoming(number.zero(), entry);
    }
    steps.add_incoming(following, body);
    let end = |builder: &Builder<'c>| match thunk.value_type().result() {
        of if of.is_void() => builder.return_nothing(),
        of => builder.return_value(of.zero()),
    };
    let Some(settings) = read.settings.filter(|settings| settings.ty().is_pointer()) else {
        end(&builder);
        return Ok(());
    };
    // The statistics, where they are asked for: each step is differentiated once.
    let [asked, told, done] =
        ["asked", "told", "done"].map(|name| context.append_block(thunk, name));
    let at = |base: Value<'c>, bytes: i128| {
        builder.offset(base, number.constant(bytes), GepFlags::default())
    };
    let is_there = |pointer: Value<'c>| {
        builder.compare_integers(IntPredicate::Ne, pointer, pointer.ty().zero())
    };
    builder.branch_if(is_there(settings), asked, done);
    builder.at_end(asked);
    let statistics = builder.load(settings.ty(), at(settings, STATISTICS));
    builder.branch_if(is_there(statistics), told, done);
    builder.at_end(told);
    builder.store(steps, at(statistics, STEPS));
    builder.branch(done);
    builder.at_end(done);
    end(&builder);
    Ok(())
}
