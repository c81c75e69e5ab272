//! Expands `realloc` to an allocation, a copy, and a free, if the old size can be determined.
//!
//! A call of `realloc` does not give the old size. The pointer is followed back to its allocations, through phis and
//! `select`s, which then carry the size beside it.
//!
//! ```text
//! %p = phi ptr [ %first, … ], [ %q, … ]                  %p = phi ptr [ %first, … ], [ %q, … ]
//! %q = call ptr @realloc(ptr %p, i64 %n)          →      %s = phi i64 [ %first.size, … ], [ %n, … ]
//!                                                        %q = call ptr @malloc(i64 %n)
//!                                                        call void @llvm.memcpy(ptr %q, ptr %p, umin(%s, %n))
//!                                                        call void @free(ptr %p)
//! ```
//!
//! Assumes that LLVM has promoted memory to values. A `realloc` of unknown old size stays, and the importer refuses it.

use super::Importer;
use super::call::called_function;
use ferrozyme_convention::allocation::{allocator_named, c_function};
use ferrozyme_library::{AllocationFunction, AllocationRole};
use ferrozyme_llvm::{IntPredicate, Opcode, Value, ValueKind};
use rustc_hash::{FxHashMap, FxHashSet};

impl<'c> Importer<'c, '_> {
    /// Replaces what `realloc` does in a function.
    pub(super) fn replace_resizes(&self, function: Value<'c>) {
        let resizes: Vec<Value<'c>> = function
            .instructions()
            .filter(|&instruction| {
                let known = allocator(instruction);
                known.is_some_and(|known| known.role == AllocationRole::Reallocate)
            })
            .collect();
        // All sizes first: they lead from one `realloc` to another.
        let mut known = FxHashMap::default();
        let found: Vec<(Value<'c>, Value<'c>)> = resizes
            .into_iter()
            .filter(|call| has_size(call.arguments()[0], &mut FxHashSet::default()))
            .map(|call| (call, self.size_of(call.arguments()[0], &mut known)))
            .collect();
        for (call, old_size) in found {
            self.replace_resize(call, old_size);
        }
    }

    fn replace_resize(&self, call: Value<'c>, old_size: Value<'c>) {
        let arguments = call.arguments();
        let (pointer, size) = (arguments[0], arguments[1]);
        let builder = self.context.builder();
        builder.before(call);
        let location = call.debug_location(self.context);
        builder.set_location(location);
        let memory = builder.call_function(c_function(self.llvm, "malloc"), &[size]);
        let less = builder.compare_integers(IntPredicate::Ult, old_size, size);
        let kept = builder.select(less, old_size, size);
        builder.copy(memory, 8, pointer, 8, kept);
        builder.call_function(c_function(self.llvm, "free"), &[pointer]);
        call.replace_uses_with(memory);
        call.erase();
    }

    /// The size of the memory that a pointer leads to, which [`has_size`] has found to be known.
    fn size_of(
        &self,
        pointer: Value<'c>,
        known: &mut FxHashMap<Value<'c>, Value<'c>>,
    ) -> Value<'c> {
        if let Some(&size) = known.get(&pointer) {
            return size;
        }
        let word = self.context.integer(64);
        let builder = self.context.builder();
        let size = match pointer.opcode() {
            Some(Opcode::Phi) => {
                builder.before(pointer);
                let phi = builder.phi(word);
                // Before what it takes, which may lead back to it.
                known.insert(pointer, phi);
                for (value, from) in pointer.incoming() {
                    let value = self.size_of(value, known);
                    phi.add_incoming(value, from);
                }
                phi
            }
            Some(Opcode::Select) => {
                let then = self.size_of(pointer.operand(1), known);
                let otherwise = self.size_of(pointer.operand(2), known);
                builder.before(pointer);
                builder.select(pointer.operand(0), then, otherwise)
            }
            Some(Opcode::Call) => {
                let known = allocator(pointer).expect("its size is known");
                let argument = |position: u32| pointer.arguments()[position as usize];
                let size = known.size.map_or(word.zero(), argument);
                match known.count {
                    None => size,
                    Some(count) => {
                        builder.before(pointer);
                        builder.binary(Opcode::Mul, argument(count), size)
                    }
                }
            }
            _ => word.zero(),
        };
        known.insert(pointer, size);
        size
    }
}

/// Whether a pointer comes from calls that say the size of the memory, or is null, whichever way it came.
fn has_size<'c>(pointer: Value<'c>, seen: &mut FxHashSet<Value<'c>>) -> bool {
    let nothing = matches!(
        pointer.kind(),
        ValueKind::NullPointer | ValueKind::Undef | ValueKind::Poison
    );
    if nothing || !seen.insert(pointer) {
        return true;
    }
    if seen.len() > 64 {
        return false;
    }
    match pointer.opcode() {
        Some(Opcode::Phi) => {
            let incoming = pointer.incoming();
            incoming.into_iter().all(|(value, _)| has_size(value, seen))
        }
        Some(Opcode::Select) => {
            has_size(pointer.operand(1), seen) && has_size(pointer.operand(2), seen)
        }
        Some(Opcode::Call) => allocator(pointer).is_some(),
        _ => false,
    }
}

/// The function of C's allocator that an instruction calls for memory.
fn allocator(instruction: Value<'_>) -> Option<&'static AllocationFunction> {
    if !instruction.is(Opcode::Call) {
        return None;
    }
    let known = allocator_named(&called_function(instruction)?.name())?;
    let is_of_c = known.family == "malloc" && known.gives_memory();
    let given = instruction.arguments().len() as u32;
    (is_of_c && given == known.argument_count()).then_some(known)
}
