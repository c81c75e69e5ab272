//! The text form of graphs; its grammar is at the head of `parse.rs`.

use crate::graph::{Graph, Op, OpData, Region, Tensor};
use crate::opcode::Opcode;
use crate::payload::{Literal, Payload};
use crate::types::TensorType;
use cranelift_entity::SecondaryMap;
use ferrozyme_ir::literal::{write_name, write_scalar, write_string};
use rustc_hash::FxHashSet;
use std::fmt::{self, Write};

/// The text of a graph. It parses back to the same text.
pub fn print(graph: &Graph) -> String {
    let mut printer = Printer {
        graph,
        names: Names::of(graph),
        out: String::new(),
    };
    printer.graph().expect("writing to a string does not fail");
    printer.out
}

/// One operation without its regions, with the names that tensors have in the text of the whole graph.
pub fn print_op(graph: &Graph, op: Op) -> String {
    let mut printer = Printer {
        graph,
        names: Names::of(graph),
        out: String::new(),
    };
    let data = &graph.ops[op];
    let written = printer.head(data).and_then(|()| printer.types(data));
    written.expect("writing to a string does not fail");
    printer.out
}

/// An operation without operands and results: `reduce sum [0]`.
pub(crate) fn describe(graph: &Graph, op: Op) -> String {
    let mut printer = Printer {
        graph,
        names: Names(SecondaryMap::new()),
        out: String::new(),
    };
    let data = &graph.ops[op];
    let written = printer
        .before_operands(data)
        .and_then(|()| printer.after_operands(&data.payload));
    written.expect("writing to a string does not fail");
    printer.out
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// The names of tensors, with their `%`.
pub struct Names(SecondaryMap<Tensor, Option<Box<str>>>);

impl Names {
    /// The names of all tensors that the graph defines: their own, with a number where another has it too, or a number.
    pub fn of(graph: &Graph) -> Names {
        let mut tensors: Vec<Tensor> = graph.regions[graph.body()].arguments.to_vec();
        graph.for_each_op(graph.body(), &mut |_, op| {
            let data = &graph.ops[op];
            tensors.extend_from_slice(&data.results);
            for &region in &data.regions {
                tensors.extend_from_slice(&graph.regions[region].arguments);
            }
        });
        let named = |tensor: &Tensor| graph.tensors[*tensor].name.as_deref();
        let mut taken: FxHashSet<String> = FxHashSet::default();
        let mut names = SecondaryMap::new();
        let mut number = 0u32;
        for tensor in tensors {
            let mut text = named(&tensor).unwrap_or("").to_owned();
            let mut suffix = 1;
            while text.is_empty() || !taken.insert(text.clone()) {
                text = match named(&tensor) {
                    Some(name) => {
                        suffix += 1;
                        format!("{name}.{suffix}")
                    }
                    None => {
                        number += 1;
                        format!("{}", number - 1)
                    }
                };
            }
            let mut name = String::new();
            write_name(&mut name, '%', &text).expect("writing to a string does not fail");
            names[tensor] = Some(name.into());
        }
        Names(names)
    }

    /// The name of a tensor; `%?` for one that no operation defines.
    pub fn get(&self, tensor: Tensor) -> &str {
        self.0[tensor].as_deref().unwrap_or("%?")
    }
}

struct Printer<'g> {
    graph: &'g Graph,
    names: Names,
    out: String,
}

impl Printer<'_> {
    fn graph(&mut self) -> fmt::Result {
        let graph = self.graph;
        for data in graph.parameters.values() {
            self.out.write_str("parameter ")?;
            write_name(&mut self.out, '@', &data.name)?;
            write!(self.out, " : {} = ", data.ty)?;
            write_literal(&mut self.out, &data.initial, &data.ty)?;
            self.out.write_str("\n")?;
        }
        if !graph.parameters.is_empty() {
            self.out.write_str("\n")?;
        }
        self.out.write_str("graph ")?;
        self.region(graph.body(), 0)?;
        self.out.write_str("\n")
    }

    fn region(&mut self, region: Region, depth: usize) -> fmt::Result {
        let data = &self.graph.regions[region];
        if !data.arguments.is_empty() {
            self.out.write_str("(")?;
            for (index, &argument) in data.arguments.iter().enumerate() {
                let separator = if index > 0 { ", " } else { "" };
                let (name, ty) = (self.names.get(argument), self.graph.ty(argument));
                write!(self.out, "{separator}{name}: {ty}")?;
            }
            self.out.write_str(") ")?;
        }
        self.out.write_str("{\n")?;
        let indentation = "  ".repeat(depth + 1);
        for &op in &data.ops {
            self.out.write_str(&indentation)?;
            let data = &self.graph.ops[op];
            self.head(data)?;
            for (&inner, word) in data.regions.iter().zip(data.opcode.row().regions) {
                let space = if word.is_empty() { "" } else { " " };
                write!(self.out, "{space}{word} ")?;
                self.region(inner, depth + 1)?;
            }
            self.types(data)?;
            self.out.write_str("\n")?;
        }
        if !data.results.is_empty() {
            write!(self.out, "{indentation}yield ")?;
            self.tensors(&data.results)?;
            self.out.write_str("\n")?;
        }
        write!(self.out, "{}}}", "  ".repeat(depth))
    }

    /// All of an operation but its regions and types.
    fn head(&mut self, data: &OpData) -> fmt::Result {
        if !data.results.is_empty() {
            self.tensors(&data.results)?;
            self.out.write_str(" = ")?;
        }
        self.before_operands(data)?;
        if !data.operands.is_empty() {
            self.out.write_str(" ")?;
            self.tensors(&data.operands)?;
        }
        self.after_operands(&data.payload)
    }

    fn before_operands(&mut self, data: &OpData) -> fmt::Result {
        if let Payload::Function(function) = &data.payload {
            return write!(self.out, "{function}");
        }
        self.out.write_str(data.opcode.name())?;
        match &data.payload {
            Payload::Parameter(parameter) => {
                let data = self.graph.parameters.get(*parameter);
                self.out.write_str(" ")?;
                write_name(&mut self.out, '@', data.map_or("", |data| &data.name))
            }
            Payload::Constant(literal, ty) => {
                self.out.write_str(" ")?;
                write_literal(&mut self.out, literal, ty)
            }
            Payload::Iota(axis, _) => write!(self.out, " {axis}"),
            Payload::Random(seed, _) => write!(self.out, " {seed}"),
            Payload::Feed(name, _) | Payload::Receive(name) | Payload::Call(name, _) => {
                self.out.write_str(" ")?;
                write_string(&mut self.out, name)
            }
            Payload::Reduce(reduction, _) => write!(self.out, " {}", reduction.name()),
            _ => Ok(()),
        }
    }

    fn after_operands(&mut self, payload: &Payload) -> fmt::Result {
        let list = |out: &mut String, parts: Vec<String>| write!(out, " [{}]", parts.join(", "));
        let out = &mut self.out;
        match payload {
            Payload::Permutation(axes) | Payload::Reduce(_, axes) => {
                list(out, axes.iter().map(ToString::to_string).collect())
            }
            Payload::Broadcast(axes) => {
                let axis = |(axis, size): &(usize, usize)| format!("{axis}: {size}");
                list(out, axes.iter().map(axis).collect())
            }
            Payload::Slice(stretches) => {
                let part = |(start, end, step): (usize, usize, usize)| match step {
                    1 => format!("{start}:{end}"),
                    _ => format!("{start}:{end}:{step}"),
                };
                let parts = stretches.iter().map(|s| part((s.start, s.end, s.step)));
                list(out, parts.collect())
            }
            Payload::Pad(paddings) => {
                let part = |(low, high, between): (usize, usize, usize)| match between {
                    0 => format!("{low}:{high}"),
                    _ => format!("{low}:{high}:{between}"),
                };
                let parts = paddings.iter().map(|p| part((p.low, p.high, p.between)));
                list(out, parts.collect())
            }
            Payload::Axis(axis) => write!(out, " axis {axis}"),
            Payload::Contract(indices) => write!(out, " {indices}"),
            _ => Ok(()),
        }
    }

    fn types(&mut self, data: &OpData) -> fmt::Result {
        for (index, &result) in data.results.iter().enumerate() {
            let separator = if index > 0 { ", " } else { " : " };
            write!(self.out, "{separator}{}", self.graph.ty(result))?;
        }
        Ok(())
    }

    fn tensors(&mut self, tensors: &[Tensor]) -> fmt::Result {
        for (index, &tensor) in tensors.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(self.out, "{separator}{}", self.names.get(tensor))?;
        }
        Ok(())
    }
}

/// As `0.5` or `[1.0, 2.0]`.
pub(crate) fn write_literal(out: &mut String, literal: &Literal, ty: &TensorType) -> fmt::Result {
    let element = |out: &mut String, value: f64| {
        write_scalar(
            out,
            ty.element,
            crate::interpret::to_bits(ty.element, value),
        )
    };
    match literal {
        Literal::Splat(value) => element(out, *value),
        Literal::Dense(values) => {
            out.write_str("[")?;
            for (index, &value) in values.iter().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                element(out, value)?;
            }
            out.write_str("]")
        }
    }
}

impl OpData {
    /// What it is called in messages and reports: the name of its function, or its own, with that of the Rust function that it calls.
    pub fn label(&self) -> String {
        match (self.opcode, &self.payload) {
            (Opcode::Elementwise, Payload::Function(function)) => function.to_string(),
            (opcode, Payload::Call(name, _)) => format!("{opcode} {name:?}"),
            (opcode, _) => opcode.to_string(),
        }
    }
}
