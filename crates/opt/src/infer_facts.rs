//! Infers `readonly` pointer parameters from the bodies of functions, and the facts of [`infer_effects`].
//!
//! ```text
//! func @first(%x: ptr) -> (f64) {          func @first(%x: ptr readonly) -> (f64) {
//!   %a = load f64 %x align 8           →     %a = load f64 %x align 8
//!   return %a                                return %a
//! }                                        }
//! ```
//!
//! A parameter is `readonly` if nothing is written or freed through a pointer that may be based on it, here or in a callee that
//! it is passed to. Recursive functions are assumed `readonly` until a write is found. A parameter that is
//! stored to memory is not, since a loaded pointer may be based on it.

use crate::alias::Aliases;
use crate::infer_effects::infer_effects;
use ferrozyme_ir::{
    Constant, FunctionId, Module, Op, Opcode, Payload, Symbol, Type, Value, all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A parameter of a function.
type Place = (FunctionId, usize);

/// Marks parameters of a function and of all that it calls `readonly` where that is so, and the functions with what memory they
/// touch; says how many facts are new.
pub fn infer_facts(module: &mut Module, function: FunctionId) -> usize {
    let functions = reachable(module, function);
    // Where a pointer goes: for each parameter, whether it is written through, and to which parameters of callees it is passed.
    let mut written: FxHashMap<Place, bool> = FxHashMap::default();
    let mut passed: Vec<(Place, Place)> = Vec::new();
    for &id in &functions {
        examine(module, id, &mut written, &mut passed);
    }
    // Callers write through the pointers that their callees write through.
    loop {
        let before = written.values().filter(|flag| **flag).count();
        for (from, to) in &passed {
            if written.get(to).copied().unwrap_or(true) {
                written.insert(*from, true);
            }
        }
        if written.values().filter(|flag| **flag).count() == before {
            break;
        }
    }
    let mut changes = 0;
    for ((id, index), flag) in written {
        let facts = &mut module.functions[id].params[index].facts;
        if !flag && !facts.readonly {
            facts.readonly = true;
            changes += 1;
        }
    }
    // Most callees come after their callers, and their facts help.
    for _ in 0..ROUNDS {
        let found: usize = functions
            .iter()
            .rev()
            .map(|&id| infer_effects(module, id))
            .sum();
        changes += found;
        if found == 0 {
            break;
        }
    }
    changes
}

/// Number of rounds in which facts of callees are propagated to callers.
const ROUNDS: usize = 4;

/// A function and all functions with bodies that it can reach: those that it calls, and those whose addresses it knows.
fn reachable(module: &Module, function: FunctionId) -> Vec<FunctionId> {
    let mut found = vec![function];
    let mut seen = FxHashSet::from_iter([function]);
    let mut seen_globals = FxHashSet::default();
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        next += 1;
        let data = &module.functions[id];
        let mut symbols: Vec<Symbol> = Vec::new();
        for op in all_ops(data) {
            if let Payload::Callee(callee) = data.ops[op].payload {
                symbols.push(Symbol::Function(callee));
            }
            for &operand in &data.ops[op].operands {
                match data.constant_of(operand) {
                    Some(Constant::Function(function)) => symbols.push(Symbol::Function(*function)),
                    Some(Constant::Global(global)) => symbols.push(Symbol::Global(*global)),
                    _ => {}
                }
            }
        }
        while let Some(symbol) = symbols.pop() {
            match symbol {
                Symbol::Function(function) if seen.insert(function) => found.push(function),
                Symbol::Global(global) if seen_globals.insert(global) => {
                    let held = &module.globals[global].relocations;
                    symbols.extend(held.iter().map(|(_, symbol)| *symbol));
                }
                _ => {}
            }
        }
    }
    found.retain(|&id| module.functions[id].body.is_some());
    found
}

fn examine(
    module: &Module,
    id: FunctionId,
    written: &mut FxHashMap<Place, bool>,
    passed: &mut Vec<(Place, Place)>,
) {
    let function = &module.functions[id];
    let aliases = Aliases::new(module, function);
    let params: FxHashMap<Value, usize> = function
        .arguments()
        .iter()
        .enumerate()
        .filter(|&(_, &arg)| function.ty(arg) == Type::PTR)
        .map(|(index, &arg)| (arg, index))
        .collect();
    for &index in params.values() {
        written.entry((id, index)).or_insert(false);
    }
    for op in all_ops(function) {
        let data = &function.ops[op];
        if data.opcode == Opcode::Call {
            examine_call(module, id, op, &aliases, &params, written, passed);
            continue;
        }
        for (position, &operand) in data.operands.iter().enumerate() {
            if function.ty(operand).is_ptr() && !is_harmless(data.opcode, position) {
                for index in parameters_behind(&aliases, &params, operand) {
                    written.insert((id, index), true);
                }
            }
        }
    }
}

/// Whether an operation with a pointer at this place neither writes through it nor lets it get out of sight.
fn is_harmless(opcode: Opcode, position: usize) -> bool {
    match opcode {
        Opcode::Load | Opcode::Icmp | Opcode::Offset | Opcode::Exclusive | Opcode::Select => true,
        Opcode::Copy | Opcode::Move => position == 1,
        Opcode::Contract => position != 0,
        Opcode::For | Opcode::Loop | Opcode::Yield | Opcode::Again => true,
        _ => false,
    }
}

fn examine_call(
    module: &Module,
    id: FunctionId,
    op: Op,
    aliases: &Aliases<'_>,
    params: &FxHashMap<Value, usize>,
    written: &mut FxHashMap<Place, bool>,
    passed: &mut Vec<(Place, Place)>,
) {
    let function = aliases.function();
    let data = &function.ops[op];
    let Payload::Callee(callee) = data.payload else {
        return;
    };
    let target = &module.functions[callee];
    for (position, &arg) in data.operands.iter().enumerate() {
        if !function.ty(arg).is_ptr() || target.params[position].facts.readonly {
            continue;
        }
        for index in parameters_behind(aliases, params, arg) {
            if target.body.is_some() {
                passed.push(((id, index), (callee, position)));
            } else {
                written.insert((id, index), true);
            }
        }
    }
}

/// The parameters that a pointer may stem from; all of them if that is not known.
fn parameters_behind(
    aliases: &Aliases<'_>,
    params: &FxHashMap<Value, usize>,
    pointer: Value,
) -> Vec<usize> {
    let root = aliases.pointers().root(pointer);
    let bases = aliases.pointers().bases(aliases.function(), root);
    if bases.anything {
        return params.values().copied().collect();
    }
    bases
        .objects
        .iter()
        .filter_map(|object| params.get(object).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::parse_module;

    /// Which parameters of `@f` are found to be only read.
    fn readonly_of(text: &str) -> Vec<bool> {
        let mut module = parse_module(text).expect("the text is well-formed");
        let f = module.function_named("f").expect("the function exists");
        infer_facts(&mut module, f);
        let params = &module.functions[f].params;
        params.iter().map(|param| param.facts.readonly).collect()
    }

    #[test]
    fn reading_is_harmless_and_writing_is_not() {
        let found = readonly_of(
            "func @f(%x: ptr, %y: ptr, %n: i64) {
               %p = offset %x, %n * 8
               %a = load f64 %p align 8
               %q = offset %y, %n * 8
               store f64 %a, %q align 8
               return
             }",
        );
        assert_eq!(found, [true, false, false]);
    }

    #[test]
    fn writes_through_carried_pointers_count() {
        let found = readonly_of(
            "func @f(%x: ptr, %n: i64) {
               %e = for %i: i64 = 0 to %n step 1 with (%p: ptr = %x) {
                 store f64 0.0, %p align 8
                 %q = offset %p, 8
                 yield %q
               }
               return
             }",
        );
        assert_eq!(found, [false, false]);
    }

    #[test]
    fn callees_are_looked_into_and_recursion_is_trusted_until_it_writes() {
        let recursion = |store: &str| {
            readonly_of(&format!(
                "func @f(%x: ptr, %n: i64) -> (f64) {{
                   {store}
                   %m = sub i64 %n, 1
                   %r = call @g(%x, %m)
                   return %r
                 }}
                 func @g(%x: ptr, %n: i64) -> (f64) {{
                   %done = icmp slt i64 %n, 0
                   %r = if %done -> (f64) {{
                     yield 0.0
                   }} else {{
                     %s = call @f(%x, %n)
                     yield %s
                   }}
                   return %r
                 }}"
            ))
        };
        assert_eq!(recursion(""), [true, false]);
        assert_eq!(recursion("store f64 0.0, %x align 8"), [false, false]);
    }

    #[test]
    fn what_gets_out_of_sight_is_not_trusted() {
        let returned = readonly_of("func @f(%x: ptr) -> (ptr) { return %x }");
        assert_eq!(returned, [false]);
        let stored = readonly_of(
            "func @f(%x: ptr, %y: ptr) {
               store ptr %x, %y align 8
               return
             }",
        );
        assert_eq!(stored, [false, false]);
        let unknown = readonly_of(
            "declare @g(ptr)
             func @f(%x: ptr) {
               call @g(%x)
               return
             }",
        );
        assert_eq!(unknown, [false]);
    }
}
