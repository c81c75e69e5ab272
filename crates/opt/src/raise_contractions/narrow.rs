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

use super::arrays::is_visible;
use super::tests_at_run_time::{Test, loops_within};
use crate::alias::Aliases;
use crate::hoist_checks::{emit_small, emit_wide};
use crate::recurrence::Counted;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{
    Builder, Flags, Function, IntPredicate, Op, OpView, Opcode, Scalar, Type, Value, returning_ops,
};
use rustc_hash::FxHashSet;

/// The numbers between which an index fits into the bits that it is computed in.
#[derive(Clone, PartialEq)]
pub(super) struct Fits {
    /// The index in the first iteration.
    base: Symbolic,
    /// By how much it moves over each loop.
    distances: Vec<Symbolic>,
    least: i64,
    most: i64,
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
    nest: Op,
) -> Result<Vec<Test>, Op> {
    let (function, structure) = (aliases.function(), aliases.structure());
    let home = structure.region_of(nest);
    let mut tests = Vec::new();
    for &value in narrow {
        let Some((op, _)) = function.def_op(value) else {
            continue;
        };
        let loops = match aliases.indices().is_defined_outside(value, nest) {
            false => loops_within(aliases, nest, op).ok_or(op)?,
            true => {
                // What is not visible in front of the nest is not in it either.
                let before = structure.order(op) < structure.order(nest);
                let around = home
                    .zip(structure.region_of(op))
                    .is_some_and(|(home, region)| structure.is_within(home, region));
                if !before || !around {
                    continue;
                }
                Vec::new()
            }
        };
        let test = fits(aliases, value, &loops, nest).ok_or(op)?;
        tests.push(Test::Fits(Box::new(test)));
    }
    Ok(tests)
}

/// What must hold so that an index fits in all iterations of these loops; none if that cannot be tested before the nest.
fn fits(aliases: &Aliases<'_>, value: Value, loops: &[Counted], nest: Op) -> Option<Fits> {
    let mut base = aliases.indices().expression(value);
    let mut distances = Vec::new();
    for counted in loops {
        let (factor, rest) = base.split(counted.counter);
        let last = counted.trip_count()?.plus(-1)?;
        let distance = factor.mul(&counted.step)?.mul(&last)?;
        if !is_visible(aliases, &distance, nest) {
            return None;
        }
        base = factor.mul(&counted.from)?.add(&rest)?;
        distances.push(distance);
    }
    let function = aliases.function();
    let (op, _) = function.def_op(value)?;
    let signed = function.ops[op].opcode == Opcode::Sext;
    let (least, most) = match signed {
        true => (i64::from(i32::MIN), i64::from(i32::MAX)),
        false => (0, i64::from(u32::MAX)),
    };
    is_visible(aliases, &base, nest).then_some(Fits {
        base,
        distances,
        least,
        most,
    })
}

impl Fits {
    /// Builds the test.
    pub(super) fn build(&self, b: &mut Builder<'_>) -> Value {
        let wide = Type::scalar_of(Scalar::Int(128));
        let mut small = Vec::new();
        let zero = b.function.int(wide, 0);
        let base = emit_wide(b, &self.base, &mut small);
        let (mut low, mut high) = (base, base);
        for distance in &self.distances {
            let distance = emit_wide(b, distance, &mut small);
            let down = b.binary(Opcode::Smin, distance, zero);
            low = b.binary(Opcode::Add, low, down);
            let up = b.binary(Opcode::Smax, distance, zero);
            high = b.binary(Opcode::Add, high, up);
        }
        let [least, most] = [self.least, self.most].map(|end| b.function.int(wide, end.into()));
        let above = b.icmp(IntPredicate::Sge, low, least);
        let below = b.icmp(IntPredicate::Sle, high, most);
        let fits = b.binary(Opcode::And, above, below);
        emit_small(b, fits, small)
    }
}
