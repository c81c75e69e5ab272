//! Builds, in LLVM, the function that is differentiated for a request: see [`super::passing`].
//!
//! ```text
//! define double @__ferrozyme_root_…(ptr noalias readonly %x.0, i64 %x.1, double %y) {
//!   %x = alloca [16 x i8] …          ; stores %x.0, %x.1, %y to slots
//!   call void @shim(ptr %x, ptr %y, ptr %result)
//!   %r = load double, ptr %result
//!   ret double %r
//! }
//! ```
//!
//! After inlining and LLVM's `sroa` the slots are gone.

use super::descriptor::Slot;
use super::passing::{Passing, passing_of};
use crate::frontend::adopt_target;
use crate::requests::FoundRequest;
use ferrozyme_ir::Scalar;
use ferrozyme_llvm::{Context, GepFlags, Module, Place, Type, Value};

/// Defines the root of a request.
pub(super) fn build_slot_root<'c>(
    context: &'c Context,
    module: Module<'c>,
    request: &FoundRequest,
    slots: &[Slot],
) {
    let mut parameters = Vec::new();
    let mut result = context.void();
    for slot in slots {
        match passing_of(slot) {
            Passing::Float(scalar) if slot.result => result = type_of(context, scalar),
            Passing::Float(scalar) => parameters.push(type_of(context, scalar)),
            Passing::Memory => parameters.push(context.pointer()),
            Passing::Words(words) => {
                parameters.extend(words.iter().map(|word| type_of(context, word.scalar)));
            }
        }
    }
    let shim_type = context
        .void()
        .function(&vec![context.pointer(); slots.len()], false);
    let shim = module.declare(&request.primal, shim_type);
    let root = module.add_function(&request.root, result.function(&parameters, false));
    adopt_target(context, root, shim);

    let builder = context.builder();
    builder.at_end(context.append_block(root, "entry"));
    let mut number = 0;
    let mut next_parameter = || {
        number += 1;
        (number - 1, root.parameter(number - 1))
    };
    let mut addresses = Vec::new();
    let mut returned = None;
    for slot in slots {
        let passing = passing_of(slot);
        if passing == Passing::Memory {
            let (index, address) = next_parameter();
            for fact in ["noalias", "nonnull", "noundef"] {
                root.add_attribute(Place::Parameter(index), context.attribute(fact, 0));
            }
            addresses.push(address);
            continue;
        }
        let memory = builder.alloca(context.integer(8).array(slot.size));
        memory.set_alignment(slot.align as u32);
        addresses.push(memory);
        match passing {
            Passing::Float(scalar) if slot.result => {
                returned = Some((type_of(context, scalar), memory));
            }
            Passing::Float(_) => {
                builder.store(next_parameter().1, memory);
            }
            Passing::Words(words) => {
                for word in words {
                    let (index, value) = next_parameter();
                    if word.scalar == Scalar::Ptr {
                        add_pointer_facts(context, root, index, slot.shared, slot.unique);
                    }
                    let distance = context.integer(64).constant(i128::from(word.offset));
                    let address = builder.offset(memory, distance, GepFlags::INBOUNDS);
                    builder.store(value, address);
                }
            }
            Passing::Memory => {}
        }
    }
    let call = builder.call(shim_type, shim, &addresses);
    call.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
    match returned {
        Some((ty, memory)) => builder.return_value(builder.load(ty, memory)),
        None => builder.return_nothing(),
    };
}

fn add_pointer_facts<'c>(
    context: &'c Context,
    root: Value<'c>,
    index: u32,
    shared: bool,
    unique: bool,
) {
    let add = |fact| {
        root.add_attribute(Place::Parameter(index), context.attribute(fact, 0));
    };
    add("noundef");
    if shared || unique {
        add("nonnull");
        add("noalias");
    }
    if shared {
        add("readonly");
    }
}

fn type_of(context: &Context, scalar: Scalar) -> Type<'_> {
    match scalar {
        Scalar::Int(bits) => context.integer(u32::from(bits)),
        Scalar::F16 => context.half(),
        Scalar::Bf16 => context.bfloat(),
        Scalar::F32 => context.float(),
        Scalar::F64 => context.double(),
        Scalar::Ptr => context.pointer(),
    }
}
