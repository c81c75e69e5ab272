//! Structures that own the memory behind their pointers, and the functions that people write around them: one that makes what it returns
//! through a pointer (or calls another that does), one that replaces it, one that releases it, and one that lets a structure point to memory
//! that it was given.
//!
//! The memory of an owner may be replaced by any call that gets to see the owner. So its pointers never stay in scope: they are read where
//! they are used.

use super::helper::{Helper, Outcome, Parameter, Role, define, finish, start};
use super::memory::eight;
use super::scope::{Array, Element, Float, Owned, Owner, POINTEE, SMALL};
use super::writer::{Shared, Writer};
use crate::feature::Feature;
use ferrozyme_ir::{FunctionId, IntPredicate, Opcode, Type, Value};

/// What an owner looks like. Each of its pointers leads to [`POINTEE`] doubles of the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// One pointer.
    Box,
    /// One pointer, or null.
    Maybe,
    /// A double, an index below [`POINTEE`], and a pointer.
    Record,
    /// Two pointers.
    Pair,
}

impl Shape {
    const ALL: [Shape; 4] = [Shape::Box, Shape::Maybe, Shape::Record, Shape::Pair];

    fn bytes(self) -> i64 {
        match self {
            Shape::Box | Shape::Maybe => 8,
            Shape::Pair => 16,
            Shape::Record => 24,
        }
    }

    /// Where its pointers are.
    fn pointers(self) -> &'static [i64] {
        match self {
            Shape::Box | Shape::Maybe => &[0],
            Shape::Record => &[16],
            Shape::Pair => &[0, 8],
        }
    }
}

/// A function that makes what an owner owns: anew, or by calling another.
pub(crate) fn write_maker(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::MadeInArgument);
    shared.features.note(Feature::Heap);
    let shape = shared.random.pick(&Shape::ALL);
    let mut params = vec![Parameter::Slot, Parameter::Float];
    if shared.random.percent(60) {
        params.push(Parameter::Array {
            length: POINTEE,
            writable: shared.random.percent(30),
            noalias: false,
        });
    }
    let function = define(shared, &format!("fill{number}"), &params, Vec::new());
    let mut writer = start(shared, function, &params);
    let slot = writer.function.arguments()[0];
    if writer.random().percent(40) {
        writer.limit = 4;
        writer.block(4);
    }
    let inner = writer.helper_of(Role::Maker(shape));
    match inner {
        Some(inner) if writer.random().percent(40) => writer.fill_by(&inner, slot, shape),
        _ => writer.fill_owner(slot, shape),
    }
    let role = Role::Maker(shape);
    finish(writer, params, Vec::new(), &[], role);
}

/// A function that puts other memory in the place of what an owner owns.
pub(crate) fn write_replacer(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::Replaced);
    let shape = shared.random.pick(&Shape::ALL);
    let params = vec![Parameter::Owner { shape }, Parameter::Float];
    let gives = shared.random.percent(40);
    let results = vec![Outcome::Float; usize::from(gives)];
    let types = vec![Type::F64; results.len()];
    let function = define(shared, &format!("replace{number}"), &params, types);
    let mut writer = start(shared, function, &params);
    let slot = writer.function.arguments()[0];
    if writer.random().percent(30) {
        writer.limit = 4;
        writer.block(4);
    }
    for &at in shape.pointers() {
        writer.replace_memory(slot, at, shape);
    }
    let values: Vec<Value> = results.iter().map(|_| writer.small(2)).collect();
    finish(writer, params, results, &values, Role::General);
}

/// A function that releases what an owner owns.
pub(crate) fn write_dropper(shared: &mut Shared<'_>, number: usize) {
    let shape = shared.random.pick(&Shape::ALL);
    let params = vec![Parameter::Slot];
    let function = define(shared, &format!("drop{number}"), &params, Vec::new());
    let mut writer = start(shared, function, &params);
    let slot = writer.function.arguments()[0];
    writer.drop_contents(slot, shape);
    finish(writer, params, Vec::new(), &[], Role::Dropper(shape));
}

/// A function that lets a structure point to memory that it is given.
pub(crate) fn write_linker(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::Linked);
    let record = Parameter::Object {
        element: Element::Record,
        length: 1,
    };
    let params = vec![record, Parameter::Kept, Parameter::Float];
    let function = define(shared, &format!("link{number}"), &params, Vec::new());
    let mut writer = start(shared, function, &params);
    let arguments = writer.function.arguments().to_vec();
    if writer.random().percent(40) {
        writer.limit = 4;
        writer.block(4);
    }
    let address = writer.field(arguments[0], 16);
    writer.b().store(arguments[1], address, eight());
    if writer.random().percent(50) {
        let value = writer.small(1);
        writer.b().store(value, arguments[0], eight());
    }
    finish(writer, params, Vec::new(), &[], Role::Linker);
}

impl Writer<'_, '_> {
    /// One statement that makes or uses an owner.
    pub(crate) fn owner_statement(&mut self) {
        let owners = self.scope.owners.len();
        if owners == 0 || self.random().percent(35) {
            let shape = self.random().pick(&Shape::ALL);
            return self.make_owner(shape);
        }
        let at = self.random().below(owners);
        let owner = self.scope.owners[at];
        match self.random().below(10) {
            0..=4 => self.use_owner(owner),
            5 => self.move_owner(at),
            _ => self.pass_contents(owner),
        }
    }

    /// One of the functions with a role, if there is one that costs not too much here.
    pub(crate) fn helper_of(&mut self, role: Role) -> Option<Helper> {
        let helpers = self.shared.helpers.iter();
        let fitting: Vec<Helper> = helpers
            .filter(|helper| helper.role == role && self.affords_call(helper))
            .cloned()
            .collect();
        match fitting.len() {
            0 => None,
            count => Some(fitting[self.random().below(count)].clone()),
        }
    }

    /// New memory for a structure that is nobody's yet.
    fn slot(&mut self, shape: Shape) -> (Value, bool) {
        let size = self.int(shape.bytes());
        match self.random().percent(70) {
            true => (self.b().stack(size, eight()), false),
            false => (self.b().alloc(size, eight(), false), true),
        }
    }

    /// An owner in new memory, whose contents come from a function if there is one.
    pub(crate) fn make_owner(&mut self, shape: Shape) {
        if self.reads_only {
            return self.new_float();
        }
        let (slot, heap) = self.slot(shape);
        match self.helper_of(Role::Maker(shape)) {
            Some(maker) if self.random().percent(90) => {
                let made = self.call_with(&maker, slot);
                if !made {
                    self.fill_owner(slot, shape);
                }
            }
            _ => self.fill_owner(slot, shape),
        }
        self.own(slot, shape, heap);
        if self.random().percent(70) {
            self.use_owner(Owner { slot, shape });
        }
    }

    /// Brings an owner into scope.
    fn own(&mut self, slot: Value, shape: Shape, heap: bool) {
        self.note(Feature::Owner);
        let by = self.helper_of(Role::Dropper(shape)).map(|helper| helper.id);
        self.scope.owned.push(Owned::Contents { slot, shape, by });
        if heap {
            self.scope.owned.push(Owned::Memory(slot));
        }
        self.scope.owners.push(Owner { slot, shape });
    }

    /// Calls a function whose first parameter is a slot.
    fn call_with(&mut self, helper: &Helper, slot: Value) -> bool {
        let Some(arguments) = self.call_arguments(helper, Some(slot)) else {
            return false;
        };
        self.note(Feature::Call);
        self.cost += helper.cost * self.weight;
        self.b().call(helper.id, &arguments, &[]);
        true
    }

    /// Lets another function fill a slot: this one, or one of this function's own that is moved over.
    fn fill_by(&mut self, inner: &Helper, slot: Value, shape: Shape) {
        let moved = self.random().percent(50);
        let target = match moved {
            true => {
                let size = self.int(shape.bytes());
                self.b().stack(size, eight())
            }
            false => slot,
        };
        if !self.call_with(inner, target) {
            return self.fill_owner(slot, shape);
        }
        if moved {
            let bytes = self.int(shape.bytes());
            self.b().copy(slot, target, bytes, eight());
        }
        if shape != Shape::Maybe && self.random().percent(50) {
            self.use_owner(Owner { slot, shape });
        }
    }

    /// Gives a slot its contents.
    fn fill_owner(&mut self, slot: Value, shape: Shape) {
        if shape == Shape::Record {
            let value = self.small(1);
            self.b().store(value, slot, eight());
            let number = self.index(POINTEE);
            let address = self.field(slot, 8);
            self.b().store(number, address, eight());
        }
        for &at in shape.pointers() {
            if shape != Shape::Maybe {
                self.new_contents(slot, at);
                continue;
            }
            let condition = self.condition();
            let (_, then_region, else_region) = self.b().if_else(condition, &[]);
            let (outer, mark) = self.enter(then_region);
            self.new_contents(slot, at);
            self.release(mark);
            self.b().yields(&[]);
            self.leave(outer);
            let (outer, mark) = self.enter(else_region);
            let null = self.function.zero(Type::PTR);
            self.b().store(null, slot, eight());
            self.release(mark);
            self.b().yields(&[]);
            self.leave(outer);
        }
    }

    /// New memory of the heap behind a pointer of a slot; it may be filled before it gets there, or afterwards.
    fn new_contents(&mut self, slot: Value, at: i64) {
        let size = self.int(8 * POINTEE);
        let pointer = self.b().alloc(size, eight(), false);
        let address = self.field(slot, at);
        let late = self.random().percent(40);
        if late {
            self.b().store(pointer, address, eight());
        }
        let through = match late && self.random().percent(50) {
            true => self.b().load(Type::PTR, address, eight()),
            false => pointer,
        };
        let array = contents(through);
        self.initialise(array);
        if !late {
            self.b().store(pointer, address, eight());
        }
    }

    /// `new = f(old); free(old); slot = new`, or new memory where there was none.
    fn replace_memory(&mut self, slot: Value, at: i64, shape: Shape) {
        let address = self.field(slot, at);
        if shape == Shape::Maybe {
            let old = self.b().load(Type::PTR, address, eight());
            let null = self.function.zero(Type::PTR);
            let some = self.b().icmp(IntPredicate::Ne, old, null);
            let (_, then_region, else_region) = self.b().if_else(some, &[]);
            let (outer, mark) = self.enter(then_region);
            self.replace_contents(address);
            self.release(mark);
            self.b().yields(&[]);
            self.leave(outer);
            let (outer, mark) = self.enter(else_region);
            self.new_contents(slot, at);
            self.release(mark);
            self.b().yields(&[]);
            self.leave(outer);
        } else {
            self.replace_contents(address);
        }
    }

    fn replace_contents(&mut self, address: Value) {
        let old = self.b().load(Type::PTR, address, eight());
        let size = self.int(8 * POINTEE);
        let new = self.b().alloc(size, eight(), false);
        if self.random().percent(30) {
            self.b().copy(new, old, size, eight());
        } else {
            self.counted(POINTEE, &[], |writer, index, _| {
                let from = writer.load_double(contents(old), index);
                let factor = writer.small(1);
                let product = writer.b().binary(Opcode::Fmul, from.value, factor);
                let value = writer.squash(Float {
                    value: product,
                    bound: SMALL * SMALL,
                });
                let to = writer.address(contents(new), index);
                writer.b().store(value, to, eight());
                Vec::new()
            });
        }
        self.b().free(old);
        self.b().store(new, address, eight());
    }

    /// Reads, and perhaps changes, a number that an owner owns.
    fn use_owner(&mut self, owner: Owner) {
        let pointers = owner.shape.pointers();
        let at = self.random().below(pointers.len());
        let address = self.field(owner.slot, pointers[at]);
        let pointer = self.b().load(Type::PTR, address, eight());
        if owner.shape != Shape::Maybe {
            let value = self.use_contents(pointer);
            self.add_float(value, SMALL);
            return;
        }
        let null = self.function.zero(Type::PTR);
        let some = self.b().icmp(IntPredicate::Ne, pointer, null);
        let (op, then_region, else_region) = self.b().if_else(some, &[Type::F64]);
        let (outer, mark) = self.enter(then_region);
        let value = self.use_contents(pointer);
        self.release(mark);
        self.b().yields(&[value]);
        self.leave(outer);
        let (outer, mark) = self.enter(else_region);
        let value = self.small(1);
        self.release(mark);
        self.b().yields(&[value]);
        self.leave(outer);
        let value = self.function.result(op);
        self.add_float(value, SMALL);
    }

    fn use_contents(&mut self, pointer: Value) -> Value {
        let index = self.index(POINTEE);
        let element = self.load_double(contents(pointer), index);
        if self.random().percent(40) && !self.reads_only {
            let factor = self.small(1);
            let product = self.b().binary(Opcode::Fmul, element.value, factor);
            let value = self.squash(Float {
                value: product,
                bound: SMALL * SMALL,
            });
            let address = self.address(contents(pointer), index);
            self.b().store(value, address, eight());
        }
        element.value
    }

    /// Moves a structure to another place, which owns its contents from then on.
    fn move_owner(&mut self, at: usize) {
        let Owner { slot, shape } = self.scope.owners[at];
        // What was made outside of this region must be released there.
        let here = self.scope.owned.iter().rposition(
            |owned| matches!(owned, Owned::Contents { slot: other, .. } if *other == slot),
        );
        let Some(position) = here.filter(|&position| position >= self.region_owned) else {
            return self.use_owner(Owner { slot, shape });
        };
        self.note(Feature::MixedCopy);
        let size = self.int(shape.bytes());
        let target = self.b().stack(size, eight());
        self.b().copy(target, slot, size, eight());
        self.scope.owners[at].slot = target;
        if let Owned::Contents { slot, .. } = &mut self.scope.owned[position] {
            *slot = target;
        }
        self.use_owner(Owner {
            slot: target,
            shape,
        });
    }

    /// Calls a function with memory that an owner owns. It must not get to see the owner as well, which it might replace.
    fn pass_contents(&mut self, owner: Owner) {
        if owner.shape == Shape::Maybe || self.shared.helpers.is_empty() {
            return self.use_owner(owner);
        }
        let pointers = owner.shape.pointers();
        let at = self.random().below(pointers.len());
        let address = self.field(owner.slot, pointers[at]);
        let pointer = self.b().load(Type::PTR, address, eight());
        let arrays = self.scope.arrays.len();
        let owners = std::mem::take(&mut self.scope.owners);
        self.scope.arrays.push(contents(pointer));
        self.call_statement();
        self.scope.owners = owners;
        // What came back may point there.
        self.scope.arrays.truncate(arrays);
    }

    /// Releases what an owner owns.
    pub(crate) fn drop_owner(&mut self, slot: Value, shape: Shape, by: Option<FunctionId>) {
        match by {
            Some(dropper) => {
                self.b().call(dropper, &[slot], &[]);
            }
            None => self.drop_contents(slot, shape),
        }
    }

    fn drop_contents(&mut self, slot: Value, shape: Shape) {
        for &at in shape.pointers() {
            let address = self.field(slot, at);
            let pointer = self.b().load(Type::PTR, address, eight());
            self.b().free(pointer);
        }
    }
}

/// Memory behind a pointer of an owner.
fn contents(pointer: Value) -> Array {
    Array {
        pointer,
        length: POINTEE,
        element: Element::Double,
        writable: true,
        object: None,
    }
}
