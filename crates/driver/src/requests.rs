//! Finds the derivative requests of a module and turns each into a plain call.
//!
//! ```text
//! call void (ptr, ptr, ...) @__ferrozyme_request(ptr @primal, ptr @descriptor, ptr %x, ptr %dx)
//! call void @__ferrozyme_derivative_0123456789abcdef(ptr %x, ptr %dx)
//! ```
//!
//! The name follows from primal and descriptor, so that the same derivative wanted in several modules is one.

use crate::constants::{ModuleConstants, address_of};
use crate::descriptor::{Descriptor, read_descriptor};
use crate::report::{Diagnostic, Location};
use ferrozyme_llvm::{Context, DataLayout, Module, Opcode, Place, Value};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The foreign function that stands for derivatives in source programs.
pub(crate) const REQUEST_SYMBOL: &str = "__ferrozyme_request";

/// What the symbols of derivatives start with.
pub(crate) const DERIVATIVE_PREFIX: &str = "__ferrozyme_derivative_";

/// A derivative that a module asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FoundRequest {
    /// The symbol that is called in the place of the request.
    pub(crate) symbol: String,
    /// The symbol of the primal's shim.
    pub(crate) primal: String,
    /// What is asked for.
    pub(crate) descriptor: Descriptor,
}

/// Replaces all requests of a module by calls of derivatives, and gives what they ask for.
pub(crate) fn replace_requests<'c>(
    context: &'c Context,
    module: Module<'c>,
) -> Result<Vec<FoundRequest>, Vec<Diagnostic>> {
    let Some(foreign) = module.function(REQUEST_SYMBOL) else {
        return Ok(Vec::new());
    };
    let constants = ModuleConstants::new(module);
    let layout = DataLayout::of(module);
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for user in foreign.users() {
        if !user.is_instruction() || !user.is_call() || user.called() != foreign {
            problems.push(Diagnostic::error(
                "the address of Ferrozyme's request function is taken",
            ));
            continue;
        }
        match read_request(&constants, &layout, user) {
            Ok(request) => {
                replace_call(context, module, user, &request);
                if !found.contains(&request) {
                    found.push(request);
                }
            }
            Err(reason) => problems.push(Diagnostic {
                location: location_of(context, user),
                notes: vec![reason],
                remedy: Some(
                    "use the `ferrozyme` crate of the same version as `cargo ferrozyme`".to_owned(),
                ),
                ..Diagnostic::error("this derivative request cannot be read")
            }),
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
    call: Value<'c>,
) -> Result<FoundRequest, String> {
    let arguments = call.arguments();
    let [primal, descriptor, pointers @ ..] = arguments.as_slice() else {
        return Err("it has too few arguments".to_owned());
    };
    let (primal, 0) = address_of(layout, *primal)
        .filter(|(symbol, _)| symbol.is_function())
        .ok_or("its function is not a constant")?
    else {
        return Err("its function is not the start of one".to_owned());
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
    Ok(FoundRequest {
        symbol: format!("{DERIVATIVE_PREFIX}{:016x}", hasher.finish()),
        primal,
        descriptor,
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

/// Where an instruction stands in the source, at the outermost level.
pub(crate) fn location_of<'c>(context: &'c Context, instruction: Value<'c>) -> Option<Location> {
    let place = instruction.source_places(context).pop()?;
    Some(Location {
        file: place.file,
        line: place.line,
        column: place.column,
    })
}
