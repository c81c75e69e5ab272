//! Loop nests of the kind that numerical programs are made of: products of matrices, stencils, growing arrays.

use super::memory::eight;
use super::scope::{Array, Element, Float, POINTEE, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{Opcode, Type, Value};

impl Writer<'_, '_> {
    /// One loop nest.
    pub(crate) fn nest_statement(&mut self) {
        match self.random().below(4) {
            0 | 1 => self.matrix_product(),
            2 => self.stencil(),
            _ => self.growing_array(),
        }
    }

    /// `c[i][j] += a[i][k]·b[k][j]` on matrices of two rows, in memory that may be shared.
    fn matrix_product(&mut self) {
        let fits = |array: &Array| array.element == Element::Double && array.length >= POINTEE;
        let writable = |array: &Array| fits(array) && array.writable;
        let (Some(a), Some(b)) = (self.pick_array(fits), self.pick_array(fits)) else {
            return self.new_float();
        };
        let Some(c) = self.pick_array(writable) else {
            return self.new_float();
        };
        if !self.affords(8) || self.depth + 3 > self.shared.profile.depth + 2 {
            return self.new_float();
        }
        self.note(Feature::MatrixProduct);
        self.note(Feature::NestedLoop);
        // A matrix that is multiplied by itself again and again would grow without a limit.
        let apart = c.object.is_some() && c.object != a.object && c.object != b.object;
        let squashes = !apart || self.random().percent(50);
        self.counted(2, &[], |writer, i, _| {
            writer.counted(2, &[], |writer, j, _| {
                let two = writer.int(2);
                let row = writer.b().binary(Opcode::Mul, i, two);
                let at = writer.b().binary(Opcode::Add, row, j);
                let target = writer.address(c, at);
                let start = writer.b().load(Type::F64, target, eight());
                let sums = writer.counted(2, &[start], |writer, k, carried| {
                    let at = writer.b().binary(Opcode::Add, row, k);
                    let left = writer.load_double(a, at);
                    let row = writer.b().binary(Opcode::Mul, k, two);
                    let at = writer.b().binary(Opcode::Add, row, j);
                    let right = writer.load_double(b, at);
                    vec![writer.b().fma(left.value, right.value, carried[0])]
                });
                let value = if squashes {
                    writer.squash(Float {
                        value: sums[0],
                        bound: f64::INFINITY,
                    })
                } else {
                    let tenth = writer.double(0.1);
                    writer.b().binary(Opcode::Fmul, sums[0], tenth)
                };
                writer.b().store(value, target, eight());
                Vec::new()
            });
            Vec::new()
        });
    }

    /// `x[i] = f(x[i], x[i−1])` in place, upwards or downwards.
    fn stencil(&mut self) {
        let fits =
            |array: &Array| array.element == Element::Double && array.writable && array.length > 2;
        let Some(array) = self.pick_array(fits) else {
            return self.new_float();
        };
        let length = array.length.min(5);
        if !self.affords(length as u64) {
            return self.new_float();
        }
        self.note(Feature::Stencil);
        self.note(Feature::InPlace);
        let downwards = self.random().percent(40);
        self.counted(length - 1, &[], |writer, i, _| {
            let (here, there) = if downwards {
                let last = writer.int(length - 2);
                let from = writer.b().binary(Opcode::Sub, last, i);
                let one = writer.int(1);
                (from, writer.b().binary(Opcode::Add, from, one))
            } else {
                let one = writer.int(1);
                (writer.b().binary(Opcode::Add, i, one), i)
            };
            let neighbour = writer.load_double(array, there);
            let address = writer.address(array, here);
            let own = writer.b().load(Type::F64, address, eight());
            let product = writer.b().binary(Opcode::Fmul, own, neighbour.value);
            let new = writer.squash(Float {
                value: product,
                bound: SMALL * SMALL,
            });
            writer.b().store(new, address, eight());
            Vec::new()
        });
    }

    /// Memory that is replaced by larger memory in each step of a loop, as a vector that grows does it.
    fn growing_array(&mut self) {
        let steps = self.random().between(1, 3);
        if !self.affords(steps as u64) {
            return self.new_float();
        }
        self.note(Feature::Growing);
        self.note(Feature::HeapInLoop);
        let size = self.int(8);
        let first = self.b().alloc(size, eight(), false);
        let value = self.small(1);
        self.b().store(value, first, eight());
        let grown = self.counted(steps, &[first], |writer, i, carried| {
            let (one, two, eight_bytes) = (writer.int(1), writer.int(2), writer.int(8));
            let old_length = writer.b().binary(Opcode::Add, i, one);
            let new_length = writer.b().binary(Opcode::Add, i, two);
            let old_bytes = writer.b().binary(Opcode::Mul, old_length, eight_bytes);
            let new_bytes = writer.b().binary(Opcode::Mul, new_length, eight_bytes);
            let larger = writer.b().alloc(new_bytes, eight(), false);
            writer.b().copy(larger, carried[0], old_bytes, eight());
            let last = writer.b().offset(carried[0], i, 8);
            let last = writer.b().load(Type::F64, last, eight());
            writer.b().free(carried[0]);
            let other = writer.small(1);
            let product = writer.b().binary(Opcode::Fmul, last, other);
            let value = writer.squash(Float {
                value: product,
                bound: SMALL * SMALL,
            });
            let end = writer.b().offset(larger, old_length, 8);
            writer.b().store(value, end, eight());
            vec![larger]
        });
        self.scope.owned.push(super::scope::Owned::Memory(grown[0]));
        let object = Some(self.shared.new_object());
        self.scope.arrays.push(Array {
            pointer: grown[0],
            length: steps + 1,
            element: Element::Double,
            writable: true,
            object,
        });
    }

    /// A loop from 0 up to `trips` that carries values; gives their last ones.
    pub(crate) fn counted(
        &mut self,
        trips: i64,
        initial: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let (from, to, step) = (self.int(0), self.int(trips), self.int(1));
        let (op, region) = self.b().for_loop(from, to, step, initial);
        let (outer, mark) = self.enter(region);
        let weight = self.weight;
        self.weight *= trips.max(1) as u64;
        self.loops += 1;
        let arguments = self.function.regions[region].args.to_vec();
        self.add_int(arguments[0], 0, trips - 1);
        let next = body(self, arguments[0], &arguments[1..]);
        self.release(mark);
        self.b().yields(&next);
        self.leave(outer);
        self.loops -= 1;
        self.weight = weight;
        self.function.ops[op].results.to_vec()
    }
}
