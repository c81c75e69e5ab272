//! Removes round trips of pointers through integers.
//!
//! LLVM merges `ptrtoint ptr %new` with the constant 8, a dangling address, and casts the result back to a pointer: this happens for the
//! memory of a `Vec` that may be empty. With pointers throughout, the underlying object is known.
//!
//! ```text
//! %n = ptrtoint ptr %new to i64                          %q = phi ptr [ inttoptr (i64 8), … ], [ %new, … ]
//! %m = phi i64 [ 8, %none ], [ %n, %some ]        →
//! %q = inttoptr i64 %m to ptr
//! ```

use super::Importer;
use ferrozyme_llvm::{GepFlags, Opcode, Value, ValueKind};
use rustc_hash::{FxHashMap, FxHashSet};

impl<'c> Importer<'c, '_> {
    /// Replaces pointers made of integers by those that the integers were made of, where these can be found.
    pub(super) fn straighten_pointers(&self, function: Value<'c>) {
        let made: Vec<Value<'c>> = function
            .instructions()
            .filter(|instruction| instruction.is(Opcode::IntToPtr) && is_pointer(*instruction))
            .collect();
        let mut known: FxHashMap<Value<'c>, Value<'c>> = FxHashMap::default();
        for pointer in made {
            let integer = pointer.operand(0);
            let mut seen = FxHashSet::default();
            let mut from_pointer = false;
            if is_address(integer, &mut seen, &mut from_pointer) && from_pointer {
                let straight = self.straight(integer, &mut known);
                pointer.replace_uses_with(straight);
                pointer.erase();
            }
        }
    }

    /// The pointer that an integer stands for, which [`is_address`] has found to be one.
    fn straight(
        &self,
        integer: Value<'c>,
        known: &mut FxHashMap<Value<'c>, Value<'c>>,
    ) -> Value<'c> {
        if let Some(&pointer) = known.get(&integer) {
            return pointer;
        }
        let ty = self.context.pointer();
        let builder = self.context.builder();
        let pointer = match integer.opcode() {
            _ if integer.kind() == ValueKind::ConstantInteger => integer.constant_to_pointer(ty),
            Some(Opcode::PtrToInt | Opcode::PtrToAddr) => integer.operand(0),
            Some(Opcode::Freeze) => self.straight(integer.operand(0), known),
            Some(Opcode::Phi) => {
                builder.before(integer);
                let phi = builder.phi(ty);
                // Before what it takes, which may lead back to it.
                known.insert(integer, phi);
                for (value, from) in integer.incoming() {
                    let value = self.straight(value, known);
                    phi.add_incoming(value, from);
                }
                phi
            }
            Some(Opcode::Select) => {
                let then = self.straight(integer.operand(1), known);
                let otherwise = self.straight(integer.operand(2), known);
                builder.before(integer);
                builder.select(integer.operand(0), then, otherwise)
            }
            Some(Opcode::Add) => {
                let (base, distance) = sum_parts(integer);
                let base = self.straight(base, known);
                builder.before(integer);
                builder.offset(base, distance, GepFlags::NONE)
            }
            // A load: the same memory, read as what it is.
            _ => {
                builder.before(integer);
                let load = builder.load(ty, integer.operand(0));
                load.set_alignment(integer.alignment());
                load.set_debug_location(integer.debug_location(self.context));
                load
            }
        };
        known.insert(integer, pointer);
        pointer
    }
}

fn is_pointer(value: Value<'_>) -> bool {
    value.ty().is_pointer() && value.ty().address_space() == 0
}

/// Whether an integer is an address in disguise: made of pointers, constants and what is loaded, by choices and sums. `from_pointer`
/// is set where a pointer or a load is found.
fn is_address<'c>(
    integer: Value<'c>,
    seen: &mut FxHashSet<Value<'c>>,
    from_pointer: &mut bool,
) -> bool {
    if integer.ty().integer_width() != Some(64) {
        return false;
    }
    if integer.kind() == ValueKind::ConstantInteger || !seen.insert(integer) {
        return true;
    }
    if seen.len() > 64 {
        return false;
    }
    match integer.opcode() {
        Some(Opcode::PtrToInt | Opcode::PtrToAddr) => {
            *from_pointer = true;
            is_pointer(integer.operand(0))
        }
        _ if !integer.is_instruction() => false,
        Some(Opcode::Freeze) => is_address(integer.operand(0), seen, from_pointer),
        Some(Opcode::Phi) => {
            let incoming = integer.incoming();
            incoming
                .into_iter()
                .all(|(value, _)| is_address(value, seen, from_pointer))
        }
        Some(Opcode::Select) => {
            is_address(integer.operand(1), seen, from_pointer)
                && is_address(integer.operand(2), seen, from_pointer)
        }
        Some(Opcode::Add) => {
            let (base, _) = sum_parts(integer);
            base.kind() != ValueKind::ConstantInteger && is_address(base, seen, from_pointer)
        }
        Some(Opcode::Load) => {
            *from_pointer = true;
            !integer.is_volatile() && integer.ordering() == ferrozyme_llvm::Ordering::NotAtomic
        }
        _ => false,
    }
}

/// The address and the distance of a sum: the address is what was a pointer directly, or the first part.
fn sum_parts(sum: Value<'_>) -> (Value<'_>, Value<'_>) {
    let (a, b) = (sum.operand(0), sum.operand(1));
    let direct =
        |value: Value<'_>| matches!(value.opcode(), Some(Opcode::PtrToInt | Opcode::PtrToAddr));
    if direct(b) && !direct(a) {
        (b, a)
    } else {
        (a, b)
    }
}
