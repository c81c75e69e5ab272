//! The answer to a program that the analysis cannot finish: all memory is one class, any pointer may point anywhere in it, and each of
//! its bytes may be part of anything.
//!
//! It is made from the operations alone, whatever was gathered before, in one walk.

use super::super::graph::{Evidence, Graph, Target};
use super::super::span::Span;
use super::super::{Contradiction, Source};
use super::Gather;
use ferrozyme_ir::{Constant, Opcode, Payload, Scalar, Type, ValueDef, returning_ops};
use std::collections::BTreeSet;

impl Gather<'_> {
    /// Forgets all that was found and takes everything to be possible.
    pub(super) fn collapse(&mut self) {
        let names = self.names();
        self.graph = Graph::of(usize::MAX);
        self.instances.clear();
        self.globals.clear();
        self.functions.clear();
        let class = self.graph.new_class(None);
        let span = Span::ANY;
        let anything = Target { class, span };
        self.graph.repeat(class, i64::MIN, 1);
        let byte = self.graph.access(class, 0, 1);
        self.graph.add_evidence(byte, unclear(anything));
        let mut sources = BTreeSet::new();
        for name in names {
            sources.insert((self.bodies[0].id, name));
            // The start of a name is one place; where each byte is like all others, it does not matter which.
            let span = Span::exact(0);
            match name {
                Source::Global(id) => {
                    for part in 0..=self.module.globals[id].parts.len() as u32 {
                        self.globals.insert((id, part), Target { class, span });
                    }
                }
                Source::Function(id) => {
                    self.functions.insert(id, Target { class, span });
                }
                _ => {}
            }
        }
        for b in 0..self.bodies.len() {
            let function = self.bodies[b].function;
            let id = self.bodies[b].id;
            for (index, &argument) in function.arguments().iter().enumerate() {
                if function.ty(argument).is_ptr() {
                    sources.insert((id, Source::Param(index as u32)));
                }
            }
            for op in returning_ops(function) {
                let source = match function.ops[op].opcode {
                    Opcode::Stack => Source::Stack(op),
                    Opcode::Alloc => Source::Alloc(op),
                    Opcode::Call => Source::Call(op),
                    Opcode::CallIndirect => Source::External(op),
                    _ => continue,
                };
                sources.insert((id, source));
            }
            self.bodies[b].numbers.clear();
            for value in function.values.keys() {
                if function.is_constant(value) {
                    continue;
                }
                let ty = function.ty(value);
                let may_point = ty.is_ptr() || ty == Type::I64;
                self.bodies[b].pointers[value].target = may_point.then_some(anything);
                self.bodies[b].pointers[value].growth = 0;
                self.bodies[b].cells[value] = self.unclear_integer(ty, anything);
            }
            for (index, &ty) in function.results.iter().enumerate() {
                let cell = self.unclear_integer(ty, anything);
                let outlet = &mut self.bodies[b].results[index];
                outlet.pointer.target = ty.is_ptr().then_some(anything);
                outlet.cell = cell;
            }
        }
        let node = self.graph.node_mut(class);
        node.sources = sources;
        node.escapes = true;
        node.clobbered = true;
        node.repointed = true;
        node.written = true;
        node.called = true;
        node.released = true;
        node.unknown_origin = true;
    }

    /// An integer that may be anything; none for other types.
    fn unclear_integer(&mut self, ty: Type, anything: Target) -> Option<super::CellId> {
        // Bits that are the outcome of a comparison are never anything else.
        if !ty.is_int() || ty.scalar().bits() == 1 {
            return None;
        }
        let cell = self.graph.new_cell(ty.bytes());
        self.graph.add_evidence(cell, unclear(anything));
        Some(cell)
    }

    /// The globals and functions that have been met, and those whose turn had not come.
    fn names(&mut self) -> BTreeSet<Source> {
        for b in 0..self.bodies.len() {
            let function = self.bodies[b].function;
            for value in function.values.keys() {
                match function.values[value].def {
                    ValueDef::Constant(Constant::Global(id)) => {
                        self.global(id);
                    }
                    ValueDef::Constant(Constant::Function(id)) => {
                        self.code(b, id);
                    }
                    _ => {}
                }
            }
        }
        let mut names: BTreeSet<Source> = BTreeSet::new();
        names.extend(self.globals.keys().map(|&(id, _)| Source::Global(id)));
        names.extend(self.functions.keys().copied().map(Source::Function));
        for body in &self.bodies {
            for op in returning_ops(body.function) {
                let data = &body.function.ops[op];
                let callee = match (&data.payload, data.opcode) {
                    (Payload::Callee(callee), _) => Some(*callee),
                    (_, Opcode::CallIndirect) => match body.function.constant_of(data.target()) {
                        Some(&Constant::Function(callee)) => Some(callee),
                        _ => None,
                    },
                    _ => None,
                };
                if let Some(finished) = callee.and_then(|callee| self.finished.get(&callee)) {
                    let globals = finished
                        .globals
                        .iter()
                        .map(|&((id, _), _)| Source::Global(id));
                    let functions = finished
                        .functions
                        .iter()
                        .map(|&(id, _)| Source::Function(id));
                    names.extend(globals.chain(functions));
                }
            }
        }
        names
    }
}

/// What is said of bytes that may be anything.
fn unclear(anything: Target) -> Evidence {
    Evidence {
        pointer: Some(anything),
        contradiction: Some(Contradiction::Torn(Scalar::Ptr)),
        ..Evidence::default()
    }
}
