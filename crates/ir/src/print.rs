//! Writes the text form of the IR.
//!
//! The text parses back ([`parse`](mod@crate::parse)) to the same module, which prints as the same text. A malformed module
//! prints too, with `?` where something is missing, because error messages show it.
//!
//! A named value prints as its name; where two values of a function have the same name, the later one gets `_1`, `_2`,
//! …. Values without a name are numbered in the order of the text.

mod body;
mod names;

pub use self::names::Names;
pub(crate) use self::names::is_number;

use self::body::Printer;
use crate::GlobalId;
use crate::facts::{FunctionFacts, MemoryEffect, ParamFacts};
use crate::function::{Function, Op, Value};
use crate::literal::{write_name, write_string};
use crate::module::{FunctionId, Global, Module, Symbol};
use crate::types::Type;
use std::fmt::{self, Write};

/// A whole module.
pub fn print_module(module: &Module) -> String {
    let mut out = String::new();
    write_module(&mut out, module).expect(INFALLIBLE);
    out
}

/// One function.
pub fn print_function(module: &Module, function: FunctionId) -> String {
    let mut out = String::new();
    write_function(&mut out, module, &module.functions[function]).expect(INFALLIBLE);
    out
}

/// One operation on one line, its regions as `{ … }`: for messages.
///
/// It takes time proportional to the function's size; to print many operations, use [`print_op_with`].
pub fn print_op(module: &Module, function: &Function, op: Op) -> String {
    print_op_with(module, function, &Names::of(function), op)
}

/// As [`print_op`], with the names of the function's values.
pub fn print_op_with(module: &Module, function: &Function, names: &Names, op: Op) -> String {
    let mut printer = Printer::new(module, function, names);
    printer.op_line(op).expect(INFALLIBLE);
    printer.out
}

/// A value as an operand: its name, or the constant that it is.
pub fn print_value(module: &Module, function: &Function, names: &Names, value: Value) -> String {
    let mut printer = Printer::new(module, function, names);
    printer.operand(value).expect(INFALLIBLE);
    printer.out
}

const INFALLIBLE: &str = "writing into a string does not fail";

fn write_module(out: &mut String, module: &Module) -> fmt::Result {
    for (index, file) in module.files.iter().enumerate() {
        write!(out, "file {index} ")?;
        write_string(out, file)?;
        out.push('\n');
    }
    separate(out);
    for global in module.globals.values() {
        write_global(out, module, global)?;
    }
    let mut after_declaration = false;
    for function in module.functions.values() {
        let is_declaration = function.body.is_none();
        if !(is_declaration && after_declaration) {
            separate(out);
        }
        after_declaration = is_declaration;
        write_function(out, module, function)?;
    }
    separate(out);
    let mut rules: Vec<_> = module.rules.iter().collect();
    rules.sort_by_key(|(function, _)| **function);
    for (&function, rule) in rules {
        out.push_str("rule ");
        write_function_name(out, module, function)?;
        for (mode, derivative) in [
            ("forward", rule.forward),
            ("augment", rule.augment),
            ("reverse", rule.reverse),
        ] {
            if let Some(derivative) = derivative {
                write!(out, " {mode} ")?;
                write_function_name(out, module, derivative)?;
            }
        }
        out.push('\n');
    }
    // An empty last section leaves a line behind.
    if out.ends_with("\n\n") {
        out.pop();
    }
    Ok(())
}

/// Starts a new paragraph, unless this is the start of one.
fn separate(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

fn write_global(out: &mut String, module: &Module, global: &Global) -> fmt::Result {
    out.push_str("global ");
    write_name(out, '@', &global.name)?;
    write!(
        out,
        ": {} bytes align {}",
        global.size,
        global.align.bytes()
    )?;
    if global.constant {
        out.push_str(" const");
    }
    if global.inactive {
        out.push_str(" inactive");
    }
    if global.shared {
        out.push_str(" shared");
    }
    if global.thread_local {
        out.push_str(" thread_local");
    }
    for (index, part) in global.parts.iter().enumerate() {
        write!(out, "{} {part}", if index == 0 { " parts" } else { "," })?;
    }
    if let Some(layout) = &global.layout {
        write!(out, " layout {layout}")?;
    }
    match global.bytes.as_deref() {
        None => out.push_str(" external"),
        Some([]) => out.push_str(" = zero"),
        Some(bytes) => {
            out.push_str(" = x\"");
            for byte in bytes {
                write!(out, "{byte:02x}")?;
            }
            out.push('"');
        }
    }
    for (index, (offset, symbol)) in global.relocations.iter().enumerate() {
        out.push_str(if index == 0 { " { " } else { ", " });
        write!(out, "{offset}: ")?;
        match *symbol {
            Symbol::Function(function) => write_function_name(out, module, function)?,
            Symbol::Global(global) => write_global_name(out, module, global)?,
        }
    }
    if !global.relocations.is_empty() {
        out.push_str(" }");
    }
    out.push('\n');
    Ok(())
}

fn write_function_name(out: &mut String, module: &Module, function: FunctionId) -> fmt::Result {
    match module.functions.get(function) {
        Some(function) => write_name(out, '@', &function.name),
        None => write!(out, "@?{function}"),
    }
}

fn write_global_name(out: &mut String, module: &Module, global: GlobalId) -> fmt::Result {
    match module.globals.get(global) {
        Some(global) => write_name(out, '@', &global.name),
        None => write!(out, "@?{global}"),
    }
}

fn write_function(out: &mut String, module: &Module, function: &Function) -> fmt::Result {
    let names = Names::of(function);
    let mut printer = Printer::new(module, function, &names);
    std::mem::swap(&mut printer.out, out);
    printer.function()?;
    std::mem::swap(&mut printer.out, out);
    Ok(())
}

fn write_types(out: &mut String, types: impl IntoIterator<Item = Type>) -> fmt::Result {
    let mut separator = " -> (";
    for ty in types {
        write!(out, "{separator}{ty}")?;
        separator = ", ";
    }
    if separator == ", " {
        out.push(')');
    }
    Ok(())
}

fn write_param_facts(out: &mut String, facts: &ParamFacts) -> fmt::Result {
    for (holds, word) in [
        (facts.noalias, " noalias"),
        (facts.readonly, " readonly"),
        (facts.writeonly, " writeonly"),
        (facts.nocapture, " nocapture"),
        (facts.discarded, " discarded"),
    ] {
        if holds {
            out.push_str(word);
        }
    }
    if facts.align.bytes() > 1 {
        write!(out, " align {}", facts.align.bytes())?;
    }
    if let Some(range) = &facts.range {
        write!(out, " range {range}")?;
    }
    if let Some(layout) = &facts.layout {
        write!(out, " layout {layout}")?;
    }
    Ok(())
}

fn write_function_facts(out: &mut String, facts: &FunctionFacts) {
    out.push_str(match facts.memory {
        MemoryEffect::None => " memory(none)",
        MemoryEffect::Read => " memory(read)",
        MemoryEffect::Args => " memory(args)",
        MemoryEffect::Any => "",
    });
    for (holds, word) in [
        (facts.noreturn, " noreturn"),
        (facts.willreturn, " willreturn"),
        (facts.inactive, " inactive"),
        (facts.writes_constants, " writes_constants"),
        (facts.noinline, " noinline"),
    ] {
        if holds {
            out.push_str(word);
        }
    }
    if let Some(level) = facts.level {
        out.push_str(" level(");
        out.push_str(level.name());
        out.push(')');
    }
}
