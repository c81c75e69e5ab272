//! Functions of the program with variable arguments take a `va_list` instead:
//!
//! ```text
//! define double @sum(i32 %n, ...) {                     define double @sum.listed(i32 %n, ptr %given) {
//!   call void @llvm.va_start(ptr %list)           ⇒       memcpy(%list, %given, 24)
//! %s = call double @sum(i32 2, double %x, i32 3)        %s = call double @sum.listed(i32 2, ptr %given)
//! ```
//!
//! The list has the platform's layout (System V, x86-64), so that library functions take it, too. All arguments are in the overflow area: one after the other, in eight bytes each.
//! Functions whose address is taken, larger arguments, and lists from which a value with a larger alignment is taken are left alone; active values are refused there.

use ferrozyme_llvm::{Context, GepFlags, Linkage, Module, Opcode, Place, TypeKind, Value};
use std::collections::HashSet;

/// How far registers are used up in a list without arguments in registers.
const INTEGERS_END: i128 = 48;
const FLOATS_END: i128 = 176;

/// The size of a list and of an argument in it, in bytes, and what lists are aligned to.
const LIST: i128 = 24;
const SLOT: i128 = 8;
const ALIGNMENT: u32 = 8;

/// What the names of functions with lists end in.
pub(crate) const LISTED: &str = ".listed";

/// Gives lists to all functions that are only called.
pub(crate) fn pass_lists<'c>(context: &'c Context, module: Module<'c>) {
    for function in module.functions().collect::<Vec<_>>() {
        if !function.value_type().is_variadic() {
            copy_lists(context, function, None);
            continue;
        }
        if function.is_declaration() {
            continue;
        }
        let calls = function.users();
        if !calls.iter().all(|user| is_plain_call(*user, function)) || rounds_addresses(function) {
            continue;
        }
        let listed = take_list(context, module, function);
        for call in function.users() {
            call_with_list(context, listed, call);
        }
        function.erase();
    }
}

/// Whether a function, or one that it calls, rounds addresses up, as clang does to take something from a list that is aligned to more than a slot.
fn rounds_addresses(function: Value<'_>) -> bool {
    let mut seen = HashSet::from([function]);
    let mut work = vec![function];
    while let Some(function) = work.pop() {
        for call in function.instructions().filter(|one| one.is_call()) {
            if called_intrinsic(call).is_some_and(|name| name.starts_with("llvm.ptrmask")) {
                return true;
            }
            let callee = call.called_function();
            work.extend(callee.filter(|callee| !callee.is_declaration() && seen.insert(*callee)));
        }
    }
    false
}

/// Whether a user is a call whose variable arguments take a slot each.
fn is_plain_call<'c>(user: Value<'c>, function: Value<'c>) -> bool {
    let of = function.value_type();
    if !user.is_instruction()
        || !user.is_call()
        || user.called() != function
        || user.called_type() != of
        || (user.is(Opcode::Call) && user.is_must_tail())
    {
        return false;
    }
    let fixed = of.parameters().len();
    let arguments = user.arguments();
    !arguments.contains(&function)
        && (fixed..arguments.len()).all(|at| {
            let ty = arguments[at].ty();
            let fits = match ty.kind() {
                TypeKind::Integer(bits) => bits <= 64,
                TypeKind::Vector => ty.element().kind() == TypeKind::Float && ty.length() == 2,
                kind => matches!(kind, TypeKind::Pointer | TypeKind::Double),
            };
            fits && user
                .attribute(Place::Parameter(at as u32), "byval")
                .is_none()
        })
}

/// The function with a list, which takes over the body.
fn take_list<'c>(context: &'c Context, module: Module<'c>, function: Value<'c>) -> Value<'c> {
    let of = function.value_type();
    let mut parameters = of.parameters();
    let fixed = parameters.len() as u32;
    parameters.push(context.pointer());
    let name = format!("{}{LISTED}", function.name());
    let listed = module.add_function(&name, of.result().function(&parameters, false));
    listed.set_linkage(Linkage::Internal);
    listed.set_subprogram(function.subprogram(context));
    function.set_subprogram(None);
    listed.set_personality(function.personality());
    let places = [Place::Function, Place::Result].into_iter();
    for place in places.chain((0..fixed).map(Place::Parameter)) {
        for attribute in function.attributes(place) {
            listed.add_attribute(place, attribute);
        }
    }
    for index in 0..fixed {
        function
            .parameter(index)
            .replace_uses_with(listed.parameter(index));
    }
    // The body follows a block that is needed until there is another.
    let before = context.append_block(listed, "before");
    let mut last = before;
    for block in function.blocks() {
        block.move_after(last);
        last = block;
    }
    listed.erase_blocks(&[before]);

    copy_lists(context, listed, Some(listed.parameter(fixed)));
    listed
}

/// Turns what is done with lists into what it is on this platform: a list is copied, and its end is nothing.
fn copy_lists<'c>(context: &'c Context, function: Value<'c>, given: Option<Value<'c>>) {
    let builder = context.builder();
    for instruction in function.instructions().collect::<Vec<_>>() {
        let Some(name) = called_intrinsic(instruction) else {
            continue;
        };
        let from = match (name.split('.').nth(1), given) {
            (Some("va_start"), Some(given)) => given,
            (Some("va_copy"), _) => instruction.arguments()[1],
            (Some("va_end"), _) => {
                instruction.erase();
                continue;
            }
            _ => continue,
        };
        builder.before(instruction);
        let to = instruction.arguments()[0];
        let size = context.integer(64).constant(LIST);
        builder.copy(to, ALIGNMENT, from, ALIGNMENT, size);
        instruction.erase();
    }
}

fn called_intrinsic(instruction: Value<'_>) -> Option<String> {
    match instruction.is(Opcode::Call) {
        true => instruction.called_intrinsic(),
        false => None,
    }
}

/// Puts the variable arguments of a call into memory, and calls the function with the list.
fn call_with_list<'c>(context: &'c Context, listed: Value<'c>, call: Value<'c>) {
    let Some(entry) = call
        .block()
        .and_then(|block| block.function().instructions().next())
    else {
        return;
    };
    let fixed = listed.parameter_count() - 1;
    let arguments = call.arguments();
    let (kept, variable) = arguments.split_at(fixed as usize);
    let (number, address) = (context.integer(32), context.pointer());
    let slots = context.integer(64).array(variable.len().max(1) as u64);
    let list = context.structure(&[number, number, address, address], false);

    let builder = context.builder();
    builder.before(entry);
    let memory = builder.alloca(slots).set_alignment(ALIGNMENT);
    let given = builder.alloca(list).set_alignment(ALIGNMENT);
    builder.before(call);
    let at = |base: Value<'c>, offset: i128| {
        let offset = context.integer(64).constant(offset);
        builder.offset(base, offset, GepFlags::NONE)
    };
    for (index, argument) in (0..).zip(variable) {
        builder.store(*argument, at(memory, index * SLOT));
    }
    builder.store(number.constant(INTEGERS_END), at(given, 0));
    builder.store(number.constant(FLOATS_END), at(given, 4));
    builder.store(memory, at(given, 8));
    builder.store(address.zero(), at(given, 16));
    let mut passed = kept.to_vec();
    passed.push(given);
    let new = match call.is(Opcode::Invoke) {
        true => builder.invoke(
            listed.value_type(),
            listed,
            &passed,
            call.normal_destination(),
            call.unwind_destination(),
        ),
        false => builder.call_function(listed, &passed),
    };
    new.set_debug_location(call.debug_location(context));
    for place in (0..fixed).map(Place::Parameter) {
        for attribute in call.attributes(place) {
            new.add_attribute(place, attribute);
        }
    }
    if call.is_used() {
        call.replace_uses_with(new);
    }
    call.erase();
}
