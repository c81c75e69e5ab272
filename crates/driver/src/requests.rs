//! Finds the derivative requests of a module and turns each into a plain call.
//!
//! ```text
//! call void (ptr, ptr, ...) @__ferrozyme_request(ptr @primal, ptr @descriptor, ptr %x, ptr %dx)
//! call void @__ferrozyme_derivative_0123456789abcdef(ptr %x, ptr %dx)
//! ```
//!
//! The name follows from primal and descriptor, so that the same derivative wanted in several modules is one.

use crate::constants::{ModuleConstants, address_of};
use crate::descriptor::{Descriptor, Mode, read_descriptor};
use crate::enzyme::{Part, ValueRequest};
use crate::given::Given;
use crate::passing::request_for;
use crate::report::{Diagnostic, Location};
use ferrozyme_diff as diff;
use ferrozyme_ir::FunctionId;
use ferrozyme_llvm::{Context, DataLayout, Module, Opcode, Place, Value};
use ferrozyme_refusal::{RUST, Refusal};
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
    pub(crate) interface: Interface,
    /// The user's function, if the request is one of the function interface (`grad` and its relatives); known once all is gathered.
    pub(crate) given: Option<Given>,
}

/// What a request asks for, in the way that it was written down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Interface {
    /// By the macros of Rust: everything travels in slots of memory.
    Slots(Descriptor),
    /// By a call in Enzyme's convention: arguments are values.
    Values(ValueRequest),
}

impl FoundRequest {
    /// Which derivative it is.
    pub(crate) fn mode(&self) -> Mode {
        match &self.interface {
            Interface::Slots(descriptor) => descriptor.mode,
            Interface::Values(values) => values.mode,
        }
    }

    /// How many shadows come with each argument.
    pub(crate) fn width(&self) -> u32 {
        match &self.interface {
            Interface::Slots(descriptor) => descriptor.width,
            Interface::Values(values) => values.width,
        }
    }

    /// Which sweeps of reverse mode it has.
    pub(crate) fn part(&self) -> Part {
        match &self.interface {
            Interface::Slots(_) => Part::Whole,
            Interface::Values(values) => values.part,
        }
    }

    /// The name of the function that is differentiated, for people.
    pub(crate) fn primal_name(&self) -> &str {
        match &self.interface {
            Interface::Slots(descriptor) => &descriptor.primal,
            Interface::Values(values) => &values.primal,
        }
    }

    /// The name of the derivative, for people.
    pub(crate) fn derivative_name(&self) -> &str {
        match &self.interface {
            Interface::Slots(descriptor) => &descriptor.derivative,
            Interface::Values(values) => &values.derivative,
        }
    }

    /// The name of what the user wants to be differentiated.
    pub(crate) fn shown_name(&self) -> &str {
        let given = self.given.as_ref();
        given.map_or_else(|| self.primal_name(), |given| &given.name)
    }

    /// Where the user asks for it, or the function that it is asked for.
    pub(crate) fn location(&self) -> Option<Location> {
        let given = self.given.as_ref();
        given
            .and_then(|given| given.location.clone())
            .or_else(|| self.written_at())
    }

    /// Whether the function interface asks.
    pub(crate) fn is_of_interface(&self) -> bool {
        self.primal_name().starts_with("ferrozyme::")
    }

    /// Where the request itself stands, which for the function interface is in the library.
    pub(crate) fn written_at(&self) -> Option<Location> {
        match &self.interface {
            Interface::Slots(descriptor) => Some(Location {
                file: descriptor.file.clone(),
                line: descriptor.line,
                column: descriptor.column,
            }),
            Interface::Values(values) => values.location.clone(),
        }
    }

    /// What is asked of the differentiator, for the root.
    pub(crate) fn asked(&self, root: FunctionId) -> diff::Request {
        match &self.interface {
            Interface::Slots(descriptor) => request_for(descriptor, root),
            Interface::Values(values) => values.asked(root),
        }
    }
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
        match read_request(&constants, &layout, foreign, user) {
            Ok(request) => {
                replace_call(context, module, user, &request);
                if !found.contains(&request) {
                    found.push(request);
                }
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
    Ok(FoundRequest {
        symbol: format!("{DERIVATIVE_PREFIX}{:016x}", hasher.finish()),
        primal,
        interface: Interface::Slots(descriptor),
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

/// Where an instruction stands in the source, at the outermost level.
pub(crate) fn location_of<'c>(context: &'c Context, instruction: Value<'c>) -> Option<Location> {
    let place = instruction.source_places(context).pop()?;
    Some(Location {
        file: place.file,
        line: place.line,
        column: place.column,
    })
}
