//! Memory that only the function itself reads: allocations that do not escape, and memory that its caller discards.
//!
//! Stores to such memory are live only if a live operation reads it. A sum that is accumulated in memory and then discarded is not,
//! though it is loaded in each iteration:
//!
//! ```text
//! for %i … { %a = load f64 %p[i]  %b = fadd f64 %a, %x  store f64 %b, %p[i] }       ; %p is discarded
//! ```

use crate::indices::Indices;
use crate::pointers::{Object, Pointers, object_kind};
use ferrozyme_ir::{Function, Module, Op, OpView, Opcode, Value, all_ops};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The writes and reads of memory that does not escape.
#[derive(Default)]
pub(crate) struct PrivateMemory {
    /// The objects that an operation only writes.
    written: FxHashMap<Op, SmallVec<[Value; 2]>>,
    /// The objects that an operation may read.
    read: FxHashMap<Op, SmallVec<[Value; 2]>>,
    /// The writes of each object.
    writers: FxHashMap<Value, Vec<Op>>,
}

impl PrivateMemory {
    /// Finds it; nothing, in no time, where a function has no such memory.
    pub(crate) fn of(module: &Module, function: &Function) -> PrivateMemory {
        let ops = all_ops(function);
        let makes = |&op: &Op| matches!(function.ops[op].opcode, Opcode::Stack | Opcode::Alloc);
        let discards = function.params.iter().any(|param| param.facts.discarded);
        if !discards && !ops.iter().any(makes) {
            return PrivateMemory::default();
        }
        let indices = Indices::of(function);
        let pointers = Pointers::of(module, &indices);
        let finder = Finder {
            function,
            pointers: &pointers,
        };
        finder.find(&ops)
    }

    /// Whether an operation only writes such memory.
    pub(crate) fn is_write(&self, op: Op) -> bool {
        self.written.contains_key(&op)
    }

    /// The writes to the objects that an operation reads, except those that were returned before.
    pub(crate) fn take_writers_of_read(&mut self, op: Op) -> impl Iterator<Item = Op> + '_ {
        let objects = self.read.remove(&op).into_iter().flatten();
        objects.flat_map(|object| self.writers.remove(&object).into_iter().flatten())
    }
}

struct Finder<'a> {
    function: &'a Function,
    pointers: &'a Pointers,
}

impl Finder<'_> {
    fn find(&self, ops: &[Op]) -> PrivateMemory {
        let returned = self.returned();
        let mut found = PrivateMemory::default();
        for &op in ops {
            let data = &self.function.ops[op];
            let written = match data.view() {
                OpView::Store { address, .. } => Some(address),
                OpView::Fill { destination, .. }
                | OpView::Copy { destination, .. }
                | OpView::Move { destination, .. } => Some(destination),
                _ => None,
            };
            if let Some(objects) = written.and_then(|pointer| self.private(pointer))
                && !objects.iter().any(|object| returned.contains(object))
            {
                for &object in &objects {
                    found.writers.entry(object).or_default().push(op);
                }
                found.written.insert(op, objects);
            }
            // Any other operation with a pointer may read through it.
            let only_written = written
                .and_then(|pointer| data.operands.iter().position(|&operand| operand == pointer));
            let mut read: SmallVec<[Value; 2]> = SmallVec::new();
            for (index, &operand) in data.operands.iter().enumerate() {
                let touches = self.function.ty(operand).is_ptr()
                    && only_written != Some(index)
                    && !matches!(
                        data.opcode,
                        Opcode::Offset
                            | Opcode::Exclusive
                            | Opcode::Free
                            | Opcode::Icmp
                            | Opcode::Select
                            | Opcode::For
                            | Opcode::Loop
                            | Opcode::Yield
                            | Opcode::Again
                    );
                if touches {
                    let bases = self
                        .pointers
                        .bases(self.function, self.pointers.root(operand));
                    match bases.anything {
                        // It may read everything: nothing is private.
                        true => return PrivateMemory::default(),
                        false => read.extend(bases.objects),
                    }
                }
            }
            if !read.is_empty() {
                found.read.insert(op, read);
            }
        }
        found
    }

    /// The objects that a pointer may point into, if all of them are private.
    fn private(&self, pointer: Value) -> Option<SmallVec<[Value; 2]>> {
        let bases = self
            .pointers
            .bases(self.function, self.pointers.root(pointer));
        let alone = !bases.anything
            && !bases.unknown
            && bases.objects.iter().all(|&object| self.is_private(object));
        alone.then_some(bases.objects)
    }

    fn is_private(&self, object: Value) -> bool {
        let arguments = self.function.arguments().iter().zip(&self.function.params);
        let discarded = || {
            let mut arguments = arguments.clone();
            arguments.any(|(&argument, param)| argument == object && param.facts.discarded)
        };
        let own = match object_kind(self.function, object) {
            Some(Object::Local) => true,
            Some(Object::Exclusive) => discarded(),
            _ => false,
        };
        own && !self.pointers.is_escaped(object)
    }

    /// The objects that the function's results may point into.
    fn returned(&self) -> Vec<Value> {
        let end = self.function.terminator(self.function.body());
        let operands = self.function.ops[end].operands.iter();
        operands
            .filter(|&&value| self.function.ty(value).is_ptr())
            .flat_map(|&value| {
                let root = self.pointers.root(value);
                self.pointers.bases(self.function, root).objects
            })
            .collect()
    }
}
