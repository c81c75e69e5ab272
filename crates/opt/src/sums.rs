//! Sums: floats that a loop carries and only adds to, until it is over.
//!
//! ```text
//! %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
//!   %b = fadd f64 %a, %x        ; %a has no other use
//!   %c = fsub f64 %b, %y        ; nor has %b
//!   yield %c                    ; nor %c
//! }
//! ```
//!
//! All terms of a sum have the same adjoint. Nothing sees the order in which they are added but by rounding, which some programs live from; those look at sums that are not complete.

use crate::carried::Carried;
use crate::uses::Uses;
use ferrozyme_ir::{Effect, Function, Op, Opcode, Region, Structure, Value};
use smallvec::SmallVec;

/// An operation that adds to a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addition {
    /// The operation.
    pub op: Op,
    /// Which of its operands is the sum so far.
    pub place: usize,
}

impl Addition {
    /// What an operation does with one of its operands, if it adds to it or subtracts from it.
    pub fn to(function: &Function, (op, place): (Op, usize)) -> Option<Addition> {
        let adds = matches!(
            (function.ops[op].opcode, place),
            (Opcode::Fadd, _) | (Opcode::Fsub, 0) | (Opcode::Fma, 2)
        );
        adds.then_some(Addition { op, place })
    }

    /// The operands but for the sum so far.
    pub fn terms(self, function: &Function) -> SmallVec<[Value; 2]> {
        let mut terms: SmallVec<[Value; 2]> = SmallVec::from_slice(&function.ops[self.op].operands);
        terms.remove(self.place);
        terms
    }
}

/// The additions that an iteration of a loop makes to a carried value, in order; none if it or what becomes of it is used for anything else before the loop is over.
pub fn carried_sum(
    function: &Function,
    structure: &Structure,
    uses: &Uses,
    op: Op,
    carried: &Carried,
) -> Option<Vec<Addition>> {
    let body = function.ops[op].body();
    let mut additions = Vec::new();
    let mut value = carried.argument;
    loop {
        let only = uses.only(value)?;
        if value == carried.next {
            return Some(additions);
        }
        let addition = Addition::to(function, only)?;
        if structure.region_of(addition.op) != Some(body) {
            return None;
        }
        additions.push(addition);
        value = function.result(addition.op);
    }
}

/// Whether a loop's body does nothing but compute and read, without regions of its own.
pub(crate) fn only_computes(function: &Function, body: Region) -> bool {
    function.regions[body].ops.iter().all(|&op| {
        let data = &function.ops[op];
        data.regions.is_empty()
            && (data.opcode.effect() == Effect::Pure
                || matches!(data.opcode, Opcode::Load | Opcode::Yield))
    })
}
