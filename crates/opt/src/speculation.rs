//! Whether an operation may be executed speculatively, and how far.
//!
//! For its value alone, every pure operation may. But programs here are differentiated, after passes as well as before:
//! a value that is computed and not used has adjoint 0, and 0 times an infinite derivative is NaN. `sqrt` of zero,
//! guarded by a branch that excludes zero, is fine; computed before the branch, it would make the gradient of its
//! operand NaN. So an operation moves out of a branch only if its derivative cannot be infinite, and out of a loop that
//! may not run only if its derivative is finite for finite operands.

use ferrozyme_ir::{Effect, Function, Op, OpView, Opcode, Slope, Value};

/// How freely an operation may run where it did not before; later variants allow more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Speculation {
    /// It must not move: it has an effect, or reads memory.
    Never,
    /// Only where it surely runs anyway: some operands make it undefined, or its derivative infinite.
    WhereItRuns,
    /// Also ahead of a loop that may not run: it may cost something, but is smooth.
    BeforeLoops,
    /// Also out of a branch: it is cheap, and linear or not differentiable at all.
    Anywhere,
}

/// How freely an operation may run where it did not before.
pub fn speculation(function: &Function, op: Op) -> Speculation {
    use Speculation::*;
    let data = &function.ops[op];
    match data.opcode.effect() {
        Effect::Pure => {}
        Effect::Partial => {
            // A constant divisor is neither zero nor, with overflow, minus one.
            return match function.int_of(data.both()[1]) {
                Some(divisor) if divisor != 0 && divisor != -1 => Anywhere,
                _ => WhereItRuns,
            };
        }
        _ => return Never,
    }
    let is_constant =
        |value: Value, fits: fn(f64) -> bool| function.float_of(value).is_some_and(fits);
    match data.view() {
        // Linear in the one factor that is not constant, with a finite slope.
        OpView::Binary(Opcode::Fmul, a, b)
            if is_constant(a, f64::is_finite) || is_constant(b, f64::is_finite) =>
        {
            Anywhere
        }
        OpView::Binary(Opcode::Fdiv, _, divisor) if is_constant(divisor, f64::is_normal) => {
            Anywhere
        }
        _ => match data.opcode.math().map(|function| function.slope) {
            Some(Slope::Finite) => BeforeLoops,
            Some(Slope::Infinite(_)) => WhereItRuns,
            Some(Slope::Bounded) | None => Anywhere,
        },
    }
}

/// Forgets between which limits the results of an operation lie: what was promised where it stood need not hold where
/// it did not run before.
pub(crate) fn forget_ranges(function: &mut Function, op: Op) {
    for result in function.ops[op].results.clone() {
        function.values[result].range = None;
    }
}
