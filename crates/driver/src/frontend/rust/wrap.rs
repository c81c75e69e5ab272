//! The function that a request calls: it loads the slots, and calls the derivative of the root with their contents.
//!
//! ```text
//! func @__ferrozyme_derivative_…(%x: ptr, %x': ptr, %y: ptr, %y': ptr, %result: ptr, %seed: ptr) {
//!   …set the shadows of statics to zero: nothing in them outlives a call…
//!   …load what the slots hold…
//!   %r, %gy = call @root.reverse(%x.0, %x'.0, %x.1, %y.0, %seed.0)
//!   …store %r to %result, add %gy to %y'…
//! }
//! ```

use super::descriptor::{Activity, Descriptor, Slot};
use super::passing::{Passing, Word, passing_of};
use crate::frontend::define::{define, reset_shadows};
use crate::requests::Mode;
use ferrozyme_diff::{add_shadow, put_shapes};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, GlobalId, Module, Opcode, Param, ParamFacts, Scalar,
    Type, Value,
};

/// Defines `name` (which calls may have declared already) as a function that stops the program with a text.
pub(crate) fn stopping_derivative(
    module: &mut Module,
    name: &str,
    descriptor: &Descriptor,
    text: &str,
) -> FunctionId {
    let params = vec![slot_parameter(); descriptor.pointer_count()];
    let mut function = Function::define(name, params, Vec::new());
    Builder::at_body(&mut function).trap(text);
    define(module, function)
}

/// Defines `name` (which calls may have declared already) around `derivative`, the derivative of the root.
pub(crate) fn wrap_derivative(
    module: &mut Module,
    name: &str,
    descriptor: &Descriptor,
    derivative: FunctionId,
    shadows: &[GlobalId],
    shaped: &[bool],
) -> FunctionId {
    let params = vec![slot_parameter(); descriptor.pointer_count()];
    let mut function = Function::define(name, params, Vec::new());
    let results = module.functions[derivative].results.clone();
    let slots = slot_values(&function, descriptor);
    let mut build = Builder::at_body(&mut function);
    reset_shadows(&mut build, module, shadows);

    let mut args = Vec::new();
    let mut made = Vec::new();
    let mut parameter = 0;
    for (slot, values) in descriptor.slots.iter().zip(&slots) {
        let first = args.len();
        pass_slot(&mut build, descriptor, slot, values, &mut args);
        if let Passing::Words(words) = passing_of(slot) {
            if shaped.get(parameter) == Some(&true) {
                let args = &mut args[first..];
                made.push(make_shadow(&mut build, slot, &words, values, args));
            }
            parameter += words.len();
        } else if !matches!(passing_of(slot), Passing::Float(_) if slot.result) {
            parameter += 1;
        }
    }
    let seeds = descriptor
        .slots
        .iter()
        .zip(&slots)
        .filter_map(|(slot, values)| {
            let reverse = descriptor.mode == Mode::Reverse;
            match passing_of(slot) {
                Passing::Float(scalar) if slot.result && reverse && !values.shadows.is_empty() => {
                    Some((scalar, values.shadows[0]))
                }
                _ => None,
            }
        });
    let seeds: Vec<_> = seeds.collect();
    for (scalar, address) in seeds {
        args.push(load(&mut build, scalar, address, 0));
    }

    let call = build.call(derivative, &args, &results);
    for shadow in made {
        add_shadow(&mut build, shadow.made, shadow.given, shadow.bytes);
        build.free(shadow.made);
    }
    let mut results = build.function.ops[call].results.clone().into_iter();
    let mut next = || {
        results
            .next()
            .expect("the derivative's results follow from the same descriptor")
    };
    let floats = |result: bool| {
        descriptor
            .slots
            .iter()
            .zip(&slots)
            .filter_map(move |(slot, values)| match passing_of(slot) {
                Passing::Float(scalar) if slot.result == result => Some((scalar, slot, values)),
                _ => None,
            })
    };
    for (_, _, values) in floats(true) {
        let value = next();
        store(&mut build, value, values.primal);
    }
    match descriptor.mode {
        Mode::Reverse => {
            let active = floats(false).filter(|(_, slot, _)| slot.activity != Activity::Const);
            for (scalar, _, values) in active.collect::<Vec<_>>() {
                let so_far = load(&mut build, scalar, values.shadows[0], 0);
                let gradient = next();
                let sum = build.binary(Opcode::Fadd, so_far, gradient);
                store(&mut build, sum, values.shadows[0]);
            }
        }
        Mode::Forward => {
            for (_, _, values) in floats(true) {
                for &shadow in &values.shadows {
                    let tangent = next();
                    store(&mut build, tangent, shadow);
                }
            }
        }
        Mode::Primal => {}
    }
    build.ret(&[]);
    define(module, function)
}

/// The addresses of a slot and of its shadows.
struct SlotValues {
    primal: Value,
    shadows: Vec<Value>,
}

fn slot_values(function: &Function, descriptor: &Descriptor) -> Vec<SlotValues> {
    let mut arguments = function.arguments().iter().copied();
    let mut next = || {
        arguments
            .next()
            .expect("there are as many parameters as pointers")
    };
    let slots = descriptor.slots.iter().map(|slot| SlotValues {
        primal: next(),
        shadows: (0..descriptor.shadows(slot)).map(|_| next()).collect(),
    });
    slots.collect()
}

/// The arguments of the derivative that come from one slot.
fn pass_slot(
    build: &mut Builder<'_>,
    descriptor: &Descriptor,
    slot: &Slot,
    values: &SlotValues,
    args: &mut Vec<Value>,
) {
    let reverse = descriptor.mode == Mode::Reverse;
    match passing_of(slot) {
        Passing::Float(_) if slot.result => {}
        Passing::Float(scalar) => {
            args.push(load(build, scalar, values.primal, 0));
            if !reverse {
                for &shadow in &values.shadows {
                    args.push(load(build, scalar, shadow, 0));
                }
            }
        }
        Passing::Memory => {
            args.push(values.primal);
            args.extend(&values.shadows);
        }
        Passing::Words(words) => {
            for word in &words {
                args.push(load(build, word.scalar, values.primal, word.offset));
                if word.scalar != Scalar::Ptr {
                    continue;
                }
                for &shadow in &values.shadows {
                    args.push(load(build, word.scalar, shadow, word.offset));
                }
            }
        }
    }
}

/// A shadow that lives as long as the call of the derivative.
struct MadeShadow {
    made: Value,
    /// Where the caller wants the gradient.
    given: Value,
    bytes: Value,
}

/// Passes a shadow that starts with the shapes of floats in the place of the caller's. `args` are those of the slot: a pointer, its shadow, and for a slice the length.
fn make_shadow(
    build: &mut Builder<'_>,
    slot: &Slot,
    words: &[Word],
    values: &SlotValues,
    args: &mut [Value],
) -> MadeShadow {
    let (floats, given) = (args[0], args[1]);
    let size = bytes_of_element(build, slot, &words[0]);
    let bytes = match words.get(1) {
        Some(length) => {
            let length = load(build, length.scalar, values.primal, length.offset);
            build.binary(Opcode::Mul, length, size)
        }
        None => size,
    };
    let made = build.alloc(bytes, Alignment::natural(Type::F64), false);
    put_shapes(build, floats, made, bytes);
    args[1] = made;
    MadeShadow { made, given, bytes }
}

/// The size of what a reference leads to, or of one element of a slice.
fn bytes_of_element(build: &mut Builder<'_>, slot: &Slot, word: &Word) -> Value {
    let stride = word.pointee.as_ref().map_or(0, |layout| layout.stride);
    let bytes = slot.count.unwrap_or(1) * stride;
    build.i64(bytes as i64)
}

fn load(build: &mut Builder<'_>, scalar: Scalar, slot: Value, offset: u64) -> Value {
    let address = if offset == 0 {
        slot
    } else {
        build.offset_bytes(slot, offset as i64)
    };
    let ty = Type::scalar_of(scalar);
    build.load(ty, address, Alignment::natural(ty))
}

fn store(build: &mut Builder<'_>, value: Value, slot: Value) {
    let align = Alignment::natural(build.ty(value));
    build.store(value, slot, align);
}

/// Slots are memory of the caller that nothing else knows of.
fn slot_parameter() -> Param {
    Param {
        ty: Type::PTR,
        facts: ParamFacts {
            noalias: true,
            nocapture: true,
            ..ParamFacts::default()
        },
    }
}
