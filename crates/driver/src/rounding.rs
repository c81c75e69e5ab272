//! Rounding by a large constant, as in exponential functions that are written by hand.
//!
//! ```text
//! %s = fadd double %x, 0x1.8p52                 %x0 = call double @__ferrozyme_inactive_f64(double %x)
//! %k = fsub double %s, 0x1.8p52         ⇒       %s = fadd double %x0, 0x1.8p52
//!                                               %k = fsub double %s, 0x1.8p52
//! ```
//!
//! The sum has no bits left for fractions, so `%k` is a whole number, and so are the low bits of the sum where they are read as an integer. Both are constant between their steps, as the result of `round` is. In real numbers `%k` would be `%x`: the derivative would be
//! one, and that of an exponential function made of `x − k·ln 2` zero.
//!
//! The constants are one or one and a half times a power of two, from half the size on at which the sum rounds to whole numbers. Assumes that memory has been promoted to values.

use crate::detach::detached;
use ferrozyme_llvm::{Context, Module, Opcode, TypeKind, Value};

/// Detaches all that is rounded in this way from its derivative.
pub(crate) fn detach_rounding<'c>(context: &'c Context, module: Module<'c>) {
    let functions = module.functions().filter(|of| !of.is_declaration());
    let sums: Vec<Value<'c>> = functions
        .flat_map(|function| function.instructions().collect::<Vec<_>>())
        .filter(|&value| rounds(value))
        .collect();
    for sum in sums {
        let builder = context.builder();
        builder.before(sum);
        let index = u32::from(sum.operand(0).as_float().is_some());
        if let Some(constant) = detached(context, module, &builder, sum.operand(index)) {
            sum.set_operand(index, constant);
        }
    }
}

/// Whether a value is the sum of such a constant and something else, and the constant is subtracted again or bits of the sum are read.
fn rounds(value: Value<'_>) -> bool {
    let Some(added) = added_constant(value).filter(|&added| rounds_away(value, added)) else {
        return false;
    };
    value.users().into_iter().any(|user| {
        let reads_bits = user.is_instruction()
            && user.is(Opcode::BitCast)
            && user.ty().integer_width().is_some();
        reads_bits || added_constant(user) == Some(-added)
    })
}

/// The constant that an addition or subtraction adds to its other operand.
fn added_constant(value: Value<'_>) -> Option<f64> {
    if !value.is_instruction() {
        return None;
    }
    match value.opcode()? {
        Opcode::FAdd => (value.operand(1).as_float()).or_else(|| value.operand(0).as_float()),
        Opcode::FSub => value.operand(1).as_float().map(|constant| -constant),
        _ => None,
    }
}

/// Whether a sum with this constant has no bits for fractions.
fn rounds_away(sum: Value<'_>, constant: f64) -> bool {
    let point = match sum.ty().kind() {
        TypeKind::Double => 52,
        TypeKind::Float => 23,
        _ => return false,
    };
    let size = constant.abs();
    let fraction = size.to_bits() & ((1 << 52) - 1);
    size >= f64::from(point - 1).exp2() && (fraction == 0 || fraction == 1 << 51)
}
