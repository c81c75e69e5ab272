//! Indices that are computed in fewer bits than addresses have.
//!
//! ```text
//! %a = trunc_int i64 %i to i32          ; a[i * k + j] in C, where i and k are of type int
//! %b = mul i32 %a, %k
//! %c = zext i32 %b to i64
//! ```
//!
//! C promises that `i * k` does not overflow, but when LLVM is through with it the promise is gone. `%c` is `i·k` if that number fits into 32 bits, for arithmetic modulo 2³² does not care
//! where it is done. The analyses take it to be so ([`Aliases::widening`](crate::alias::Aliases::widening)), and it is tested for all iterations before the nest runs.

use super::tests_at_run_time::Test;
use crate::alias::Aliases;
use crate::ranges::{Place, RangeBuilder};
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, Flags, Function, Op, OpView, Opcode, Type, Value, returning_ops};
use rustc_hash::FxHashSet;

/// The numbers between which an index fits into the bits that it is computed in.
#[derive(Clone, PartialEq)]
pub(crate) struct Fits {
    index: Symbolic,
    least: f64,
    most: f64,
}

/// The indices of a function that are computed in fewer bits, and may wrap as far as is known.
pub(super) fn narrow_indices(function: &Function) -> FxHashSet<Value> {
    let ops = returning_ops(function).into_iter();
    let narrow = ops.filter_map(|op| {
        let data = &function.ops[op];
        let (OpView::Cast(Opcode::Zext | Opcode::Sext, source), [result]) =
            (data.view(), &data.results[..])
        else {
            return None;
        };
        let (computed, _) = function.def_op(source)?;
        let computed = &function.ops[computed];
        let is_arithmetic = matches!(computed.opcode, Opcode::Add | Opcode::Sub | Opcode::Mul);
        let is_narrow = function.ty(*result) == Type::I64 && function.ty(source) == Type::I32;
        let may_wrap = data.opcode == Opcode::Zext || !computed.flags.contains(Flags::NSW);
        (is_arithmetic && is_narrow && may_wrap).then_some(*result)
    });
    narrow.collect()
}

/// What must be tested so that the narrow indices of a nest are what they are taken for. Otherwise the one that cannot be tested.
pub(super) fn tests_for(
    aliases: &Aliases<'_>,
    narrow: &FxHashSet<Value>,
    place: &Place,
) -> Result<Vec<Test>, Op> {
    let (function, structure) = (aliases.function(), aliases.structure());
    let nest = place.op;
    let home = structure.region_of(nest);
    let mut tests = Vec::new();
    for &value in narrow {
        let Some((op, _)) = function.def_op(value) else {
            continue;
        };
        if aliases.indices().is_defined_outside(value, nest) {
            // What is not visible in front of the nest is not in it either.
            let before = structure.order(op) < structure.order(nest);
            let around = home
                .zip(structure.region_of(op))
                .is_some_and(|(home, region)| structure.is_within(home, region));
            if !before || !around {
                continue;
            }
        }
        let index = aliases.indices().expression(value);
        if !place.has_limits(function, &index) {
            return Err(op);
        }
        let [least, most] = match function.ops[op].opcode {
            Opcode::Sext => [i32::MIN.into(), i32::MAX.into()],
            _ => [0.0, u32::MAX.into()],
        };
        tests.push(Test::Fits(Box::new(Fits { index, least, most })));
    }
    Ok(tests)
}

impl Fits {
    /// Builds the test.
    pub(super) fn build(&self, b: &mut Builder<'_>, ranges: &mut RangeBuilder<'_>) -> Value {
        ranges.build_within(b, &self.index, [self.least, self.most])
    }
}
