//! Packing: copies a panel of an operand so that a kernel reads it from beginning to end.
//!
//! A panel is all terms of some lines (columns of B, rows of A). The packed one has the elements of all its lines for term 0, then for term 1, and so on. Lines that the operand does
//! not have are zeros.
//!
//! The copy is of whole vectors if neighbouring lines, or neighbouring terms, are neighbours in memory; the latter are transposed in registers.

use crate::emit::{Code, lanes_of, parameters};
use crate::shape::Shape;
use crate::transpose::transpose;
use ferrozyme_ir::{FunctionId, IntPredicate, Module, Type, Value};

parameters! {
    /// A panel, and where it goes.
    PackOperands {
        to: pointer,
        from: pointer,
        /// From one term to the next.
        term: size,
        /// From one line to the next.
        line: size,
        terms: size,
        /// At most those of a full panel.
        lines: size,
    }
}

/// The lines of a full panel: some vectors.
#[derive(Clone, Copy)]
pub(crate) struct PanelSize {
    pub(crate) vectors: u16,
    /// A power of two.
    pub(crate) lanes: u16,
}

impl PanelSize {
    pub(crate) fn lines(self) -> u64 {
        u64::from(self.vectors) * u64::from(self.lanes)
    }
}

/// Adds the function that packs panels of a size.
pub(crate) fn define_pack(module: &mut Module, shape: &Shape, size: PanelSize) -> FunctionId {
    let head = shape.head(&format!("pack_{}x{}", size.vectors, size.lanes));
    PackOperands::define(module, head, |code, panel| {
        let unit = shape.bytes() as i64;
        let full = code.compare(IntPredicate::Eq, panel.lines, size.lines() as i64);
        let lines_adjoin = code.compare(IntPredicate::Eq, panel.line, unit);
        let terms_adjoin = code.compare(IntPredicate::Eq, panel.term, unit);
        let copied = code.and(full, lines_adjoin);
        let transposed = code.and(full, terms_adjoin);
        code.either(
            copied,
            |code| copy_vectors(code, shape, size, panel),
            |code| {
                code.either(
                    transposed,
                    |code| copy_transposed(code, shape, size, panel),
                    |code| {
                        let zero = code.i64(0);
                        copy_elements(code, shape, size, panel, zero);
                    },
                );
            },
        );
    })
}

fn copy_vectors(code: &mut Code<'_>, shape: &Shape, size: PanelSize, panel: &PackOperands) {
    let vector = lanes_of(shape.element, size.lanes);
    code.repeat(
        panel.terms,
        [panel.from, panel.to],
        |code, _, [from, to]| {
            for index in 0..i64::from(size.vectors) {
                let bytes = index * vector.bytes() as i64;
                let (from, to) = (code.offset_bytes(from, bytes), code.offset_bytes(to, bytes));
                let value = code.read(vector, from);
                code.write(value, to);
            }
            let width = (size.lines() * shape.bytes()) as i64;
            [code.at(from, panel.term), code.offset_bytes(to, width)]
        },
    );
}

fn copy_transposed(code: &mut Code<'_>, shape: &Shape, size: PanelSize, panel: &PackOperands) {
    let vector = lanes_of(shape.element, size.lanes);
    let lanes = u64::from(size.lanes);
    let width = size.lines() * shape.bytes();
    let blocks = code.div_by(panel.terms, lanes);
    code.repeat(blocks, [panel.from, panel.to], |code, _, [from, to]| {
        let mut line = from;
        for index in 0..u64::from(size.vectors) {
            let mut rows = Vec::new();
            for _ in 0..lanes {
                rows.push(code.read(vector, line));
                line = code.at(line, panel.line);
            }
            for (term, column) in transpose(code, rows).into_iter().enumerate() {
                let bytes = term as u64 * width + index * vector.bytes();
                let at = code.offset_bytes(to, bytes as i64);
                code.write(column, at);
            }
        }
        [
            code.offset_bytes(from, vector.bytes() as i64),
            code.offset_bytes(to, (lanes * width) as i64),
        ]
    });
    let done = code.mul_by(blocks, lanes);
    copy_elements(code, shape, size, panel, done);
}

/// Element by element, from a term on.
fn copy_elements(
    code: &mut Code<'_>,
    shape: &Shape,
    size: PanelSize,
    panel: &PackOperands,
    first: Value,
) {
    let element = Type::scalar_of(shape.element);
    let unit = code.i64(shape.bytes() as i64);
    let width = code.i64((size.lines() * shape.bytes()) as i64);
    let terms = code.sub(panel.terms, first);
    let from = code.element(panel.from, first, panel.term);
    let to = code.element(panel.to, first, width);
    let all = code.i64(size.lines() as i64);
    let missing = code.sub(all, panel.lines);
    code.repeat(terms, [from, to], |code, _, [from, to]| {
        code.repeat(panel.lines, [], |code, line, []| {
            let from = code.element(from, line, panel.line);
            let to = code.element(to, line, unit);
            let value = code.read(element, from);
            code.write(value, to);
            []
        });
        let rest = code.element(to, panel.lines, unit);
        code.repeat(missing, [], |code, line, []| {
            let to = code.element(rest, line, unit);
            let zero = code.zero(element);
            code.write(zero, to);
            []
        });
        [code.at(from, panel.term), code.at(to, width)]
    });
}
