//! Finds indirect calls whose target comes with an argument, or is in a global that other code can change.
//!
//! The shadow of a function's address is the address of a table of its derivatives. Shadows that users make have no such tables: the
//! shadow of a struct with a function pointer holds the function itself, the shadow of a trait object the vtable of the primal.
//!
//! ```text
//! func @f(%layer: ptr, %x: f64) -> (f64) {
//!   %g = load ptr %layer align 8            ; the caller's, as is its shadow
//!   %y = call_indirect %g(f64 %x) -> (f64)
//!   return %y
//! }
//! ```

use crate::activity::reachable_from;
use crate::error::Error;
use crate::objects::{Class, Objects, ObjectsCache, Source};
use crate::request::{Activity, Request};
use ferrozyme_ir::{
    self as ir, Builder, IntPredicate, Module, Opcode, Scalar, Type, Value, returning_ops,
};
use ferrozyme_refusal::Refusal;
use rustc_hash::FxHashSet;

/// Says why a request cannot be met if nobody gives tables of derivatives: something calls code whose address comes with an argument that has a
/// shadow, or with a global.
///
/// # Errors
/// If there is such a call.
pub fn refuse_given_code(module: &Module, request: &Request) -> Result<(), Error> {
    let function = &module.functions[request.function];
    if function.body.is_none() {
        return Ok(());
    }
    let mut cache = ObjectsCache::new();
    let objects = Objects::analyse(module, request.function, &mut cache, None);
    let given = given_code(module, &objects, request);
    if given.is_empty() {
        return Ok(());
    }
    let is_given = |value| {
        objects
            .class_of(function, value)
            .is_some_and(|(class, _)| given.contains(&class))
    };
    let call = returning_ops(function).into_iter().find(|&op| {
        let data = &function.ops[op];
        data.opcode == Opcode::CallIndirect && is_given(data.target())
    });
    Err(Error::found(module, function, call, Refusal::GivenCode))
}

/// Stops the program where the shadow of a function's address is no table of derivatives: shadows that were made by hand hold the address itself, or nothing.
pub(crate) fn stop_without_table(b: &mut Builder<'_>, function: Value, table: Value) {
    let null = b.zero(Type::PTR);
    let same = b.icmp(IntPredicate::Eq, table, function);
    let none = b.icmp(IntPredicate::Eq, table, null);
    let is_no_table = b.binary(Opcode::Or, same, none);
    let (_, then_region, else_region) = b.if_else(is_no_table, &[]);
    b.inside(then_region, |b| {
        b.trap(&Refusal::NoTableBehindShadow.stop_text());
    });
    b.inside(else_region, |b| {
        b.yields(&[]);
    });
}

/// The code that is called and that arguments with shadows lead to, or globals that can change.
fn given_code(module: &Module, objects: &Objects, request: &Request) -> FxHashSet<Class> {
    let params = &module.functions[request.function].params;
    // Whatever else lies behind the same pointers, memory of numbers alone leads nowhere.
    let may_hold_pointers = |param: &ir::Param| {
        let layout = param.facts.layout.as_ref();
        layout.is_none_or(|layout| layout.fields.iter().any(|f| f.scalar == Scalar::Ptr))
    };
    let is_given = |class: &Class| {
        objects.sources(*class).any(|source| match source {
            Source::Param(index) => {
                let index = index as usize;
                request.args.get(index) == Some(&Activity::Duplicated)
                    && params.get(index).is_none_or(may_hold_pointers)
            }
            // That of globals which start without derivatives in every call is looked at where it is known whether it takes part (`report_shared_globals`).
            Source::Global(id) => !module.globals[id].constant && !module.globals[id].shared,
            _ => false,
        })
    };
    let roots: Vec<Class> = objects.classes().filter(is_given).collect();
    let mut found = FxHashSet::default();
    for root in roots {
        let reached = reachable_from(objects, root).into_iter();
        found.extend(reached.filter(|&class| objects.is_called(class)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::parse_module;

    const LAYER: &str = "
        func @layer(%layer: ptr, %x: f64) -> (f64) {
          %f = load ptr %layer align 8
          %y = call_indirect %f(f64 %x) -> (f64)
          return %y
        }
        func @outer(%layers: ptr, %x: f64) -> (f64) {
          %layer = load ptr %layers align 8
          %y = call @layer(%layer, %x)
          return %y
        }
        func @numbers(%x: ptr layout [f64], %has: i1) -> (f64) {
          %layer = stack 8 align 8
          store ptr @square, %layer align 8
          %either = select ptr %has, %x, %layer
          %a = load f64 %x align 8
          %y = call @layer(%either, %a)
          return %y
        }
        func @own(%x: f64) -> (f64) {
          %layer = stack 8 align 8
          store ptr @square, %layer align 8
          %y = call @layer(%layer, %x)
          return %y
        }
        func @square(%x: f64) -> (f64) {
          %y = fmul f64 %x, %x
          return %y
        }
        global @chosen: 8 bytes align 8 = zero { 0: @square }
        global @fixed: 8 bytes align 8 const = zero { 0: @square }
        func @global(%x: f64) -> (f64) {
          %y = call @layer(@chosen, %x)
          return %y
        }
        func @constant(%x: f64) -> (f64) {
          %y = call @layer(@fixed, %x)
          return %y
        }";

    #[test]
    fn code_of_globals_is_found() {
        let module = parse_module(LAYER).expect("it is well-formed");
        for (name, given) in [("global", true), ("constant", false)] {
            let function = module.function_named(name).expect("it is there");
            let request = Request::usual(&module, function);
            let refused = refuse_given_code(&module, &request).is_err();
            assert_eq!(refused, given, "{name}");
        }
    }

    #[test]
    fn code_of_arguments_is_found_through_memory_and_calls() {
        let module = parse_module(LAYER).expect("it is well-formed");
        for (name, given) in [
            ("layer", true),
            ("outer", true),
            ("own", false),
            ("numbers", false),
        ] {
            let function = module.function_named(name).expect("it is there");
            let mut request = Request::usual(&module, function);
            assert_eq!(
                refuse_given_code(&module, &request).is_err(),
                given,
                "{name}"
            );
            request.args.fill(Activity::Const);
            assert_eq!(refuse_given_code(&module, &request), Ok(()), "{name}");
        }
    }
}
