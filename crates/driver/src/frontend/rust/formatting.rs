//! The program's own formatting code: implementations of `Display`, `fmt::Write` and the like.
//!
//! Formatting is opaque ([`crate::opaque`]), so its calls of these implementations are not differentiated. That is right for code that writes text.
//! Floats that it changes would keep their old derivatives, so that is refused.

use crate::report::Diagnostic;
use crate::requests::location_of;
use ferrozyme_library::{demangle, is_run_by_formatting};
use ferrozyme_llvm::{Context, Module, Opcode, Place, Type, TypeKind, Value, ValueKind};
use ferrozyme_refusal::{RUST, Refusal};
use std::collections::HashSet;

/// Says which code of the program changes numbers when something is formatted. The module is optimised, so that what is local to a function is in no memory any more.
pub(crate) fn refuse_changes_in_formatting<'c>(
    context: &'c Context,
    module: Module<'c>,
) -> Vec<Diagnostic> {
    let given = module.functions().filter(|function| {
        !function.is_declaration()
            && is_run_by_formatting(&function.name())
            && is_given_away(*function)
    });
    given
        .filter_map(|function| {
            let change = find_change(function)?;
            Some(Diagnostic {
                construct: Some("a number is changed here".to_owned()),
                notes: vec![format!(
                    "formatting in a differentiated function may run `{}`",
                    demangle(&function.name())
                )],
                ..Diagnostic::refused_at(
                    location_of(context, change),
                    &Refusal::ChangedByFormatting,
                    &RUST,
                )
            })
        })
        .collect()
}

/// Whether a function is used other than by calling it.
fn is_given_away(function: Value<'_>) -> bool {
    function
        .users()
        .into_iter()
        .any(|user| !user.is_call() || user.arguments().contains(&function))
}

/// An instruction of a function, or of those that it calls, that changes numbers in memory which is not its own: writes a float, or moves words or more into what it got. Text is moved without alignment.
///
/// A function that it calls may be given the address of a variable to leave its result in. Such a parameter counts as a variable too, unless another call gives it something else.
fn find_change(function: Value<'_>) -> Option<Value<'_>> {
    let mut given: HashSet<Value<'_>> = function.parameters().into_iter().collect();
    let mut work = vec![function];
    let mut seen: HashSet<Value<'_>> = work.iter().copied().collect();
    while let Some(function) = work.pop() {
        for instruction in function.instructions() {
            if instruction.is(Opcode::Store) {
                let (value, to) = (instruction.operand(0), instruction.operand(1));
                let moves = value.is(Opcode::Load) && value.ty().integer_width() == Some(64);
                let changes = holds_floats(value.ty()) && !is_variable(to, &given);
                if changes || moves && is_given_memory(to, &given) {
                    return Some(instruction);
                }
            }
            if instruction.is_call() {
                let called = instruction.called_intrinsic();
                let copies = called.is_some_and(|name| {
                    name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove")
                });
                // What may lie anywhere is text.
                let alignment = instruction.attribute_value(Place::Parameter(0), "align");
                let copies = copies && alignment.is_some_and(|bytes| bytes >= 4);
                if copies && is_given_memory(instruction.operand(0), &given) {
                    return Some(instruction);
                }
                let called = instruction.called();
                let has_body = called.kind() == ValueKind::Function && !called.is_declaration();
                if has_body {
                    let mut learnt = seen.insert(called);
                    let arguments = instruction.arguments().into_iter();
                    for (parameter, argument) in called.parameters().into_iter().zip(arguments) {
                        learnt |= !is_variable(argument, &given) && given.insert(parameter);
                    }
                    if learnt {
                        work.push(called);
                    }
                }
            }
        }
    }
    None
}

/// Whether an address is in a variable of the function, or in one of a caller that only lends it.
fn is_variable<'c>(address: Value<'c>, given: &HashSet<Value<'c>>) -> bool {
    let mut base = address;
    while base.is(Opcode::GetElementPtr) {
        base = base.operand(0);
    }
    address.is_in_variable() || base.kind() == ValueKind::Argument && !given.contains(&base)
}

/// Whether an address is in what a function is given, or in what that leads to.
fn is_given_memory<'c>(mut address: Value<'c>, given: &HashSet<Value<'c>>) -> bool {
    if is_variable(address, given) {
        return false;
    }
    while address.is(Opcode::GetElementPtr) || address.is(Opcode::Load) {
        address = address.operand(0);
    }
    address.kind() == ValueKind::Argument
}

fn holds_floats(ty: Type<'_>) -> bool {
    match ty.kind() {
        TypeKind::Float | TypeKind::Double => true,
        TypeKind::Vector => holds_floats(ty.element()),
        _ => false,
    }
}
