//! The function that is differentiated for a request whose arguments are values: the primal with aggregates as lists of scalars.

use super::arguments::memory_type;
use crate::frontend::adopt_target;
use crate::requests::FoundRequest;
use ferrozyme_convention::signature::{function_type, leaves, put_together, take_apart};
use ferrozyme_llvm::{Context, Module, Place, Value};

/// Defines the root of a request.
pub(super) fn build_value_root<'c>(
    context: &'c Context,
    module: Module<'c>,
    request: &FoundRequest,
) {
    let Some(primal) = module.function(&request.primal) else {
        return;
    };
    let of = primal.value_type();
    let parameters: Option<Vec<_>> = of.parameters().into_iter().map(leaves).collect();
    let (Some(parameters), Some(results)) = (parameters, leaves(of.result())) else {
        return;
    };
    let ty = function_type(context, &parameters.concat(), &results);
    let root = module.add_function(&request.root, ty);
    adopt_target(context, root, primal);
    let mut first = 0;
    for (index, leaves) in (0..).zip(&parameters) {
        // `restrict`
        if leaves.len() == 1 && primal.has_attribute(Place::Parameter(index), "noalias") {
            root.add_attribute(Place::Parameter(first), context.attribute("noalias", 0));
        }
        first += leaves.len() as u32;
    }

    let builder = context.builder();
    builder.at_end(context.append_block(root, "entry"));
    let mut given = root.parameters().into_iter();
    let arguments: Option<Vec<Value<'c>>> = of
        .parameters()
        .into_iter()
        .map(|of| put_together(&builder, of, &mut given))
        .collect();
    let call = builder.call_function(primal, &arguments.unwrap_or_default());
    for index in 0..primal.parameter_count() {
        for name in ["byval", "sret"] {
            if let Some(of) = memory_type(primal, index, name) {
                call.add_attribute(Place::Parameter(index), context.type_attribute(name, of));
            }
        }
    }
    if !primal.is_declaration() {
        call.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
    }
    let values = take_apart(&builder, call);
    let returned = put_together(&builder, ty.result(), &mut values.into_iter());
    match returned.filter(|_| !results.is_empty()) {
        Some(value) => builder.return_value(value),
        None => builder.return_nothing(),
    };
}
