//! Other types than plain doubles: single precision, and vectors.

use super::scope::{Element, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{Opcode, Payload, Scalar, Type};

impl Writer<'_, '_> {
    /// Single-precision arithmetic beside double precision.
    pub(crate) fn single_precision(&mut self) {
        self.note(Feature::Single);
        let single = Type::F32;
        let a = self.small(2);
        let mut a = self.b().cast(Opcode::Fptrunc, a, single);
        for _ in 0..self.random().between(1, 3) {
            let opcode =
                self.random()
                    .pick(&[Opcode::Sin, Opcode::Cos, Opcode::Tanh, Opcode::Atan]);
            a = match self.random().below(3) {
                0 => self.b().unary(opcode, a),
                1 => {
                    let b = self.small(1);
                    let b = self.b().cast(Opcode::Fptrunc, b, single);
                    let product = self.b().binary(Opcode::Fmul, a, b);
                    self.b().unary(Opcode::Tanh, product)
                }
                _ => {
                    let half = self.function.float(single, 0.5);
                    let scaled = self.b().binary(Opcode::Fmul, a, half);
                    self.b().binary(Opcode::Fadd, scaled, half)
                }
            };
        }
        let back = self.b().cast(Opcode::Fpext, a, Type::F64);
        self.add_float(back, SMALL);
    }

    /// A few operations on a vector of doubles.
    pub(crate) fn vector_operations(&mut self) {
        self.note(Feature::Vector);
        let lanes = self.random().pick(&[2u16, 4]);
        let ty = Type::vector_of(Scalar::F64, lanes);
        let source = self.pick_array(|array| {
            array.element == Element::Double && array.length >= i64::from(lanes)
        });
        let mut a = match source {
            Some(array) => {
                let position = self.random().between(0, array.length - i64::from(lanes));
                let position = self.int(position);
                let address = self.b().offset(array.pointer, position, 8);
                self.b()
                    .load(ty, address, ferrozyme_ir::Alignment::natural(Type::F64))
            }
            None => {
                let value = self.small(1);
                self.b().value(Opcode::Splat, &[value], Payload::None, ty)
            }
        };
        let b = self.small(1);
        let at = self.random().between(0, i64::from(lanes) - 1);
        let at = self.int(at);
        match self.random().below(3) {
            0 => {
                let b = self.b().value(Opcode::Splat, &[b], Payload::None, ty);
                a = self.b().binary(Opcode::Fmul, a, b);
            }
            1 => {
                a = self
                    .b()
                    .value(Opcode::Insert, &[a, b, at], Payload::None, ty)
            }
            _ => {
                let order: Vec<u16> = (0..lanes)
                    .map(|_| self.random().below(2 * usize::from(lanes)) as u16)
                    .collect();
                let b = self.b().value(Opcode::Splat, &[b], Payload::None, ty);
                let payload = Payload::Lanes(order.into());
                a = self.b().value(Opcode::Shuffle, &[a, b], payload, ty);
            }
        }
        let a = self.b().unary(Opcode::Sin, a);
        let target = self.pick_array(|array| {
            array.element == Element::Double && array.writable && array.length >= i64::from(lanes)
        });
        if let Some(array) = target
            && self.random().percent(40)
        {
            let align = ferrozyme_ir::Alignment::natural(Type::F64);
            self.b().store(a, array.pointer, align);
        }
        let result = if self.random().percent(50) {
            self.b()
                .value(Opcode::ReduceFadd, &[a], Payload::None, Type::F64)
        } else {
            self.b()
                .value(Opcode::Extract, &[a, at], Payload::None, Type::F64)
        };
        self.add_float(result, f64::from(lanes));
    }
}
