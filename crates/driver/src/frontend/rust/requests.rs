//! Finds the derivative requests of a module and turns each into a direct call.
//!
//! ```text
//! call void (ptr, ptr, ...) @__ferrozyme_request(ptr @primal, ptr @descriptor, ptr %x, ptr %dx)
//! call void @__ferrozyme_derivative_0123456789abcdef(ptr %x, ptr %dx)
//! ```
//!
//! The name follows from primal and descriptor, so that several modules share one derivative.

use super::descriptor::read_descriptor;
use crate::constants::{ModuleConstants, address_of};
use crate::report::{Diagnostic, Location};
use crate::requests::{FoundRequest, Part, location_of};
use ferrozyme_llvm::{Context, DataLayout, Module, Opcode, Place, Value};
use ferrozyme_refusal::{RUST, Refusal};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// The foreign function that stands for derivatives in Rust programs. A module whose symbols begin with this name asks for something.
pub const REQUEST: &str = "__ferrozyme_request";

/// Replaces all requests of a module by calls of derivatives, and gives what they ask for.
pub(crate) fn replace_requests<'c>(
    context: &'c Context,
    module: Module<'c>,
) -> Result<Vec<FoundRequest>, Vec<Diagnostic>> {
    let Some(foreign) = module.function(REQUEST) else {
        return Ok(Vec::new());
    };
    let constants = ModuleConstants::new(module);
    let layout = DataLayout::of(module);
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for user in foreign.users() {
        match read_request(&constants, &layout, foreign, user) {
            Ok(request) => {
                replace_call(context, module, user, &request);
                found.push(request);
            }
            Err(reason) => {
                let at = user.is_instruction().then(|| location_of(context, user));
                let refusal = Refusal::UnreadableRequest { reason };
                problems.push(Diagnostic::refused_at(at.flatten(), &refusal, &RUST));
            }
        }
    }
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(problems)
    }
}

fn read_request<'c>(
    constants: &ModuleConstants,
    layout: &DataLayout,
    foreign: Value<'c>,
    call: Value<'c>,
) -> Result<FoundRequest, String> {
    if !call.is_instruction() || !call.is_call() || call.called() != foreign {
        return Err("the address of the request function is taken".to_owned());
    }
    let arguments = call.arguments();
    let [primal, descriptor, pointers @ ..] = arguments.as_slice() else {
        return Err("it has too few arguments".to_owned());
    };
    let (primal, 0) = address_of(layout, *primal)
        .filter(|(symbol, _)| symbol.is_function())
        .ok_or("its function is not a constant")?
    else {
        return Err("its function pointer does not point to the start of a function".to_owned());
    };
    let (symbol, offset) =
        address_of(layout, *descriptor).ok_or("its descriptor is not a constant")?;
    let descriptor = read_descriptor(&constants.of(), symbol, offset)?;
    if descriptor.pointer_count() != pointers.len() {
        return Err(format!(
            "it passes {} pointers where its descriptor says {}",
            pointers.len(),
            descriptor.pointer_count()
        ));
    }
    let primal = primal.name();
    let mut hasher = DefaultHasher::new();
    primal.hash(&mut hasher);
    descriptor.hash(&mut hasher);
    let (symbol, root) = FoundRequest::symbols(hasher.finish());
    Ok(FoundRequest {
        symbol,
        root,
        primal,
        mode: descriptor.mode,
        width: descriptor.width,
        part: Part::Whole,
        primal_name: descriptor.primal.clone(),
        derivative_name: descriptor.derivative.clone(),
        written_at: Some(Location {
            file: descriptor.file.clone(),
            line: descriptor.line,
            column: descriptor.column,
        }),
        interface: Rc::new(descriptor),
        given: None,
    })
}

fn replace_call<'c>(
    context: &'c Context,
    module: Module<'c>,
    call: Value<'c>,
    request: &FoundRequest,
) {
    let pointers = &call.arguments()[2..];
    let ty = context
        .void()
        .function(&vec![context.pointer(); pointers.len()], false);
    let callee = module.declare(&request.symbol, ty);
    let builder = context.builder();
    builder.before(call);
    let replacement = if call.is(Opcode::Invoke) {
        builder.invoke(
            ty,
            callee,
            pointers,
            call.normal_destination(),
            call.unwind_destination(),
        )
    } else {
        builder.call(ty, callee, pointers)
    };
    // Nothing keeps the addresses of slots: they are memory of the thunk.
    for index in 0..pointers.len() as u32 {
        callee.add_attribute(Place::Parameter(index), context.attribute("captures", 0));
    }
    replacement.set_debug_location(call.debug_location(context));
    call.erase();
}
