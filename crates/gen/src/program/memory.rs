//! Statements on arrays: reads, in-place updates, gathers and scatters, copies, and doubles that travel as integers.

use super::scope::{Array, Element, Float, POINTEE, RECORD, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{Alignment, Flags, Opcode, Payload, Type, Value};

/// What every eight-byte element is aligned to.
pub(crate) fn eight() -> Alignment {
    Alignment::natural(Type::F64)
}

impl Writer<'_, '_> {
    /// The address of an element.
    pub(crate) fn address(&mut self, array: Array, index: Value) -> Value {
        let address = self.b().offset(array.pointer, index, array.element.bytes());
        if self.random().percent(50)
            && let Some((op, _)) = self.function.def_op(address)
        {
            // True: every index is below the length of its array.
            self.function.ops[op].flags = Flags::INBOUNDS;
        }
        address
    }

    /// An element of an array of doubles.
    pub(crate) fn load_double(&mut self, array: Array, index: Value) -> Float {
        let address = self.address(array, index);
        let value = self.b().load(Type::F64, address, eight());
        Float {
            value,
            bound: SMALL,
        }
    }

    /// Some element of some array of doubles; there must be one.
    pub(crate) fn load_somewhere(&mut self) -> Float {
        let array = self
            .pick_doubles()
            .expect("the caller saw an array of doubles");
        let index = self.index(array.length);
        self.load_double(array, index)
    }

    /// An index read from a table of indices.
    pub(crate) fn gathered_index(&mut self, length: i64) -> Option<Value> {
        let table = self.pick_array(
            |array| matches!(array.element, Element::Index { below } if below <= length),
        )?;
        self.note(Feature::Gather);
        let at = self.random().between(0, table.length - 1);
        let at = match self.scope.ints.last() {
            Some(int) if int.min >= 0 && int.max < table.length => int.value,
            Some(int) => {
                let value = int.value;
                let limit = self.int(table.length);
                self.b().binary(Opcode::Urem, value, limit)
            }
            None => self.int(at),
        };
        let address = self.address(table, at);
        Some(self.b().load(Type::I64, address, eight()))
    }

    /// One statement on arrays.
    pub(crate) fn memory_statement(&mut self) {
        match self.random().below(18) {
            16 => self.count_in_global(),
            17 => self.copy_pointers(),
            0..=4 => self.update(),
            5 | 6 => self.store_value(),
            7 => self.use_after_overwriting(),
            8 => self.accumulate(),
            9 => self.copy_or_move(),
            10 => self.fill(),
            11 => self.move_bits(),
            12 => self.scatter(),
            13 => self.window(),
            14 => self.select_pointer(),
            _ => {
                if self.pick_doubles().is_some() {
                    let float = self.load_somewhere();
                    self.add_float(float.value, float.bound);
                }
            }
        }
    }

    /// `a[i] = f(a[i], …)`.
    fn update(&mut self) {
        let Some(array) = self.pick_writable() else {
            return self.new_float();
        };
        self.note(Feature::InPlace);
        let index = self.index(array.length);
        let address = self.address(array, index);
        let old = self.b().load(Type::F64, address, eight());
        let other = self.small(1);
        let new = match self.random().below(5) {
            0 => self.b().binary(Opcode::Fmul, old, other),
            1 => self.b().binary(Opcode::Fmul, old, old),
            2 => self.b().fma(old, other, old),
            3 => {
                let sine = self.b().unary(Opcode::Sin, old);
                self.b().binary(Opcode::Fmul, sine, other)
            }
            _ => {
                let half = self.double(0.5);
                let scaled = self.b().binary(Opcode::Fmul, old, half);
                self.b().binary(Opcode::Fadd, scaled, other)
            }
        };
        let new = self.squash(Float {
            value: new,
            bound: 20.0,
        });
        self.b().store(new, address, eight());
    }

    fn store_value(&mut self) {
        let Some(array) = self.pick_writable() else {
            return self.new_float();
        };
        let value = self.small(2);
        let index = self.index(array.length);
        let address = self.address(array, index);
        self.b().store(value, address, eight());
    }

    /// Reads a value, overwrites its memory, and keeps the value for later.
    fn use_after_overwriting(&mut self) {
        let Some(array) = self.pick_writable() else {
            return self.new_float();
        };
        self.note(Feature::Overwritten);
        let index = self.index(array.length);
        let address = self.address(array, index);
        let old = self.b().load(Type::F64, address, eight());
        let new = self.small(2);
        self.b().store(new, address, eight());
        let kept = self.b().binary(Opcode::Fmul, old, new);
        self.add_float(old, SMALL);
        self.add_float(kept, SMALL * SMALL);
    }

    /// `a[i] += e`, with a plain load and store or as one atomic step.
    fn accumulate(&mut self) {
        let Some(array) = self.pick_writable() else {
            return self.new_float();
        };
        let value = self.small(2);
        let index = self.index(array.length);
        let address = self.address(array, index);
        if self.random().percent(25) {
            self.note(Feature::AtomicAdd);
            // Its old value stays unused: with a derivative it would not be atomic any more, which is refused.
            self.b().value(
                Opcode::AtomicAdd,
                &[address, value],
                Payload::Align(eight()),
                Type::F64,
            );
            return;
        }
        let old = self.b().load(Type::F64, address, eight());
        let sum = self.b().binary(Opcode::Fadd, old, value);
        self.b().store(sum, address, eight());
    }

    /// `b[table[i]] = f(a[i])`, or `+=`.
    fn scatter(&mut self) {
        let Some(array) = self.pick_writable() else {
            return self.new_float();
        };
        let Some(index) = self.gathered_index(array.length) else {
            return self.update();
        };
        self.note(Feature::Scatter);
        let value = self.small(2);
        let address = self.address(array, index);
        let new = if self.random().percent(50) {
            let old = self.b().load(Type::F64, address, eight());
            self.b().binary(Opcode::Fadd, old, value)
        } else {
            value
        };
        self.b().store(new, address, eight());
    }

    fn copy_or_move(&mut self) {
        let Some(to) = self.pick_array(|array| {
            array.writable && matches!(array.element, Element::Double | Element::Record)
        }) else {
            return self.new_float();
        };
        let size = to.element.bytes();
        // Structures are copied only from older ones: what those point to lives at least as long as the copy.
        let position = |wanted: Value, arrays: &[Array]| {
            arrays.iter().position(|array| array.pointer == wanted)
        };
        let limit = match to.element {
            Element::Record => position(to.pointer, &self.scope.arrays).unwrap_or(0),
            _ => usize::MAX,
        };
        let older: Vec<Value> = (self.scope.arrays.iter())
            .take(limit)
            .filter(|array| {
                array.element == to.element
                    && array.object.is_some()
                    && to.object.is_some()
                    && array.object != to.object
            })
            .map(|array| array.pointer)
            .collect();
        let others =
            self.pick_array(|array| array.element == to.element && older.contains(&array.pointer));
        match others {
            Some(from) if self.random().percent(60) => {
                let count = self.random().between(0, to.length.min(from.length));
                let bytes = self.copied_bytes(count, to.element);
                self.note(if to.element == Element::Record {
                    Feature::MixedCopy
                } else {
                    Feature::Copy
                });
                self.b().copy(to.pointer, from.pointer, bytes, eight());
            }
            _ => {
                // Within one array, by one or two elements up or down: the parts overlap.
                self.note(Feature::Move);
                let shift = self.random().between(0, 2.min(to.length - 1));
                let count = self.random().between(0, to.length - shift);
                let bytes = self.copied_bytes(count, to.element);
                let ahead = self.b().offset_bytes(to.pointer, shift * size);
                let (target, source) = if self.random().percent(50) {
                    (to.pointer, ahead)
                } else {
                    (ahead, to.pointer)
                };
                let payload = Payload::Align(eight());
                self.b()
                    .op(Opcode::Move, &[target, source, bytes], payload, &[]);
            }
        }
    }

    /// A number of bytes: constant, or computed from an integer in scope that is no larger.
    fn copied_bytes(&mut self, count: i64, element: Element) -> Value {
        let size = element.bytes();
        if element == Element::Double && self.random().percent(30) {
            let fitting = self
                .scope
                .ints
                .iter()
                .copied()
                .find(|int| int.min >= 0 && int.max <= count);
            if let Some(int) = fitting {
                let size = self.int(size);
                return self.b().binary(Opcode::Mul, int.value, size);
            }
        }
        self.int(count * size)
    }

    /// Sets a range of doubles to zero, through `fill`.
    fn fill(&mut self) {
        let Some(array) = self.pick_writable() else {
            return self.new_float();
        };
        self.note(Feature::Fill);
        let first = self.random().between(0, array.length - 1);
        let count = self.random().between(0, (array.length - first).min(3));
        let to = self.b().offset_bytes(array.pointer, 8 * first);
        // Zeros, or the small number whose bytes are all 0x3f.
        let byte = self.random().pick(&[0, 0, 0, 0x3f]);
        let byte = self.function.int(Type::I8, byte);
        let bytes = self.int(8 * count);
        self.b().fill(to, byte, bytes, eight());
    }

    /// Counts in a global, and uses the count as an index.
    fn count_in_global(&mut self) {
        let Some(global) = self.shared.counter.filter(|_| !self.reads_only) else {
            return self.update();
        };
        self.note(Feature::GlobalCounter);
        let address = self.b().global_address(global);
        let count = self.b().load(Type::I64, address, eight());
        let step = self.random().between(1, 3);
        let step = self.int(step);
        let next = self.b().binary(Opcode::Add, count, step);
        self.b().store(next, address, eight());
        let Some(array) = self.pick_writable() else {
            return;
        };
        let limit = self.int(array.length);
        let index = self.b().binary(Opcode::Urem, count, limit);
        let value = self.small(1);
        let address = self.address(array, index);
        let old = self.b().load(Type::F64, address, eight());
        let product = self.b().binary(Opcode::Fmul, old, value);
        let new = self.squash(Float {
            value: product,
            bound: SMALL * SMALL,
        });
        self.b().store(new, address, eight());
    }

    /// Copies an array of pointers whole, and fetches one through the copy.
    fn copy_pointers(&mut self) {
        let Some(array) = self.pick_array(|array| array.element == Element::Pointer) else {
            return self.update();
        };
        self.note(Feature::MixedCopy);
        let bytes = self.int(8 * array.length);
        let pointer = self.b().stack(bytes, eight());
        self.b().copy(pointer, array.pointer, bytes, eight());
        let copy = Array {
            pointer,
            object: Some(self.shared.new_object()),
            ..array
        };
        self.scope.arrays.push(copy);
        self.fetch_pointer(copy);
    }

    /// Moves a double as an `i64`, as `memcpy` of eight bytes looks after optimisation.
    fn move_bits(&mut self) {
        let (Some(to), Some(from)) = (self.pick_writable(), self.pick_doubles()) else {
            return self.new_float();
        };
        self.note(Feature::BitsMove);
        let index = self.index(from.length);
        let source = self.address(from, index);
        let bits = self.b().load(Type::I64, source, eight());
        let index = self.index(to.length);
        let target = self.address(to, index);
        self.b().store(bits, target, eight());
    }

    /// A part of an array as an array of its own: it overlaps with the whole.
    fn window(&mut self) {
        let Some(array) =
            self.pick_array(|array| array.element == Element::Double && array.length > POINTEE)
        else {
            return self.new_float();
        };
        let length = self.random().between(POINTEE, array.length);
        let pointer = if self.random().percent(50) {
            let first = self.random().between(0, array.length - length);
            self.b().offset_bytes(array.pointer, 8 * first)
        } else {
            let first = self.index(array.length - length + 1);
            self.b().offset(array.pointer, first, 8)
        };
        self.scope.arrays.push(Array {
            pointer,
            length,
            ..array
        });
    }

    /// One of two arrays, which depends on data.
    fn select_pointer(&mut self) {
        let (Some(a), Some(b)) = (self.pick_doubles(), self.pick_doubles()) else {
            return self.new_float();
        };
        self.note(Feature::PointerSelect);
        let condition = self.condition();
        let pointer = self.b().select(condition, a.pointer, b.pointer);
        self.scope.arrays.push(Array {
            pointer,
            length: a.length.min(b.length),
            element: Element::Double,
            writable: a.writable && b.writable,
            object: if a.object == b.object { a.object } else { None },
        });
    }

    /// A new float in scope.
    pub(crate) fn new_float(&mut self) {
        let levels = self.random().between(1, 3) as u32;
        let float = self.float(levels);
        if self.function.is_constant(float.value) {
            return;
        }
        self.name(float.value, "t");
        self.add_float(float.value, float.bound);
    }

    /// The address of a structure's field.
    pub(crate) fn field(&mut self, record: Value, offset: i64) -> Value {
        debug_assert!(offset < RECORD);
        if offset == 0 {
            record
        } else {
            self.b().offset_bytes(record, offset)
        }
    }
}
