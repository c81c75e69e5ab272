//! Memory with a life of its own: heap and stack arrays, arrays of pointers, structures, linked lists.
//!
//! All of it is initialised before it comes into scope and released where its region ends.

use super::helper::Role;
use super::memory::eight;
use super::scope::{Array, Element, Float, Owned, POINTEE, RECORD, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{Alignment, Function, IntPredicate, Opcode, Type, Value};

impl Writer<'_, '_> {
    /// One statement that makes an object.
    pub(crate) fn object_statement(&mut self) {
        match self.random().below(21) {
            16..=20 => self.owner_statement(),
            12..=15 => self.use_object(),
            0..=2 => self.new_array(),
            3 => self.array_from_branch(),
            4 | 5 => self.pointer_array(),
            6..=8 => self.records(),
            9 | 10 => self.linked_list(),
            _ if self.shared.inexact => self.single_array(),
            _ => self.index_array(),
        }
    }

    /// Heap or stack memory of so many bytes. Heap memory is released with the region.
    fn memory(&mut self, bytes: i64, zeroed: bool) -> Value {
        let size = self.int(bytes);
        if !zeroed && self.random().percent(40) {
            self.note(Feature::Stack);
            return self.b().stack(size, eight());
        }
        self.note(Feature::Heap);
        if self.loops > 0 {
            self.note(Feature::HeapInLoop);
        }
        let pointer = self.b().alloc(size, eight(), zeroed);
        self.scope.owned.push(Owned::Memory(pointer));
        pointer
    }

    /// A new array of doubles, initialised in one of several ways.
    fn new_array(&mut self) {
        let length = self.random().between(POINTEE, 8);
        let array = self.initialised(length);
        self.scope.arrays.push(array);
    }

    fn initialised(&mut self, length: i64) -> Array {
        let zeroed = self.random().percent(30);
        let pointer = self.memory(8 * length, zeroed);
        let object = Some(self.shared.new_object());
        let array = Array {
            pointer,
            length,
            element: Element::Double,
            writable: true,
            object,
        };
        if !zeroed {
            self.initialise(array);
        }
        array
    }

    /// Gives every element of an array of doubles a value.
    pub(crate) fn initialise(&mut self, array: Array) {
        let bytes = self.int(8 * array.length);
        let source = self
            .pick_array(|other| other.element == Element::Double && other.length >= array.length);
        match source {
            Some(from) if self.random().percent(50) => {
                self.note(Feature::Copy);
                self.b().copy(array.pointer, from.pointer, bytes, eight());
            }
            _ if self.random().percent(30) || !self.affords(array.length as u64) => {
                self.note(Feature::Fill);
                let byte = self.function.int(Type::I8, 0);
                self.b().fill(array.pointer, byte, bytes, eight());
            }
            _ => {
                self.counted(array.length, &[], |writer, index, _| {
                    let value = writer.small(2);
                    let address = writer.address(array, index);
                    writer.b().store(value, address, eight());
                    Vec::new()
                });
            }
        }
    }

    /// Heap memory of a size that a branch decides, used after it.
    fn array_from_branch(&mut self) {
        self.note(Feature::HeapInBranch);
        let condition = self.condition();
        let (op, then_region, else_region) = self.b().if_else(condition, &[Type::PTR]);
        for region in [then_region, else_region] {
            let (outer, mark) = self.enter(region);
            let length = self.random().between(POINTEE, 8);
            let size = self.int(8 * length);
            let pointer = self.b().alloc(size, eight(), false);
            let array = Array {
                pointer,
                length,
                element: Element::Double,
                writable: true,
                object: None,
            };
            self.initialise(array);
            self.release(mark);
            self.b().yields(&[pointer]);
            self.leave(outer);
        }
        let pointer = self.function.result(op);
        self.scope.owned.push(Owned::Memory(pointer));
        let object = Some(self.shared.new_object());
        self.scope.arrays.push(Array {
            pointer,
            length: POINTEE,
            element: Element::Double,
            writable: true,
            object,
        });
    }

    /// An array of pointers to arrays in scope; one of them is fetched back through it.
    fn pointer_array(&mut self) {
        let wanted = |array: &Array| {
            array.element == Element::Double && array.writable && array.length >= POINTEE
        };
        if self.pick_array(wanted).is_none() {
            return self.new_array();
        }
        self.note(Feature::PointerArray);
        let length = self.random().between(2, 3);
        let pointer = self.memory(8 * length, false);
        let array = Array {
            pointer,
            length,
            element: Element::Pointer,
            writable: true,
            object: Some(self.shared.new_object()),
        };
        for position in 0..length {
            let target = self.pick_array(wanted).expect("one was there before");
            let index = self.int(position);
            let address = self.address(array, index);
            self.b().store(target.pointer, address, eight());
        }
        self.scope.arrays.push(array);
        if self.random().percent(40) {
            self.fetch_pointer(array);
            self.exchange_pointers(array);
        }
        self.fetch_pointer(array);
    }

    /// Uses a structure or array of pointers that was made before, perhaps outside of this region.
    fn use_object(&mut self) {
        let wanted = |array: &Array| matches!(array.element, Element::Pointer | Element::Record);
        let Some(array) = self.pick_array(wanted) else {
            return self.records();
        };
        match (array.element, self.random().below(4)) {
            (Element::Pointer, 0 | 1) if array.writable => self.exchange_pointers(array),
            (Element::Record, 0) if array.writable => self.change_record(array),
            (Element::Record, 1 | 2) => self.use_record(array),
            _ => self.fetch_pointer(array),
        }
    }

    /// Exchanges two pointers in memory: what they point to is another in the reverse sweep than at the end.
    fn exchange_pointers(&mut self, array: Array) {
        self.note(Feature::PointerOverwritten);
        let index = self.index(array.length);
        let left = self.address(array, index);
        let index = self.index(array.length);
        let right = self.address(array, index);
        let a = self.b().load(Type::PTR, left, eight());
        let b = self.b().load(Type::PTR, right, eight());
        self.b().store(b, left, eight());
        self.b().store(a, right, eight());
        self.fetch_pointer(array);
    }

    /// Lets a structure point elsewhere, to memory that lives at least as long, or to another element.
    fn change_record(&mut self, array: Array) {
        let older: Vec<Value> = (self.scope.arrays.iter())
            .take_while(|other| other.pointer != array.pointer)
            .filter(|other| {
                other.element == Element::Double && other.writable && other.length >= POINTEE
            })
            .map(|other| other.pointer)
            .collect();
        let index = self.index(array.length);
        let record = self.address(array, index);
        if older.is_empty() {
            let number = self.index(POINTEE);
            let address = self.field(record, 8);
            self.b().store(number, address, eight());
        } else {
            self.note(Feature::PointerOverwritten);
            let pointer = self.random().pick(&older);
            match self.helper_of(Role::Linker) {
                Some(linker) if !self.reads_only => {
                    let value = self.small(1);
                    self.cost += linker.cost * self.weight;
                    self.b().call(linker.id, &[record, pointer, value], &[]);
                }
                _ => {
                    let address = self.field(record, 16);
                    self.b().store(pointer, address, eight());
                }
            }
        }
        self.use_record(array);
    }

    /// Brings an array into scope whose pointer is read from memory.
    pub(crate) fn fetch_pointer(&mut self, array: Array) {
        let index = self.index(array.length);
        let address = self.address(array, index);
        let address = match array.element {
            Element::Record => self.field(address, 16),
            _ => address,
        };
        let pointer = self.b().load(Type::PTR, address, eight());
        self.scope.arrays.push(Array {
            pointer,
            length: POINTEE,
            element: Element::Double,
            writable: true,
            object: None,
        });
    }

    /// An array of structures {f64, i64, ptr}, and uses of all three fields.
    fn records(&mut self) {
        let wanted = |array: &Array| {
            array.element == Element::Double && array.writable && array.length >= POINTEE
        };
        if self.pick_array(wanted).is_none() {
            return self.new_array();
        }
        self.note(Feature::Structure);
        let length = self.random().between(1, 3);
        let pointer = self.memory(RECORD * length, false);
        let array = Array {
            pointer,
            length,
            element: Element::Record,
            writable: true,
            object: Some(self.shared.new_object()),
        };
        for position in 0..length {
            let target = self.pick_array(wanted).expect("one was there before");
            let index = self.int(position);
            let record = self.address(array, index);
            let value = self.small(1);
            self.b().store(value, record, eight());
            let number = self.index(POINTEE);
            let address = self.field(record, 8);
            self.b().store(number, address, eight());
            let address = self.field(record, 16);
            self.b().store(target.pointer, address, eight());
        }
        self.scope.arrays.push(array);
        if self.random().percent(40) {
            self.copy_of_records(array);
        }
        self.use_record(array);
        if self.random().percent(20) {
            self.change_record(array);
        }
    }

    /// Copies structures whole: floats, integers and pointers in one piece.
    fn copy_of_records(&mut self, array: Array) {
        self.note(Feature::MixedCopy);
        let bytes = RECORD * array.length;
        let pointer = self.memory(bytes, false);
        let bytes = self.int(bytes);
        self.b().copy(pointer, array.pointer, bytes, eight());
        let object = Some(self.shared.new_object());
        self.scope.arrays.push(Array {
            pointer,
            object,
            ..array
        });
    }

    /// `r.value = f(r.value, r.pointer[r.index])`, or the other way round.
    pub(crate) fn use_record(&mut self, array: Array) {
        let index = self.index(array.length);
        let record = self.address(array, index);
        let address = self.field(record, 8);
        let number = self.b().load(Type::I64, address, eight());
        let address = self.field(record, 16);
        let pointer = self.b().load(Type::PTR, address, eight());
        let element = self.b().offset(pointer, number, 8);
        let through = self.b().load(Type::F64, element, eight());
        let own = self.b().load(Type::F64, record, eight());
        let product = self.b().binary(Opcode::Fmul, through, own);
        let new = self.squash(Float {
            value: product,
            bound: SMALL * SMALL,
        });
        match self.random().below(3) {
            0 => {
                self.b().store(new, record, eight());
            }
            1 => {
                self.b().store(new, element, eight());
            }
            _ => {
                self.add_float(new, SMALL);
            }
        }
        if self.random().percent(30) {
            let pointee = Array {
                pointer,
                length: POINTEE,
                element: Element::Double,
                writable: true,
                object: None,
            };
            self.scope.arrays.push(pointee);
        }
    }

    /// A list of nodes {f64, ptr}: built in a loop, walked (and perhaps changed) in a second, released in a third.
    fn linked_list(&mut self) {
        let length = self.random().between(1, 4);
        if !self.affords(length as u64) {
            return self.new_float();
        }
        self.note(Feature::List);
        self.note(Feature::HeapInLoop);
        let null = self.function.zero(Type::PTR);
        let built = self.counted(length, &[null], |writer, _, carried| {
            let value = writer.small(2);
            let size = writer.int(16);
            let node = writer.b().alloc(size, eight(), false);
            writer.b().store(value, node, eight());
            let next = writer.b().offset_bytes(node, 8);
            writer.b().store(carried[0], next, eight());
            vec![node]
        });
        let head = built[0];
        self.name(head, "head");

        let changed = self.random().percent(50);
        let passes = self.random().between(1, 2);
        for _ in 0..passes {
            let start = self.small(1);
            let sum = self.walk_list(head, start, length, changed);
            self.add_float(sum, SMALL * (length + 1) as f64);
        }
        self.release_list(head, length);
    }

    /// Σ sin(node) over a list, from `start` on; the nodes may be changed on the way.
    fn walk_list(&mut self, head: Value, start: Value, length: i64, changed: bool) -> Value {
        let (op, region) = self.b().loop_while(&[head, start]);
        let weight = self.weight;
        self.weight *= length as u64;
        let (outer, mark) = self.enter(region);
        let node = self.function.regions[region].args[0];
        let sum = self.function.regions[region].args[1];
        let value = self.b().load(Type::F64, node, eight());
        let sine = self.b().unary(Opcode::Sin, value);
        if changed {
            let product = self.b().binary(Opcode::Fmul, value, sine);
            let new = self.b().unary(Opcode::Cos, product);
            self.b().store(new, node, eight());
        }
        let sum = self.b().binary(Opcode::Fadd, sum, sine);
        let next = self.next_node(node);
        let null = self.function.zero(Type::PTR);
        let more = self.b().icmp(IntPredicate::Ne, next, null);
        self.release(mark);
        self.b().again(more, &[next, sum]);
        self.leave(outer);
        self.weight = weight;
        self.function.ops[op].results[1]
    }

    fn release_list(&mut self, head: Value, length: i64) {
        let (_, region) = self.b().loop_while(&[head]);
        let weight = self.weight;
        self.weight *= length as u64;
        let (outer, mark) = self.enter(region);
        let node = self.function.regions[region].args[0];
        let next = self.next_node(node);
        self.b().free(node);
        let null = self.function.zero(Type::PTR);
        let more = self.b().icmp(IntPredicate::Ne, next, null);
        self.release(mark);
        self.b().again(more, &[next]);
        self.leave(outer);
        self.weight = weight;
    }

    fn next_node(&mut self, node: Value) -> Value {
        let address = self.b().offset_bytes(node, 8);
        self.b().load(Type::PTR, address, eight())
    }

    /// An array of `f32` in memory, filled from doubles and read back.
    fn single_array(&mut self) {
        self.note(Feature::SingleMemory);
        self.note(Feature::Single);
        let length = self.random().between(2, 4);
        let pointer = self.memory(4 * length, true);
        let array = Array {
            pointer,
            length,
            element: Element::Single,
            writable: true,
            object: Some(self.shared.new_object()),
        };
        self.scope.arrays.push(array);
        let four = Alignment::natural(Type::F32);
        for _ in 0..2 {
            let value = self.small(2);
            let single = self.b().cast(Opcode::Fptrunc, value, Type::F32);
            let index = self.index(length);
            let address = self.address(array, index);
            self.b().store(single, address, four);
        }
        let index = self.index(length);
        let address = self.address(array, index);
        let single = self.b().load(Type::F32, address, four);
        let double = self.b().cast(Opcode::Fpext, single, Type::F64);
        self.add_float(double, SMALL);
    }

    /// A table of indices, computed in a loop.
    fn index_array(&mut self) {
        let length = self.random().between(2, 6);
        let below = self.random().between(2, POINTEE);
        if !self.affords(length as u64) {
            return self.new_float();
        }
        let pointer = self.memory(8 * length, false);
        let array = Array {
            pointer,
            length,
            element: Element::Index { below },
            writable: true,
            object: Some(self.shared.new_object()),
        };
        let factor = self.random().between(1, 5);
        self.counted(length, &[], |writer, index, _| {
            let factor = writer.int(factor);
            let product = writer.b().binary(Opcode::Mul, index, factor);
            let limit = writer.int(below);
            let number = writer.b().binary(Opcode::Urem, product, limit);
            let address = writer.address(array, index);
            writer.b().store(number, address, eight());
            Vec::new()
        });
        self.scope.arrays.push(array);
    }

    /// Stops the program, by itself or in a function that gets to see some memory and numbers.
    fn stop(&mut self, int: Value) {
        let float = self.scope.floats.last().map(|float| float.value);
        let array = self.scope.arrays.last().map(|array| array.pointer);
        let (true, Some(float), Some(array)) = (self.random().percent(60), float, array) else {
            self.b().trap("index out of bounds");
            return;
        };
        self.note(Feature::TrapCall);
        let stop = self.shared.module.function_named("stop");
        let stop = stop.unwrap_or_else(|| {
            let params = vec![Type::PTR.into(), Type::F64.into(), Type::I64.into()];
            let mut stop = Function::declare("stop", params, Vec::new());
            stop.facts.noreturn = true;
            self.shared.module.functions.push(stop)
        });
        if self.random().percent(30) {
            self.b().call(stop, &[array, float, int], &[]);
            self.b().trap("it does not come back");
        } else {
            self.b().trap_call(stop, &[array, float, int]);
        }
    }

    /// An early exit that a check guards, which never happens: what bounds checks look like.
    pub(crate) fn checked(&mut self) {
        let Some(&int) = self.scope.ints.last() else {
            return self.new_float();
        };
        self.note(Feature::Trap);
        let limit = self.int(1000);
        let beyond = self.b().icmp(IntPredicate::Sgt, int.value, limit);
        let gives = self.random().percent(40);
        let results: &[Type] = if gives { &[Type::F64] } else { &[] };
        let (op, then_region, else_region) = self.b().if_else(beyond, results);
        let (outer, mark) = self.enter(then_region);
        self.release(mark);
        self.stop(int.value);
        self.leave(outer);
        let (outer, mark) = self.enter(else_region);
        let value = gives.then(|| self.small(2));
        self.release(mark);
        self.b().yields(value.as_slice());
        self.leave(outer);
        if gives {
            let value = self.function.result(op);
            self.add_float(value, SMALL);
        }
    }
}
