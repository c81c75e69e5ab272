//! Builds, in LLVM, the function that is differentiated for a request: see [`crate::passing`].
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

use crate::descriptor::Slot;
use crate::enzyme::{HALVES, build_value_root};
use crate::passing::{Passing, passing_of};
use crate::requests::{DERIVATIVE_PREFIX, FoundRequest, Interface};
use ferrozyme_ir::Scalar;
use ferrozyme_llvm::{Context, GepFlags, Module, Place, Type, Value};

/// The symbol of a request's root.
pub(crate) fn root_symbol(request: &FoundRequest) -> String {
    let mut symbol = request.symbol.as_str();
    for half in HALVES {
        symbol = symbol.strip_suffix(half).unwrap_or(symbol);
    }
    symbol.replace(DERIVATIVE_PREFIX, "__ferrozyme_root_")
}

/// Defines the root of a request.
pub(crate) fn build_root<'c>(context: &'c Context, module: Module<'c>, request: &FoundRequest) {
    if module.function(&root_symbol(request)).is_some() {
        // Both halves of split reverse mode have the same root.
        return;
    }
    match &request.interface {
        Interface::Slots(descriptor) => {
            build_slot_root(context, module, request, &descriptor.slots)
        }
        Interface::Values(_) => build_value_root(context, module, request),
    }
}

fn build_slot_root<'c>(
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
    let root = module.add_function(&root_symbol(request), result.function(&parameters, false));
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

/// What is inlined into the root must be allowed there: the same processor and features, and unwinding.
pub(crate) fn adopt_target<'c>(context: &'c Context, root: Value<'c>, shim: Value<'c>) {
    root.adopt_processor(context, shim);
    root.add_attribute(Place::Function, context.attribute("uwtable", 2));
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
