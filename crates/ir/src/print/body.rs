//! Functions, operations and operands.

use super::{
    Names, write_function_facts, write_function_name, write_global_name, write_param_facts,
    write_types,
};
use crate::Location;
use crate::facts::{Flags, Range};
use crate::function::{Constant, Function, Op, OpData, Payload, Region, Value, ValueDef};
use crate::literal::{write_name, write_scalar, write_string};
use crate::module::Module;
use crate::opcode::{Form, Opcode};
use crate::types::Type;
use smallvec::SmallVec;
use std::fmt::{self, Write};

/// Writes one function, or parts of it.
pub(super) struct Printer<'a> {
    module: &'a Module,
    function: &'a Function,
    names: &'a Names,
    pub(super) out: String,
}

impl<'a> Printer<'a> {
    pub(super) fn new(module: &'a Module, function: &'a Function, names: &'a Names) -> Printer<'a> {
        Printer {
            module,
            function,
            names,
            out: String::new(),
        }
    }

    pub(super) fn function(&mut self) -> fmt::Result {
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
            // The inferred range of an argument is printed apart from the caller's promise.
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

    /// Whether a region holds only a `yield` without operands.
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

    pub(super) fn op_line(&mut self, op: Op) -> fmt::Result {
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

    /// The part between the flags and the facts.
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
                if let Payload::Callee(_) = data.payload {
                    return self.call(data);
                }
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
            Opcode::Exclusive => self.operands(&data.operands, " "),
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
                    Payload::Free { align, family } => {
                        if align.bytes() > 1 {
                            write!(self.out, " align {}", align.bytes())?;
                        }
                        family
                    }
                    _ => return self.out.write_str(" ?"),
                };
                if !family.is_empty() {
                    self.out.push_str(" family ");
                    write_string(&mut self.out, family)?;
                }
                Ok(())
            }
            Opcode::Contract => self.contract(data),
            Opcode::Call => self.call(data),
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

    /// `@f(%a, %b)`.
    fn call(&mut self, data: &OpData) -> fmt::Result {
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

    fn contract(&mut self, data: &OpData) -> fmt::Result {
        let Some(contraction) = data.contraction() else {
            return self.out.write_str(" ?");
        };
        self.out
            .push_str(if contraction.add { " add" } else { " set" });
        write!(self.out, " {}", self.ty(contraction.factor))?;
        self.operands(&contraction.arrays, " ")?;
        self.operands(&[contraction.factor], ", ")?;
        for (position, index) in contraction.indices.iter().enumerate() {
            self.out
                .push_str(if position == 0 { " over " } else { ", " });
            self.out.push_str(index.class.name());
            self.operands(&[index.count], " ")?;
            let strides: SmallVec<[Value; 3]> = index.strides.into_iter().flatten().collect();
            self.operands(&strides, " (")?;
            self.out.push(')');
        }
        self.alignment(data)
    }

    fn alignment(&mut self, data: &OpData) -> fmt::Result {
        match data.payload {
            Payload::Align(align) | Payload::Contract { align, .. } => {
                write!(self.out, " align {}", align.bytes())
            }
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

    pub(super) fn operand(&mut self, value: Value) -> fmt::Result {
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

    /// The facts about the results.
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
        // No chain is longer than the table; a malformed one may be cyclic.
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
