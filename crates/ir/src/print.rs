//! Writes the text form of the IR.
//!
//! What is written parses back ([`parse`](mod@crate::parse)) to the same module, and that prints as the same text. A malformed module
//! prints too, with `?` where something is missing, because error messages show what is wrong.
//!
//! A named value prints as its name; where two values of a function have the same name, the later one gets `_1`, `_2`,
//! …. Values without a name are numbered in the order of the text.

use crate::facts::{Flags, FunctionFacts, MemoryEffect, ParamFacts, Range};
use crate::function::{Constant, Function, Op, OpData, Payload, Region, Value, ValueDef};
use crate::literal::{write_name, write_scalar, write_string};
use crate::module::{FunctionId, Global, Module, Symbol};
use crate::opcode::{Form, Opcode};
use crate::types::Type;
use crate::{GlobalId, Location};
use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
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
/// It takes time in the size of the function; whoever prints many operations uses [`print_op_with`].
pub fn print_op(module: &Module, function: &Function, op: Op) -> String {
    print_op_with(module, function, &Names::of(function), op)
}

/// As [`print_op`], with the names of the function's values at hand.
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

/// What each value of a function is called in the text form, as of when this was computed.
#[derive(Clone, Debug)]
pub struct Names {
    names: SecondaryMap<Value, Option<Box<str>>>,
}

impl Names {
    /// Computes the names of all values that the function's body defines.
    pub fn of(function: &Function) -> Names {
        let mut naming = Naming {
            function,
            names: SecondaryMap::with_capacity(function.values.len()),
            taken: FxHashSet::default(),
            next_suffix: FxHashMap::default(),
            next_number: 0,
            visited: SecondaryMap::new(),
        };
        if let Some(body) = function.body {
            naming.region(body);
        }
        Names {
            names: naming.names,
        }
    }

    /// The name with its `%`; none for constants and for values that the body does not define.
    pub fn get(&self, value: Value) -> Option<&str> {
        self.names[value].as_deref()
    }
}

const INFALLIBLE: &str = "writing into a string does not fail";

struct Naming<'a> {
    function: &'a Function,
    names: SecondaryMap<Value, Option<Box<str>>>,
    taken: FxHashSet<Box<str>>,
    /// From which suffix on to look for a free one, for each name that occurs more than once.
    next_suffix: FxHashMap<&'a str, u32>,
    next_number: u32,
    /// In a malformed function a region may be held twice.
    visited: SecondaryMap<Region, bool>,
}

impl<'a> Naming<'a> {
    fn region(&mut self, region: Region) {
        let Some(data) = self.function.regions.get(region) else {
            return;
        };
        if std::mem::replace(&mut self.visited[region], true) {
            return;
        }
        for &argument in &data.args {
            self.value(argument);
        }
        for &op in &data.ops {
            if let Some(data) = self.function.ops.get(op) {
                for &result in &data.results {
                    self.value(result);
                }
                for &inner in &data.regions {
                    self.region(inner);
                }
            }
        }
    }

    fn value(&mut self, value: Value) {
        let function = self.function;
        let Some(data) = function.values.get(value) else {
            return;
        };
        let mut text = String::new();
        match data.name.as_deref() {
            Some(name) if !is_number(name) => {
                let unique = self.unique(name);
                write_name(&mut text, '%', &unique).expect(INFALLIBLE);
            }
            _ => {
                write!(text, "%{}", self.next_number).expect(INFALLIBLE);
                self.next_number += 1;
            }
        }
        self.names[value] = Some(text.into());
    }

    fn unique(&mut self, name: &'a str) -> Box<str> {
        let mut unique: Box<str> = name.into();
        if self.taken.contains(&unique) {
            let suffix = self.next_suffix.entry(name).or_insert(1);
            while self.taken.contains(&unique) {
                unique = format!("{name}_{suffix}").into();
                *suffix += 1;
            }
        }
        self.taken.insert(unique.clone());
        unique
    }
}

/// Whether a name is one of the numbers that stand for values without a name.
pub(crate) fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

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
        MemoryEffect::Any => "",
    });
    for (holds, word) in [
        (facts.noreturn, " noreturn"),
        (facts.willreturn, " willreturn"),
        (facts.inactive, " inactive"),
        (facts.noinline, " noinline"),
    ] {
        if holds {
            out.push_str(word);
        }
    }
}

struct Printer<'a> {
    module: &'a Module,
    function: &'a Function,
    names: &'a Names,
    out: String,
}

impl<'a> Printer<'a> {
    fn new(module: &'a Module, function: &'a Function, names: &'a Names) -> Printer<'a> {
        Printer {
            module,
            function,
            names,
            out: String::new(),
        }
    }

    fn function(&mut self) -> fmt::Result {
        let function = self.function;
        self.out.push_str(match function.body {
            Some(_) => "func ",
            None => "declare ",
        });
        write_name(&mut self.out, '@', &function.name)?;
        self.out.push('(');
        for (index, param) in function.params.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            let argument = function
                .body
                .and_then(|body| function.regions.get(body)?.args.get(index).copied());
            if let Some(argument) = argument {
                self.name(argument)?;
                self.out.push_str(": ");
            }
            write!(self.out, "{}", param.ty)?;
            write_param_facts(&mut self.out, &param.facts)?;
            // What passes found out of the argument stands apart from what the caller promises.
            if let Some(range) = argument.and_then(|argument| self.range_of(argument)) {
                write!(self.out, " within {range}")?;
            }
        }
        self.out.push(')');
        write_types(&mut self.out, function.results.iter().copied())?;
        write_function_facts(&mut self.out, &function.facts);
        if let Some(body) = function.body {
            self.out.push(' ');
            self.region(body, 0)?;
        }
        self.out.push('\n');
        Ok(())
    }

    /// A region in braces, whose operations are indented one level more than `level`.
    fn region(&mut self, region: Region, level: usize) -> fmt::Result {
        self.out.push_str("{\n");
        if let Some(data) = self.function.regions.get(region) {
            for &op in &data.ops {
                self.indent(level + 1);
                self.op_head(op)?;
                self.op_regions(op, level + 1)?;
                self.out.push('\n');
            }
        }
        self.indent(level);
        self.out.push('}');
        Ok(())
    }

    fn indent(&mut self, level: usize) {
        for _ in 0..level {
            self.out.push_str("  ");
        }
    }

    /// The regions of an operation, from the brace behind its head on.
    fn op_regions(&mut self, op: Op, level: usize) -> fmt::Result {
        let Some(data) = self.function.ops.get(op) else {
            return Ok(());
        };
        match data.opcode {
            Opcode::Switch => {
                self.out.push_str(" {\n");
                for (index, &region) in data.regions.iter().enumerate() {
                    self.indent(level + 1);
                    self.case_head(data, index)?;
                    self.region(region, level + 1)?;
                    self.out.push('\n');
                }
                self.indent(level);
                self.out.push('}');
            }
            _ => {
                for (index, &region) in data.regions.iter().enumerate() {
                    let is_else = data.opcode == Opcode::If && index == 1;
                    if is_else && self.is_empty(region) {
                        continue;
                    }
                    self.out.push_str(if is_else { " else " } else { " " });
                    self.region(region, level)?;
                }
            }
        }
        Ok(())
    }

    fn case_head(&mut self, data: &OpData, index: usize) -> fmt::Result {
        let Payload::Cases(cases) = &data.payload else {
            return self.out.write_str("case ? ");
        };
        match cases.get(index) {
            Some(values) => {
                self.out.push_str("case ");
                for (index, value) in values.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(self.out, "{separator}{value}")?;
                }
                if !values.is_empty() {
                    self.out.push(' ');
                }
                Ok(())
            }
            None => self.out.write_str("default "),
        }
    }

    /// Whether a region holds nothing but a `yield` that says nothing.
    fn is_empty(&self, region: Region) -> bool {
        let Some([only]) = self.function.regions.get(region).map(|data| &data.ops[..]) else {
            return false;
        };
        self.function.ops.get(*only).is_some_and(|data| {
            data.opcode == Opcode::Yield
                && data.operands.is_empty()
                && data.results.is_empty()
                && data.flags.is_empty()
                && data.location.is_none()
        })
    }

    fn op_line(&mut self, op: Op) -> fmt::Result {
        self.op_head(op)?;
        if let Some(data) = self.function.ops.get(op)
            && !data.regions.is_empty()
        {
            self.out.push_str(" { … }");
        }
        Ok(())
    }

    /// Everything of an operation but its regions.
    #[inline(never)]
    fn op_head(&mut self, op: Op) -> fmt::Result {
        let Some(data) = self.function.ops.get(op) else {
            return write!(self.out, "?{op}");
        };
        for (index, &result) in data.results.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.name(result)?;
        }
        if !data.results.is_empty() {
            self.out.push_str(" = ");
        }
        self.out.push_str(data.opcode.name());
        if data.flags != Flags::NONE {
            write!(self.out, " {}", data.flags)?;
        }
        self.op_parts(data)?;
        self.ranges(data)?;
        if let Some(location) = data.location {
            self.location(location)?;
        }
        Ok(())
    }

    /// What stands between the flags and the facts.
    fn op_parts(&mut self, data: &OpData) -> fmt::Result {
        match data.opcode.form() {
            Form::IntUnary
            | Form::IntBinary
            | Form::FloatUnary
            | Form::FloatBinary
            | Form::FloatTernary
            | Form::FloatAndInt
            | Form::FloatToExponent
            | Form::FloatSplit
            | Form::FloatPair => {
                self.operand_type(data, 0)?;
                self.operands(&data.operands, " ")
            }
            Form::IntCompare | Form::FloatCompare => {
                match data.payload {
                    Payload::IntPredicate(predicate) => write!(self.out, " {}", predicate.name())?,
                    Payload::FloatPredicate(predicate) => {
                        write!(self.out, " {}", predicate.name())?
                    }
                    _ => self.out.push_str(" ?"),
                }
                self.operand_type(data, 0)?;
                self.operands(&data.operands, " ")
            }
            Form::Cast => {
                self.operand_type(data, 0)?;
                self.operands(&data.operands, " ")?;
                self.out.push_str(" to");
                self.result_type(data)
            }
            Form::Terminator => {
                self.operands(&data.operands, " ")?;
                match &data.payload {
                    Payload::Message(message) => {
                        self.out.push(' ');
                        write_string(&mut self.out, message)
                    }
                    _ => Ok(()),
                }
            }
            Form::Special => self.special(data),
            Form::Structured => self.structured(data),
        }
    }

    fn special(&mut self, data: &OpData) -> fmt::Result {
        match data.opcode {
            Opcode::Select => {
                self.operand_type(data, 1)?;
                if let Some(&condition) = data.operands.first() {
                    self.out.push(' ');
                    self.condition(condition)?;
                    self.operands(&data.operands[1..], ", ")?;
                }
                Ok(())
            }
            Opcode::Splat | Opcode::Load => {
                self.result_type(data)?;
                self.operands(&data.operands, " ")?;
                self.alignment(data)
            }
            Opcode::Extract | Opcode::Insert | Opcode::ReduceFadd | Opcode::Store => {
                self.operand_type(data, 0)?;
                self.operands(&data.operands, " ")?;
                self.alignment(data)
            }
            Opcode::AtomicAdd => {
                self.operand_type(data, 1)?;
                self.operands(&data.operands, " ")?;
                self.alignment(data)
            }
            Opcode::Shuffle => {
                self.operand_type(data, 0)?;
                self.operands(&data.operands, " ")?;
                match &data.payload {
                    Payload::Lanes(lanes) => write!(self.out, " {lanes:?}"),
                    _ => self.out.write_str(" [?]"),
                }
            }
            Opcode::Offset => {
                self.operands(&data.operands, " ")?;
                match data.payload {
                    Payload::Scale(1) => Ok(()),
                    Payload::Scale(scale) => write!(self.out, " * {scale}"),
                    _ => self.out.write_str(" * ?"),
                }
            }
            Opcode::Alloc | Opcode::Free => {
                self.operands(&data.operands, " ")?;
                let family = match &data.payload {
                    Payload::Alloc {
                        align,
                        zeroed,
                        family,
                    } => {
                        write!(self.out, " align {}", align.bytes())?;
                        if *zeroed {
                            self.out.push_str(" zeroed");
                        }
                        family
                    }
                    Payload::Family(family) => family,
                    _ => return self.out.write_str(" ?"),
                };
                if !family.is_empty() {
                    self.out.push_str(" family ");
                    write_string(&mut self.out, family)?;
                }
                Ok(())
            }
            Opcode::Call => {
                self.out.push(' ');
                match data.payload {
                    Payload::Callee(callee) => {
                        write_function_name(&mut self.out, self.module, callee)?;
                    }
                    _ => self.out.push('?'),
                }
                self.out.push('(');
                self.operands(&data.operands, "")?;
                self.out.push(')');
                Ok(())
            }
            Opcode::CallIndirect => {
                let (callee, arguments) = match data.operands.split_first() {
                    Some((callee, arguments)) => (&[*callee][..], arguments),
                    None => (&[][..], &[][..]),
                };
                self.operands(callee, " ")?;
                for (index, &argument) in arguments.iter().enumerate() {
                    self.out.push_str(if index == 0 { "(" } else { ", " });
                    write!(self.out, "{} ", self.ty(argument))?;
                    self.operand(argument)?;
                }
                self.out
                    .push_str(if arguments.is_empty() { "()" } else { ")" });
                match &data.payload {
                    Payload::Results(results) => {
                        write_types(&mut self.out, results.iter().copied())
                    }
                    _ => self.out.write_str(" -> ?"),
                }
            }
            _ => {
                self.operands(&data.operands, " ")?;
                self.alignment(data)
            }
        }
    }

    /// The head of an operation with regions.
    fn structured(&mut self, data: &OpData) -> fmt::Result {
        match data.opcode {
            Opcode::If | Opcode::Switch => {
                if data.opcode == Opcode::Switch {
                    self.operand_type(data, 0)?;
                }
                self.operands(&data.operands, " ")?;
                let results = data
                    .results
                    .iter()
                    .map(|&result| self.ty(result))
                    .collect::<Vec<_>>();
                write_types(&mut self.out, results)
            }
            _ => {
                let no_arguments = &[][..];
                let mut arguments = data
                    .regions
                    .first()
                    .and_then(|&region| self.function.regions.get(region))
                    .map_or(no_arguments, |region| &region.args);
                let mut initial = &data.operands[..];
                if data.opcode == Opcode::For {
                    self.out.push(' ');
                    let (counter, carried) = arguments.split_at(arguments.len().min(1));
                    let (bounds, rest) = initial.split_at(initial.len().min(3));
                    self.argument(counter.first().copied())?;
                    for (word, &bound) in [" = ", " to ", " step "].into_iter().zip(bounds) {
                        self.out.push_str(word);
                        self.operand(bound)?;
                    }
                    (arguments, initial) = (carried, rest);
                }
                if arguments.is_empty() && initial.is_empty() {
                    return Ok(());
                }
                self.out.push_str(" with (");
                for index in 0..arguments.len().max(initial.len()) {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.argument(arguments.get(index).copied())?;
                    self.out.push_str(" = ");
                    match initial.get(index) {
                        Some(&initial) => self.operand(initial)?,
                        None => self.out.push('?'),
                    }
                }
                self.out.push(')');
                Ok(())
            }
        }
    }

    /// An argument of a region where it is defined.
    fn argument(&mut self, argument: Option<Value>) -> fmt::Result {
        let Some(argument) = argument else {
            return self.out.write_char('?');
        };
        self.name(argument)?;
        write!(self.out, ": {}", self.ty(argument))?;
        match self.range_of(argument) {
            Some(range) => write!(self.out, " range {range}"),
            None => Ok(()),
        }
    }

    fn operand_type(&mut self, data: &OpData, index: usize) -> fmt::Result {
        match data.operands.get(index) {
            Some(&operand) => write!(self.out, " {}", self.ty(operand)),
            None => self.out.write_str(" ?"),
        }
    }

    fn result_type(&mut self, data: &OpData) -> fmt::Result {
        match data.results.first() {
            Some(&result) => write!(self.out, " {}", self.ty(result)),
            None => self.out.write_str(" ?"),
        }
    }

    /// The type of a value; a malformed operation may name one that does not exist.
    fn ty(&self, value: Value) -> Type {
        self.function
            .values
            .get(value)
            .map_or(Type::PTR, |data| data.ty)
    }

    fn range_of(&self, value: Value) -> Option<Range> {
        self.function.values.get(value)?.range
    }

    fn alignment(&mut self, data: &OpData) -> fmt::Result {
        match data.payload {
            Payload::Align(align) => write!(self.out, " align {}", align.bytes()),
            _ => Ok(()),
        }
    }

    /// Operands, the first of which follows `before`.
    fn operands(&mut self, operands: &[Value], before: &str) -> fmt::Result {
        let mut separator = before;
        for &operand in operands {
            self.out.push_str(separator);
            self.operand(operand)?;
            separator = ", ";
        }
        Ok(())
    }

    fn operand(&mut self, value: Value) -> fmt::Result {
        match self.function.values.get(value).map(|data| &data.def) {
            Some(ValueDef::Constant(constant)) => self.constant(self.ty(value), constant),
            _ => self.name(value),
        }
    }

    /// The condition of a `select`: a vector must be told from a scalar, since the place does not.
    fn condition(&mut self, value: Value) -> fmt::Result {
        let undefined = ValueDef::Constant(Constant::Undef);
        let def = self.function.values.get(value).map(|data| &data.def);
        if def == Some(&undefined) && self.ty(value).is_vector() {
            self.out.write_str("splat(undef)")
        } else {
            self.operand(value)
        }
    }

    fn name(&mut self, value: Value) -> fmt::Result {
        match self.names.get(value) {
            Some(name) => self.out.write_str(name),
            None => write!(self.out, "%?{value}"),
        }
    }

    fn constant(&mut self, ty: Type, constant: &Constant) -> fmt::Result {
        let scalar = ty.scalar();
        let splat = ty.is_vector() && !matches!(constant, Constant::Lanes(_) | Constant::Undef);
        if splat {
            self.out.push_str("splat(");
        }
        match constant {
            Constant::Bits(raw) => write_scalar(&mut self.out, scalar, *raw)?,
            Constant::Lanes(lanes) => {
                self.out.push('<');
                for (index, &lane) in lanes.iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    write_scalar(&mut self.out, scalar, lane)?;
                }
                self.out.push('>');
            }
            Constant::Undef => self.out.push_str("undef"),
            Constant::Global(global) => write_global_name(&mut self.out, self.module, *global)?,
            Constant::Function(function) => {
                write_function_name(&mut self.out, self.module, *function)?;
            }
        }
        if splat {
            self.out.push(')');
        }
        Ok(())
    }

    /// What is known of the results.
    fn ranges(&mut self, data: &OpData) -> fmt::Result {
        if data
            .results
            .iter()
            .all(|&result| self.range_of(result).is_none())
        {
            return Ok(());
        }
        let mut separator = " range ";
        for &result in &data.results {
            self.out.push_str(separator);
            match self.range_of(result) {
                Some(range) => write!(self.out, "{range}")?,
                None => self.out.push('_'),
            }
            separator = ", ";
        }
        Ok(())
    }

    fn location(&mut self, location: Location) -> fmt::Result {
        let mut next = Some(location);
        let mut before = " loc(";
        // No chain is longer than the table; in a malformed one it could go round.
        for _ in 0..=self.module.locations.len() {
            let Some(data) = next.and_then(|location| self.module.locations.get(location)) else {
                break;
            };
            write!(
                self.out,
                "{before}{}:{}:{}",
                data.file, data.line, data.column
            )?;
            before = " from ";
            next = data.inlined_at;
        }
        if before == " from " {
            self.out.push(')');
        }
        Ok(())
    }
}
