//! Rules for floats. Without flags only those that give the same bits for all operands, the payload of a NaN aside.

use super::{Rewrite, matching};
use ferrozyme_ir::{Flags, Function, Op, OpView, Opcode, Value};

/// The first rule that fits an operation.
pub(super) fn simplify(function: &mut Function, op: Op) -> Option<Rewrite> {
    use Opcode::*;
    let data = &function.ops[op];
    let (opcode, flags) = (data.opcode, data.flags);
    opcode.math()?;
    let (a, b) = match data.view() {
        OpView::Unary(_, a) => (a, a),
        OpView::Binary(_, a, b) | OpView::Ternary(_, a, b, _) => (a, b),
        _ => return None,
    };
    let ty = function.ty(a);
    let constant = function.float_of(b);

    match opcode {
        Fadd | Fmul if function.is_constant(a) && !function.is_constant(b) => {
            Rewrite::binary(opcode, b, a, flags)
        }
        Fadd | Fsub | Fmul | Fdiv => arithmetic(function, op),
        Fneg => {
            let (inner, _) = matching(function, a, Fneg)?;
            Some(Rewrite::To(inner[0]))
        }
        Fabs => {
            if matching(function, a, Fabs).is_some() {
                return Some(Rewrite::To(a));
            }
            let (inner, _) = matching(function, a, Fneg)?;
            Rewrite::unary(Fabs, inner[0], flags)
        }
        Fma => {
            let OpView::Ternary(_, _, _, c) = data.view() else {
                return None;
            };
            let addend = function.float_of(c);
            // A product with one is exact, so there is one rounding either way.
            for (x, one) in [(a, b), (b, a)] {
                if function.float_of(one) == Some(1.0) {
                    return Rewrite::binary(Fadd, x, c, flags);
                }
            }
            if is_negative_zero(addend) || (is_zero(addend) && flags.contains(Flags::NSZ)) {
                return Rewrite::binary(Fmul, a, b, flags);
            }
            None
        }
        Fmin | Fmax | Fminimum | Fmaximum if a == b => Some(Rewrite::To(a)),
        Copysign if a == b => Some(Rewrite::To(a)),
        // Defined so for every x, NaN too.
        Pow if is_zero(constant) => Some(Rewrite::To(function.float(ty, 1.0))),
        Pow if constant == Some(1.0) => Some(Rewrite::To(a)),
        Pow if constant == Some(2.0) && flags.contains(Flags::AFN) => {
            Rewrite::binary(Fmul, a, a, flags)
        }
        Powi => match super::number(function, b) {
            Some(0) => Some(Rewrite::To(function.float(ty, 1.0))),
            Some(1) => Some(Rewrite::To(a)),
            _ => None,
        },
        // Whole already.
        Floor | Ceil | Trunc | Round | RoundEven => {
            let (inner, _) = function.def_op(a)?;
            matches!(
                function.ops[inner].opcode,
                Floor | Ceil | Trunc | Round | RoundEven | Sitofp | Uitofp
            )
            .then_some(Rewrite::To(a))
        }
        _ => None,
    }
}

/// Rules for the four operations.
fn arithmetic(function: &mut Function, op: Op) -> Option<Rewrite> {
    use Opcode::*;
    let data = &function.ops[op];
    let (opcode, flags) = (data.opcode, data.flags);
    let [a, b] = data.both();
    let ty = function.ty(a);
    let constant = function.float_of(b);
    match opcode {
        Fadd => {
            // x + (-0) = x, also for x = -0; x + 0 is 0 for x = -0.
            if is_negative_zero(constant)
                || (is_zero(constant)
                    && (flags.contains(Flags::NSZ) || is_never_negative_zero(function, a, 4)))
            {
                return Some(Rewrite::To(a));
            }
            // x + (-y) = x - y
            for (x, negated) in [(a, b), (b, a)] {
                if let Some((inner, _)) = matching(function, negated, Fneg) {
                    return Rewrite::binary(Fsub, x, inner[0], flags);
                }
            }
            None
        }
        Fsub => {
            // x - 0 = x, also for x = -0.
            if is_positive_zero(constant) || (is_zero(constant) && flags.contains(Flags::NSZ)) {
                return Some(Rewrite::To(a));
            }
            let left = function.float_of(a);
            // -0 - x = -x; 0 - x is 0 for x = 0.
            if is_negative_zero(left) || (is_zero(left) && flags.contains(Flags::NSZ)) {
                return Rewrite::unary(Fneg, b, flags);
            }
            // x - x = 0, unless x is infinite or NaN.
            if a == b && flags.contains(Flags::NNAN) {
                return Some(Rewrite::To(function.zero(ty)));
            }
            // x - (-y) = x + y
            if let Some((inner, _)) = matching(function, b, Fneg) {
                return Rewrite::binary(Fadd, a, inner[0], flags);
            }
            None
        }
        Fmul => {
            if constant == Some(1.0) {
                return Some(Rewrite::To(a));
            }
            if constant == Some(-1.0) {
                return Rewrite::unary(Fneg, a, flags);
            }
            // x · 0 = 0, unless x is infinite, NaN or negative.
            if is_zero(constant) && flags.contains(Flags::NNAN.union(Flags::NSZ)) {
                return Some(Rewrite::To(function.zero(ty)));
            }
            // (-x) · (-y) = x · y
            if let (Some((x, _)), Some((y, _))) =
                (matching(function, a, Fneg), matching(function, b, Fneg))
            {
                return Rewrite::binary(Fmul, x[0], y[0], flags);
            }
            None
        }
        Fdiv => {
            if constant == Some(1.0) {
                return Some(Rewrite::To(a));
            }
            if constant == Some(-1.0) {
                return Rewrite::unary(Fneg, a, flags);
            }
            if is_zero(function.float_of(a)) && flags.contains(Flags::NNAN.union(Flags::NSZ)) {
                return Some(Rewrite::To(function.zero(ty)));
            }
            None
        }
        _ => None,
    }
}

/// Whether a value cannot be -0, as far as that is plain to see within `depth` operations.
fn is_never_negative_zero(function: &Function, value: Value, depth: u32) -> bool {
    use Opcode::*;
    if let Some(constant) = function.float_of(value) {
        return !is_negative_zero(Some(constant));
    }
    if depth == 0 {
        return false;
    }
    let is_never = |operand: Value| is_never_negative_zero(function, operand, depth - 1);
    match function.definition(value) {
        Some(OpView::Cast(Sitofp | Uitofp, _)) => true,
        // The sum is -0 only if both are; the difference only if the first is.
        Some(OpView::Binary(Fadd, a, b)) => is_never(a) || is_never(b),
        Some(OpView::Binary(Fsub, a, _) | OpView::Cast(Fpext, a)) => is_never(a),
        Some(OpView::Binary(Fmul, a, b)) => a == b,
        Some(OpView::Select {
            then, otherwise, ..
        }) => is_never(then) && is_never(otherwise),
        Some(
            OpView::Unary(opcode, ..) | OpView::Binary(opcode, ..) | OpView::Ternary(opcode, ..),
        ) => opcode.math().is_some_and(|function| {
            let (least, _) = function.image;
            least >= 0.0 && !is_negative_zero(Some(least))
        }),
        _ => false,
    }
}

fn is_zero(constant: Option<f64>) -> bool {
    constant == Some(0.0)
}

fn is_positive_zero(constant: Option<f64>) -> bool {
    constant.is_some_and(|value| value == 0.0 && value.is_sign_positive())
}

fn is_negative_zero(constant: Option<f64>) -> bool {
    constant.is_some_and(|value| value == 0.0 && value.is_sign_negative())
}
