//! Verifies the declared facts of a function against its body.
//!
//! ```text
//! func @note(%list: ptr, %memory: ptr nocapture) {
//!   store ptr %memory, %list align 8                  ; @note declares argument 1 `nocapture`, and keeps it
//!   return
//! }
//! ```
//!
//! Callers and LLVM's optimiser trust facts: a false one is a miscompilation far from its cause. Captures, memory effects and termination must
//! follow from the body and from the facts of callees, as [`infer_effects`](crate::infer_effects) infers them. No visible access may contradict `readonly` or `writeonly` of a pointer. Memory behind
//! loaded pointers is not checked, since there the differentiator knows more than a body shows: which of the pointers that it saved are loaded again, say. A front end may know more than its bodies show, so the check is for
//! programs whose facts were inferred, and for their derivatives.

use crate::alias::Aliases;
use crate::infer_effects::Effects;
use ferrozyme_ir::{FunctionId, Module, OpView, Type, Value, all_ops};

/// What functions of a module declare and their bodies do not keep: whose it is, and a sentence.
pub fn check_facts(module: &Module) -> Vec<(FunctionId, String)> {
    let defined = module.functions.keys();
    defined
        .filter(|&id| module.functions[id].body.is_some())
        .flat_map(|id| {
            let found = check_function(module, id).into_iter();
            found.map(move |problem| (id, problem))
        })
        .collect()
}

/// What one function declares and its body does not keep.
fn check_function(module: &Module, id: FunctionId) -> Vec<String> {
    let function = &module.functions[id];
    let aliases = Aliases::new(module, function);
    let effects = Effects::of(module, &aliases);
    let written = touched_parameters(module, &aliases, true);
    let read = touched_parameters(module, &aliases, false);
    let mut found = Vec::new();
    let mut complain = |declared: &str, does: &str| {
        found.push(format!("@{} declares {declared}, {does}", function.name));
    };
    for (index, param) in function.params.iter().enumerate() {
        if param.ty != Type::PTR {
            continue;
        }
        let facts = &param.facts;
        let name = |fact: &str| format!("argument {index} `{fact}`");
        if facts.nocapture && effects.kept[index] {
            complain(&name("nocapture"), "and keeps it");
        }
        if facts.readonly && written[index] {
            complain(&name("readonly"), "and writes through it");
        }
        if facts.writeonly && read[index] {
            complain(&name("writeonly"), "and reads through it");
        }
    }
    let declared = function.facts.memory;
    if !effects.are_within(declared) {
        let does = format!("and has {:?}", effects.memory());
        complain(&format!("the memory effect {declared:?}"), &does);
    }
    if function.facts.willreturn && !effects.returns {
        complain("`willreturn`", "and may stop or run forever");
    }
    if function.facts.noreturn && !function.ends_in_trap(function.body()) {
        complain("`noreturn`", "and returns");
    }
    found
}

/// For each parameter, whether something is seen to be written, or read, through it.
fn touched_parameters(module: &Module, aliases: &Aliases<'_>, writes: bool) -> Vec<bool> {
    let function = aliases.function();
    let mut touched = vec![false; function.params.len()];
    for op in all_ops(function) {
        let through: Vec<Value> = match function.view(op) {
            OpView::Load { address, .. } if !writes => vec![address],
            OpView::Store { address, .. } | OpView::Free { address, .. } if writes => vec![address],
            OpView::Fill { destination, .. } if writes => vec![destination],
            OpView::AtomicAdd { address, .. } => vec![address],
            OpView::Copy {
                destination,
                source,
                ..
            }
            | OpView::Move {
                destination,
                source,
                ..
            } => {
                vec![if writes { destination } else { source }]
            }
            OpView::Contract {
                destination,
                left,
                right,
                add,
                ..
            } => match (writes, add) {
                (true, _) => vec![destination],
                (false, true) => vec![destination, left, right],
                (false, false) => vec![left, right],
            },
            OpView::Call { arguments, callee } => {
                let params = &module.functions[callee].params;
                let given = arguments.iter().zip(params);
                let touching = given.filter(|(_, param)| match writes {
                    true => !param.facts.readonly,
                    false => !param.facts.writeonly,
                });
                touching.map(|(&operand, _)| operand).collect()
            }
            OpView::CallIndirect { arguments, .. } => arguments.to_vec(),
            _ => continue,
        };
        for pointer in through {
            if !function.ty(pointer).is_ptr() {
                continue;
            }
            let root = aliases.pointers().root(pointer);
            if let Some(OpView::Load { .. }) = function.definition(root) {
                continue;
            }
            let bases = aliases.pointers().bases(function, root);
            for (index, argument) in function.arguments().iter().enumerate() {
                touched[index] |= bases.objects.contains(argument);
            }
        }
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::parse_module;

    fn complaints(text: &str) -> Vec<String> {
        let found = check_facts(&parse_module(text).expect("the text is well-formed"));
        found.into_iter().map(|(_, problem)| problem).collect()
    }

    #[test]
    fn what_bodies_keep_is_right() {
        let found = complaints(
            "func @scale(%x: ptr nocapture) memory(args) willreturn {
               %a = load f64 %x align 8
               store f64 %a, %x align 8
               return
             }
             func @first(%x: ptr readonly nocapture, %y: ptr writeonly nocapture) memory(args) willreturn {
               %a = load f64 %x align 8
               store f64 %a, %y align 8
               return
             }",
        );
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn what_bodies_do_not_keep_is_named() {
        let found = complaints(
            "global @g: 8 bytes align 8 = zero
             func @note(%list: ptr, %memory: ptr nocapture) {
               store ptr %memory, %list align 8
               return
             }
             func @same(%x: ptr nocapture) -> (ptr) { return %x }
             func @set(%x: ptr readonly) {
               store f64 0.0, %x align 8
               return
             }
             func @get(%x: ptr writeonly) -> (f64) {
               %a = load f64 %x align 8
               return %a
             }
             func @beyond() memory(args) {
               store f64 0.0, @g align 8
               return
             }
             func @stop(%c: i1) willreturn {
               if %c { trap \"stop\" }
               return
             }
             func @back() noreturn { return }",
        );
        assert_eq!(
            found,
            [
                "@note declares argument 1 `nocapture`, and keeps it",
                "@same declares argument 0 `nocapture`, and keeps it",
                "@set declares argument 0 `readonly`, and writes through it",
                "@get declares argument 0 `writeonly`, and reads through it",
                "@beyond declares the memory effect Args, and has Any",
                "@stop declares `willreturn`, and may stop or run forever",
                "@back declares `noreturn`, and returns",
            ]
        );
    }
}
