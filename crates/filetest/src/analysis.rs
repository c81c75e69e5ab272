//! Analyses of the optimiser as text, for test files and the command line.

use ferrozyme_ir::print::{Names, print_op_with, print_value};
use ferrozyme_ir::{Function, FunctionId, Module, Op, Opcode, Value, all_ops};
use ferrozyme_opt::alias::{Access, Aliases, Footprint};
use ferrozyme_opt::clobbers::Clobbers;
use ferrozyme_opt::indices::Indices;
use ferrozyme_opt::symbolic::Symbolic;
use std::fmt::Write;

/// Writes values, operations and expressions of one function.
struct Writer<'m> {
    module: &'m Module,
    function: &'m Function,
    names: Names,
    text: String,
}

impl<'m> Writer<'m> {
    fn new(module: &'m Module, id: FunctionId) -> Writer<'m> {
        let function = &module.functions[id];
        Writer {
            module,
            function,
            names: Names::of(function),
            text: String::new(),
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn value(&self, value: Value) -> String {
        print_value(self.module, self.function, &self.names, value)
    }

    fn op(&self, op: Op) -> String {
        print_op_with(self.module, self.function, &self.names, op)
            .trim()
            .to_owned()
    }

    fn expression(&self, expression: &Symbolic) -> String {
        let mut text = String::new();
        expression
            .write_with(&mut text, |value| self.value(value))
            .expect("writing to a string does not fail");
        text
    }

    fn access(&self, access: &Access) -> String {
        let root = self.value(access.root);
        let place = match access.offset.is_constant() {
            Some(0) => root,
            _ => match self.expression(&access.offset) {
                negative if negative.starts_with('-') => format!("{root} - {}", &negative[1..]),
                positive => format!("{root} + {positive}"),
            },
        };
        match &access.size {
            Some(size) => format!("{} bytes at {place}", self.expression(size)),
            None => format!("some bytes around {place}"),
        }
    }

    fn footprint(&self, footprint: &Footprint) -> String {
        let mut parts: Vec<String> = footprint
            .accesses
            .iter()
            .map(|access| self.access(access))
            .collect();
        if footprint.elsewhere {
            parts.push("anything that others can reach".to_owned());
        }
        parts.join(", and ")
    }
}

/// Prints each loop with its trip count, and each integer as an expression of its inputs, with its bounds.
pub fn print_indices(module: &Module, id: FunctionId) -> String {
    let mut writer = Writer::new(module, id);
    let function = writer.function;
    let indices = Indices::of(function);
    for op in all_ops(function) {
        if function.ops[op].opcode == Opcode::For {
            print_loop(&mut writer, &indices, op);
        }
        for &result in &function.ops[op].results {
            let ty = function.ty(result);
            if !ty.is_int() || ty.is_vector() {
                continue;
            }
            let expression = writer.expression(&indices.expression(result));
            let limits = limits(&indices, result);
            let line = format!("{} = {expression}{limits}", writer.value(result));
            writer.line(&line);
        }
    }
    writer.text
}

fn print_loop(writer: &mut Writer, indices: &Indices, op: Op) {
    let Some(counted) = indices.counted(op) else {
        return;
    };
    let mut line = format!(
        "for {} = {} to {} step {}",
        writer.value(counted.counter),
        writer.expression(&counted.from),
        writer.expression(&counted.to),
        writer.expression(&counted.step),
    );
    match counted.trip_count() {
        Some(count) => {
            let _ = write!(line, ": {} iterations", writer.expression(&count));
        }
        None => line.push_str(": an unknown number of iterations"),
    }
    line.push_str(&limits(indices, counted.counter));
    writer.line(&line);
}

/// Between which numbers a value lies, where anything is known of that.
fn limits(indices: &Indices, value: Value) -> String {
    let interval = indices.interval_of_value(value);
    let ty = indices.function().ty(value);
    // Bounds that follow from the width of the type are not printed, nor are those that a loop made one smaller.
    let half = 1i128 << (ty.scalar().bits().min(127) - 1);
    let low = interval.lower().filter(|&min| min > -half + 1);
    let high = interval.upper().filter(|&max| max < half - 2);
    match (low, high) {
        (None, None) => String::new(),
        (Some(low), None) => format!(", at least {low}"),
        (None, Some(high)) => format!(", at most {high}"),
        (Some(low), Some(high)) => format!(", in {low}..={high}"),
    }
}

/// Prints what each operation reads and writes, and which of them may alias.
pub fn print_aliases(module: &Module, id: FunctionId) -> String {
    let mut writer = Writer::new(module, id);
    let function = writer.function;
    let aliases = Aliases::new(module, function);
    let mut touches: Vec<(Op, bool, Footprint)> = Vec::new();
    for op in all_ops(function) {
        let sides = [(false, aliases.reads(op)), (true, aliases.writes(op))];
        for (writes, footprint) in sides {
            if footprint.is_empty() {
                continue;
            }
            let verb = if writes { "writes" } else { "reads" };
            let line = format!(
                "{}. {verb} {}: {}",
                touches.len() + 1,
                writer.footprint(&footprint),
                writer.op(op)
            );
            writer.line(&line);
            touches.push((op, writes, footprint));
        }
    }
    for (first, a) in touches.iter().enumerate() {
        for (second, b) in touches.iter().enumerate().skip(first + 1) {
            if a.0 != b.0 && (a.1 || b.1) {
                let line = format!(
                    "{} and {} {}",
                    first + 1,
                    second + 1,
                    relation(&aliases, a, b)
                );
                writer.line(&line);
            }
        }
    }
    writer.text
}

fn relation(
    aliases: &Aliases,
    (a, _, footprint_a): &(Op, bool, Footprint),
    (b, _, footprint_b): &(Op, bool, Footprint),
) -> &'static str {
    let mut now = footprint_a.elsewhere || footprint_b.elsewhere;
    let mut later = false;
    for access_a in &footprint_a.accesses {
        for access_b in &footprint_b.accesses {
            let (first, second) = ((*a, access_a), (*b, access_b));
            now |= aliases.may_alias_at(first, second);
            later |= aliases.may_overwrite_later(first, second)
                || aliases.may_overwrite_later(second, first);
        }
    }
    match (now, later) {
        (true, _) => "may touch the same bytes",
        (false, true) => "may touch the same bytes, in different iterations",
        (false, false) => "never touch the same byte",
    }
}

/// Prints for each load the operation that may clobber it.
pub fn print_clobbers(module: &Module, id: FunctionId) -> String {
    let mut writer = Writer::new(module, id);
    let function = writer.function;
    let clobbers = Clobbers::compute(module, function);
    for op in all_ops(function) {
        if !clobbers.is_read(op) {
            continue;
        }
        let line = match clobbers.clobber_of(op) {
            Some(clobber) => format!(
                "{}\n  may be overwritten by {}",
                writer.op(op),
                writer.op(clobber)
            ),
            None => format!("{}\n  stays in memory", writer.op(op)),
        };
        writer.line(&line);
    }
    writer.text
}
