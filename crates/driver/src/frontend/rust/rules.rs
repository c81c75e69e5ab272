//! Adapts rules that write several results through pointers: the adapter returns them, as the differentiator expects.
//!
//! ```text
//! define void @reverse(double %x, double %y, double %seed, i64 %mask, ptr %dx, ptr %dy)
//! ==>
//! define { double, double } @reverse.results(double %x, double %y, double %seed, i64 %mask) {
//!   %dx = alloca double
//!   %dy = alloca double
//!   call void @reverse(double %x, double %y, double %seed, i64 %mask, ptr %dx, ptr %dy)
//!   …                                                ; returns what is there now
//! }
//! ```
//!
//! After inlining and LLVM's `sroa` the memory is gone.

use crate::frontend::adopt_target;
use crate::registrations::{Registration, RegistrationKind, RuleFunction};
use ferrozyme_llvm::{Context, Module, Place, Type, Value};

/// Replaces functions of rules that are defined in the module.
pub(crate) fn return_results<'c>(
    context: &'c Context,
    module: Module<'c>,
    registrations: &mut [Registration],
) {
    for registration in registrations {
        let RegistrationKind::Rule {
            forward,
            augment,
            reverse,
        } = &mut registration.kind
        else {
            continue;
        };
        for rule in [forward, augment, reverse].into_iter().flatten() {
            let function = module.function(&rule.symbol);
            let defined = function.filter(|function| !function.is_declaration());
            if let Some(function) = defined
                && !rule.results.is_empty()
            {
                return_results_of(context, module, rule, function);
            }
        }
    }
}

fn return_results_of<'c>(
    context: &'c Context,
    module: Module<'c>,
    rule: &mut RuleFunction,
    function: Value<'c>,
) {
    let Some(types) = rule
        .results
        .chars()
        .map(|letter| type_of(context, letter))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let mut parameters = function.value_type().parameters();
    let Some(kept) = parameters.len().checked_sub(types.len()) else {
        return;
    };
    parameters.truncate(kept);
    let result = context.structure(&types, false);
    let name = format!("{}.results", rule.symbol);
    let wrapper = module.add_function(&name, result.function(&parameters, false));
    adopt_target(context, wrapper, function);

    let builder = context.builder();
    builder.at_end(context.append_block(wrapper, "entry"));
    let places: Vec<Value<'c>> = types.iter().map(|&ty| builder.alloca(ty)).collect();
    let arguments: Vec<Value<'c>> = (0..kept as u32)
        .map(|index| wrapper.parameter(index))
        .chain(places.iter().copied())
        .collect();
    let call = builder.call_function(function, &arguments);
    call.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
    let mut results = result.poison();
    for (index, (&ty, &place)) in types.iter().zip(&places).enumerate() {
        results = builder.insert_value(results, builder.load(ty, place), index as u32);
    }
    builder.return_value(results);
    rule.symbol = name;
    rule.results.clear();
}

fn type_of(context: &Context, letter: char) -> Option<Type<'_>> {
    match letter {
        's' => Some(context.float()),
        'd' => Some(context.double()),
        'p' => Some(context.pointer()),
        _ => None,
    }
}
