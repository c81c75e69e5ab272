//! `__enzyme_batch`: several calls of the primal, without a derivative.
//!
//! ```text
//! %r = call { double, double } @__enzyme_batch(ptr @f, i32 %width, i64 2, i32 %vector, double %x0, double %x1, i32 %scalar, double %y)
//! ==>
//! %r = { f(%x0, %y), f(%x1, %y) }
//! ```
//!
//! `enzyme_vector`, or no marker, precedes one value for each call; `enzyme_scalar` a value for all calls; `enzyme_buffer` a stride in bytes and an address, which grows by the stride from
//! call to call.

use super::arguments::{Problem, memory_type, refuse};
use super::entries::{Entry, Marker, marker};
use super::results::{Output, deliver};
use super::thunk::{add_thunk, convert, described, plain_name, put_call};
use crate::trace::trace;
use ferrozyme_convention::signature::take_apart;
use ferrozyme_llvm::{Context, DataLayout, GepFlags, Module, Opcode, Value};
use ferrozyme_refusal::{Argument, Refusal};

/// What is given for one parameter.
enum Given<'c> {
    Each(Vec<Value<'c>>),
    Shared(Value<'c>),
    Buffer { stride: Value<'c>, first: Value<'c> },
}

/// Replaces a call by as many calls of the function as its width says.
pub(super) fn replace_batch<'c>(
    context: &'c Context,
    module: Module<'c>,
    call: Value<'c>,
) -> Result<(), Problem> {
    let problem = |refusal: Refusal| refuse(context, call, &refusal);
    let mut operands = call.arguments().into_iter();
    let memory = memory_type(call, 0, "sret").and_then(|of| Some((operands.next()?, of)));
    let function = operands
        .next()
        .map(trace)
        .filter(|function| function.is_function())
        .ok_or_else(|| {
            problem(Refusal::UnknownPrimal {
                entry: Entry::Batch.name(),
            })
        })?;
    let name = plain_name(function);
    if memory_type(function, 0, "sret").is_some() {
        return Err(problem(Refusal::ResultInMemory {
            entry: Entry::Batch.name(),
            function: name,
        }));
    }
    let operands: Vec<Value<'c>> = operands.collect();
    let (width, given) = read(&operands, function).map_err(problem)?;

    let mut passed: Vec<Value<'c>> = memory.iter().map(|(memory, _)| *memory).collect();
    for one in &given {
        match one {
            Given::Each(values) => passed.extend(values),
            Given::Shared(value) => passed.push(*value),
            Given::Buffer { stride, first } => passed.extend([*stride, *first]),
        }
    }
    let thunk = add_thunk(context, module, call, &passed);
    let builder = context.builder();
    builder.at_end(context.append_block(thunk, "entry"));
    let layout = DataLayout::of(module);
    let mut parameters = thunk.parameters().into_iter();
    let mut output = Output {
        call,
        memory: memory.and_then(|(_, of)| Some((parameters.next()?, of))),
        values: Vec::new(),
        structure: None,
    };
    let mut next = || {
        parameters
            .next()
            .expect("there is a parameter for each operand")
    };
    // In terms of the thunk's own parameters.
    let given: Vec<Given<'c>> = given
        .into_iter()
        .map(|one| match one {
            Given::Each(values) => Given::Each(values.iter().map(|_| next()).collect()),
            Given::Shared(_) => Given::Shared(next()),
            Given::Buffer { .. } => Given::Buffer {
                stride: next(),
                first: next(),
            },
        })
        .collect();
    for lane in 0..width {
        let mut arguments = Vec::new();
        for (index, (one, of)) in given
            .iter()
            .zip(function.value_type().parameters())
            .enumerate()
        {
            let value = match one {
                Given::Each(values) => values[lane],
                Given::Shared(value) => *value,
                Given::Buffer { stride, first } => {
                    let number = stride.ty().constant(lane as i128);
                    let distance = builder.binary(Opcode::Mul, *stride, number);
                    builder.offset(*first, distance, GepFlags::default())
                }
            };
            let converted = convert(&builder, &layout, value, of).ok_or_else(|| {
                let (number, function) = (index + 1, name.clone());
                problem(Refusal::ArgumentType {
                    argument: Argument::Number { number, function },
                    wanted: described(of),
                    given: described(value.ty()),
                })
            })?;
            arguments.push(converted);
        }
        let result = builder.call_function(function, &arguments);
        if !result.ty().is_void() {
            output.values.extend(take_apart(&builder, result));
        }
    }
    deliver(context, &layout, &builder, &output).map_err(problem)?;
    put_call(context, call, thunk, &passed);
    Ok(())
}

/// The width, and what is given for each parameter.
fn read<'c>(
    operands: &[Value<'c>],
    function: Value<'c>,
) -> Result<(usize, Vec<Given<'c>>), Refusal> {
    let count = function.value_type().parameters().len();
    let mut rest = operands.iter().copied();
    let mut width = None;
    let mut given = Vec::new();
    while let Some(operand) = rest.next() {
        let missing = || misplaced("the call ends before all arguments are given");
        let lanes = |width: Option<usize>| {
            width.ok_or(misplaced(
                "'enzyme_width' must come first, with a constant behind it",
            ))
        };
        match marker(operand) {
            Some(Ok(Marker::Width)) => {
                let number = rest.next().and_then(|number| trace(number).as_unsigned());
                width = number
                    .and_then(|number| usize::try_from(number).ok())
                    .filter(|number| *number > 0);
                lanes(width)?;
            }
            Some(Ok(Marker::Scalar)) => {
                given.push(Given::Shared(rest.next().ok_or_else(missing)?));
            }
            Some(Ok(Marker::Buffer)) => {
                let stride = rest.next().ok_or_else(missing)?;
                let first = rest.next().ok_or_else(missing)?;
                given.push(Given::Buffer { stride, first });
            }
            Some(Ok(Marker::Vector)) | None => {
                let mut values = match marker(operand) {
                    None => vec![operand],
                    Some(_) => Vec::new(),
                };
                let more = lanes(width)? - values.len();
                values.extend(rest.by_ref().take(more));
                if values.len() < lanes(width)? {
                    return Err(missing());
                }
                given.push(Given::Each(values));
            }
            Some(Ok(_)) => return Err(misplaced("this marker has no meaning here")),
            Some(Err(name)) => return Err(Refusal::UnknownMarker { name }),
        }
    }
    let width = width.ok_or(misplaced("'enzyme_width' is missing"))?;
    match given.len() == count {
        true => Ok((width, given)),
        false => Err(Refusal::ArgumentCount {
            function: plain_name(function),
            wanted: count,
            given: given.len(),
        }),
    }
}

fn misplaced(problem: &'static str) -> Refusal {
    Refusal::MisplacedMarker { problem }
}
