//! Allocations and frees in the forward sweep of reverse mode.
//!
//! Memory that the reverse sweep still needs is freed after it (see `deferral.rs`), and the gradient of freed memory of the caller is not lost (see `given_memory.rs`).

use super::{Lists, Reversible, list_of};
use crate::deferral::{self, ListKey, Manner};
use crate::given_memory::{self, Action};
use crate::memory::{self, Released};
use crate::shadows::Sweep;
use crate::step::Step;
use crate::unions;
use ferrozyme_ir::{Alignment, Builder, IntPredicate, Op, Opcode, Payload, Type, Value};
use ferrozyme_refusal::Refusal;

impl Sweep<'_, Reversible<'_>> {
    pub(super) fn visit_allocation(&mut self, op: Op) {
        let result = self.function.result(op);
        let shadowed = self.has_shadow(result);
        let on_stack = self.function.ops[op].opcode == Opcode::Stack;
        let to_heap = on_stack && self.mode.task.split && shadowed;
        if to_heap {
            // The reverse sweep runs after this function has returned.
            let Payload::Align(align) = self.function.ops[op].payload else {
                unreachable!("a verified stack operation has an alignment")
            };
            let data = &mut self.function.ops[op];
            data.opcode = Opcode::Alloc;
            data.payload = Payload::Alloc {
                align,
                zeroed: false,
                family: "".into(),
            };
        }
        self.keep(op);
        self.set_to_zero(op);
        let mut pointers = vec![result];
        if shadowed {
            let shadow = self.allocate_shadows(op)[0];
            pointers.push(shadow);
            if let Some(register) = list_of(&self.mode.pending, &ListKey::Register)
                && !on_stack
            {
                let add = Action::Add.function(self.module_mut());
                let mut b = self.builder(op);
                b.call(add, &[register, shadow], &[]);
            }
        }
        let release = self.mode.releases.get(&op);
        let (manner, size) = match release.map(|release| &self.function.ops[*release]) {
            // It is told what the allocation asked for, which is at hand in the reverse sweep.
            Some(release) => (
                Manner::of(release),
                (release.operands.len() > 1).then(|| self.function.ops[op].size()),
            ),
            None => (Manner::own(), None),
        };
        let is_released = release.is_some();
        let region_works = self.mode.regions.contains(self.region);
        let is_reversed = region_works || self.region == self.function.body();
        if to_heap && !is_reversed {
            self.defer(op, &manner, size, &pointers);
        } else if to_heap || (region_works && is_released) {
            let step = Step::Release {
                pointers,
                size,
                manner,
            };
            self.mode.steps.insert(op, step);
        }
    }

    /// Where floats share their place with other things, what was never set must look like a number, which is the same as its shadow: padding is moved along in parts of words.
    fn set_to_zero(&mut self, op: Op) {
        let data = &self.function.ops[op];
        let (result, size) = (data.results[0], data.size());
        if !self.is_in_union(result) {
            return;
        }
        match &mut self.function.ops[op].payload {
            Payload::Alloc { zeroed, .. } => *zeroed = true,
            _ => {
                let mut b = self.builder(op);
                let zero = b.zero(Type::I8);
                b.fill(result, zero, size, Alignment::ONE);
            }
        }
    }

    /// Puts off the release of memory until the reverse sweep is over.
    fn defer(&mut self, op: Op, manner: &Manner, size: Option<Value>, pointers: &[Value]) {
        let shared = self.mode.task.lists == Lists::Shared;
        let mut words = Vec::new();
        let key = if shared {
            let number = self.mode.callees.manners().iter().position(|m| m == manner);
            let number = number.expect("the manners are all that the module knows");
            let zero = self.function.int(Type::I64, 0);
            words.push(size.unwrap_or(zero));
            words.push(self.function.int(Type::I64, number as i128));
            ListKey::Shared
        } else {
            words.extend(size);
            let function = &self.function;
            ListKey::of(&self.mode.own_objects, function, pointers[0], manner)
        };
        let list = self.list(&key);
        let defer = deferral::defer_function(self.module_mut(), &key);
        let call = |b: &mut Builder<'_>, pointer: Value| {
            let mut args = vec![list, pointer];
            args.extend(&words);
            b.call(defer, &args, &[]);
        };
        let function = &self.function;
        let is_apart = memory::has_shadow_apart(self.objects, function, pointers[0]);
        let mut b = self.builder(op);
        call(&mut b, pointers[0]);
        for &shadow in &pointers[1..] {
            let pair = (pointers[0], shadow);
            memory::release_shadow(&mut b, pair, is_apart, |b| call(b, shadow));
        }
    }

    /// A list of memory to be released later.
    pub(super) fn list(&self, key: &ListKey) -> Value {
        list_of(&self.mode.pending, key)
            .expect("a function's lists include all that it and its callees use")
    }

    pub(super) fn visit_free(&mut self, op: Op) {
        let data = self.function.ops[op].clone();
        if let Some(made) = self.mode.releases.get(&op) {
            let made_here = self.function.result(*made);
            let region_works = self.mode.regions.contains(self.region);
            match (region_works, self.shadow_of(made_here)) {
                // The reverse of the allocation releases it.
                (true, _) => {}
                (false, None) => self.keep(op),
                (false, Some(shadow)) => {
                    self.keep(op);
                    let mut b = self.builder(op);
                    Manner::of(&data).release(&mut b, shadow, data.operands.get(1).copied());
                }
            }
            return;
        }
        let (address, size) = (data.address(), data.operands.get(1).copied());
        let mut pointers = vec![address];
        if let Some(shadow) = self.shadow_of(address) {
            pointers.push(shadow);
            self.note_release(op, (address, shadow), size);
        }
        self.defer(op, &Manner::of(&data), size, &pointers);
    }

    /// Notes that memory is released that the caller may have given, and where its contents have gone.
    fn note_release(&mut self, op: Op, (address, shadow): (Value, Value), size: Option<Value>) {
        let Some(register) = list_of(&self.mode.pending, &ListKey::Register) else {
            return;
        };
        let objects = self.objects;
        let function = &self.function;
        let Some((class, _)) = objects.class_of(function, address) else {
            return;
        };
        if objects.is_made_here(class) || !self.activities.is_active_class(class) {
            return;
        }
        let cells = match Released::at(objects, function, address) {
            Released::NoFloats => return,
            Released::Unclear => {
                let is_given = Action::IsGiven.function(self.module_mut());
                let mut b = self.builder(op);
                let differs = b.icmp(IntPredicate::Ne, shadow, address);
                unions::when(&mut b, differs, |b| {
                    let given = b.call(is_given, &[register, shadow], &[Type::I1]);
                    let given = b.function.result(given);
                    memory::stop_if(b, given, &Refusal::UnclearRelease);
                });
                return;
            }
            Released::Floats(cells) => cells,
        };
        let successor = size.and_then(|size| self.successor_of(address, size));
        let number = self.mode.callees.number_of_layout(&cells);
        let manner = Manner::of(&self.function.ops[op]);
        let measure = (size.is_none() && manner.is_of_c())
            .then(|| given_memory::measure_function(self.module_mut()));
        let [is_given, remove, note] = [Action::IsGiven, Action::Remove, Action::Note]
            .map(|action| action.function(self.module_mut()));
        let mut b = self.builder(op);
        let differs = b.icmp(IntPredicate::Ne, shadow, address);
        unions::when(&mut b, differs, |b| {
            let given = b.call(is_given, &[register, shadow], &[Type::I1]);
            let given = b.function.result(given);
            unions::when(b, given, |b| {
                let number = b.i64(number as i64);
                if let Some((new, bytes)) = successor {
                    // Seeds are for what is there in the end, which is in the new memory.
                    memory::return_floats(b, &cells, shadow, Some(new), bytes, false);
                    b.call(note, &[register, shadow, new, bytes, number], &[]);
                    b.call(remove, &[register, new], &[]);
                }
                let size = match (size, measure) {
                    (Some(size), _) => {
                        if successor.is_none() {
                            memory::stop_unless_zero(b, &cells, shadow, size, &Refusal::LostSeed);
                        }
                        size
                    }
                    (None, Some(measure)) => {
                        given_memory::measure_shadow(b, measure, &cells, shadow)
                    }
                    (None, None) => return memory::stop_if(b, given, &Refusal::UnsizedRelease),
                };
                let null = b.zero(Type::PTR);
                b.call(note, &[register, shadow, null, size, number], &[]);
            });
        });
    }

    /// The shadow of the memory that takes the place of what is released now, and how many bytes it took over: where memory was resized.
    ///
    /// Resizing allocates, copies as much as there was and is, and releases. That tells it from a copy of the contents for other purposes, which copies what is in memory and not
    /// what it has room for. New memory that is released in the same list of operations takes nobody's place.
    fn successor_of(&self, address: Value, size: Value) -> Option<(Value, Value)> {
        let function = &self.function;
        let ops = &function.regions[self.region].ops;
        let copy = ops.iter().rev().find(|&&op| {
            let data = &function.ops[op];
            data.opcode == Opcode::Copy && data.source() == address
        })?;
        let copy = &function.ops[*copy];
        let (to, bytes) = (copy.destination(), copy.size());
        let (made, _) = function.def_op(to)?;
        let is_made_here = function.ops[made].opcode == Opcode::Alloc && ops.contains(&made);
        if !is_made_here || self.mode.releases.contains_key(&made) {
            return None;
        }
        let new_size = function.ops[made].size();
        let is_smaller_of_both = function.def_op(bytes).is_some_and(|(op, _)| {
            let data = &function.ops[op];
            data.opcode == Opcode::Umin
                && data.operands.contains(&size)
                && data.operands.contains(&new_size)
        });
        let is_all = bytes == size && !function.is_constant(size);
        let shadow = self.shadow_of(to)?;
        (is_smaller_of_both || is_all).then_some((shadow, bytes))
    }
}
