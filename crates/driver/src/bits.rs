//! Integer arithmetic on the bits of floats, as in approximations of roots and powers.
//!
//! ```text
//! %b = bitcast float %x to i32                  %x0 = call float @__ferrozyme_inactive_f32(float %x)
//! %h = lshr i32 %b, 1                   ⇒       … %y0, from %x0
//! %m = sub i32 1597463007, %h                   %y = %y0 + (%x - %x0) · slope(%x0, %y0)
//! %y = bitcast i32 %m to float
//! ```
//!
//! The bits of a float are linear in it between two powers of two: d bits(x)/dx = 2^(p − ⌊log₂|x|⌋) · sign(x) with p bits behind the point, and the other way round for the float that bits are read as. So
//! with bits(y) = c·bits(x) + constant
//!
//! ```text
//! dy/dx = c · 2^(⌊log₂|y|⌋ − ⌊log₂|x|⌋) · sign(x) · sign(y)
//! ```
//!
//! The code is rewritten so that the differentiator sees this slope and the value does not change: `%x − %x0` is zero, and `%x0` has no derivative. Where integers are rounded, the slope is that of the line through the steps, which is what such code
//! approximates. Assumes that memory has been promoted to values.
//!
//! What changes sign and exponent by constants, as `frexp` does, adds a constant between two powers of two. Operations on the sign bit alone become operations on floats: `bits & !sign` is |x|,
//! `bits ^ sign` is −x, `bits | sign` is −|x|. Other operations on bits are left as they are.

use crate::detach::detached;
use ferrozyme_llvm::{
    Builder, Context, FloatPredicate, IntPredicate, Module, Opcode, Type, TypeKind, Value,
};

/// Longer chains are no approximations.
const MAX_STEPS: usize = 8;

/// Gives all floats of the module that are put together in this way a derivative.
pub(crate) fn follow_bits<'c>(context: &'c Context, module: Module<'c>) {
    for function in module
        .functions()
        .filter(|function| !function.is_declaration())
    {
        let mut casts: Vec<Value<'c>> = function.instructions().collect();
        while let Some(cast) = casts.pop() {
            casts.extend(replace_change_of_sign(context, module, cast));
        }
        let ends: Vec<Chain<'c>> = function.instructions().filter_map(chain_to).collect();
        for chain in ends {
            chain.replace(context, module);
        }
    }
}

/// Where a float is read from bits of which only the sign is changed, puts the operation on floats in its place. Gives the float that the bits were read as before.
fn replace_change_of_sign<'c>(
    context: &'c Context,
    module: Module<'c>,
    end: Value<'c>,
) -> Option<Value<'c>> {
    let float = end.ty();
    if !end.is(Opcode::BitCast) || !matches!(float.kind(), TypeKind::Float | TypeKind::Double) {
        return None;
    }
    let change = end.operand(0);
    let width = change.ty().integer_width()?;
    if !change.is_instruction() {
        return None;
    }
    let opcode = change.opcode()?;
    if !matches!(opcode, Opcode::And | Opcode::Or | Opcode::Xor) {
        return None;
    }
    let sign = -1i64 << (width - 1);
    let number = change.operand(1).as_signed()?;
    let wanted = match opcode {
        Opcode::And => i128::from(!sign),
        _ => i128::from(sign),
    };
    let mask = (1i128 << width) - 1;
    if number & mask != wanted & mask {
        return None;
    }
    let builder = context.builder();
    builder.before(end);
    let before = builder.cast(Opcode::BitCast, change.operand(0), float);
    let size = |of: Value<'c>| {
        let function = module.intrinsic("llvm.fabs", &[float])?;
        Some(builder.call_function(function, &[of]))
    };
    let after = match opcode {
        Opcode::And => size(before)?,
        Opcode::Or => builder.negate_float(size(before)?),
        _ => builder.negate_float(before),
    };
    after.set_debug_location(end.debug_location(context));
    end.replace_uses_with(after);
    Some(before)
}

/// A float, its bits, what is done to them, and the float that comes of it.
struct Chain<'c> {
    start: Value<'c>,
    /// From the first to the last.
    steps: Vec<Value<'c>>,
    end: Value<'c>,
    /// By how much the bits of the result grow with those of the start.
    factor: f64,
}

/// The chain that ends here.
fn chain_to(end: Value<'_>) -> Option<Chain<'_>> {
    let is_cast = |value: Value<'_>| value.is_instruction() && value.is(Opcode::BitCast);
    if !is_cast(end) || !matches!(end.ty().kind(), TypeKind::Float | TypeKind::Double) {
        return None;
    }
    let mut steps = Vec::new();
    let mut factor = 1.0;
    let mut value = end.operand(0);
    while !is_cast(value) {
        if steps.len() == MAX_STEPS || !value.is_instruction() {
            return None;
        }
        let (next, by) = step(value)?;
        steps.push(value);
        factor *= by;
        value = next;
    }
    steps.reverse();
    let fits = value.operand(0).ty() == end.ty() && !steps.is_empty();
    fits.then_some(Chain {
        start: value,
        steps,
        end,
        factor,
    })
}

/// The integer that an operation changes, and how the result grows with it.
fn step(operation: Value<'_>) -> Option<(Value<'_>, f64)> {
    let opcode = operation.opcode()?;
    let known = matches!(
        opcode,
        Opcode::Add
            | Opcode::Sub
            | Opcode::Mul
            | Opcode::Shl
            | Opcode::LShr
            | Opcode::AShr
            | Opcode::UDiv
            | Opcode::SDiv
    );
    let of_bits = matches!(opcode, Opcode::And | Opcode::Or | Opcode::Xor);
    if !known && !of_bits {
        return None;
    }
    let (left, right) = (operation.operand(0), operation.operand(1));
    if of_bits {
        return keeps_fraction(opcode, right).then_some((left, 1.0));
    }
    if let Some(number) = right.as_signed() {
        let by = match opcode {
            Opcode::Add | Opcode::Sub => 1.0,
            Opcode::Mul => number as f64,
            Opcode::Shl => (number as f64).exp2(),
            Opcode::LShr | Opcode::AShr => (-number as f64).exp2(),
            _ => 1.0 / number as f64,
        };
        return Some((left, by));
    }
    match opcode {
        Opcode::Sub if left.as_signed().is_some() => Some((right, -1.0)),
        _ => None,
    }
}

/// Whether an operation changes only sign and exponent, by a constant: the fraction of a number is taken so (`frexp`). Between two powers of two that adds a constant.
fn keeps_fraction(opcode: Opcode, constant: Value<'_>) -> bool {
    let Some(point) = constant.ty().integer_width().and_then(bits_behind_point) else {
        return false;
    };
    let Some(number) = constant.as_signed() else {
        return false;
    };
    let fraction = (1i128 << point) - 1;
    match opcode {
        Opcode::And => number & fraction == fraction,
        Opcode::Or | Opcode::Xor => number & fraction == 0,
        _ => false,
    }
}

/// How many bits of a float of this width are behind the point.
fn bits_behind_point(width: u32) -> Option<u32> {
    match width {
        32 => Some(23),
        64 => Some(52),
        _ => None,
    }
}

impl<'c> Chain<'c> {
    fn replace(&self, context: &'c Context, module: Module<'c>) {
        let builder = context.builder();
        builder.before(self.end);
        let float = self.end.ty();
        let x = self.start.operand(0);
        let Some(constant) = detached(context, module, &builder, x) else {
            return;
        };
        let before = builder.cast(Opcode::BitCast, constant, self.start.ty());
        let mut after = before;
        let mut original = self.start;
        for step in &self.steps {
            let copy = builder.insert(step.duplicate_instruction());
            for (index, operand) in step.operands().into_iter().enumerate() {
                if operand == original {
                    copy.set_operand(index as u32, after);
                }
            }
            (original, after) = (*step, copy);
        }
        let y = builder.cast(Opcode::BitCast, after, float);
        let scale = self.scale(&builder, before, after);
        let slope = builder.binary(Opcode::FMul, scale, float.float_constant(self.factor));
        let zero = builder.binary(Opcode::FSub, x, constant);
        let change = builder.binary(Opcode::FMul, zero, slope);
        let sum = builder.binary(Opcode::FAdd, y, change);
        // Zero times infinity, or infinity minus itself: such a number has no slope here.
        let known = builder.compare_floats(FloatPredicate::Ord, change, change);
        let sum = builder.select(known, sum, y);
        sum.set_debug_location(self.end.debug_location(context));
        self.end.replace_uses_with(sum);
    }

    /// 2^(⌊log₂|y|⌋ − ⌊log₂|x|⌋) · sign(x) · sign(y), made of the bits of both; zero where it is too small.
    fn scale(&self, builder: &Builder<'c>, before: Value<'c>, after: Value<'c>) -> Value<'c> {
        let bits: Type<'c> = before.ty();
        let (point, bias) = match self.end.ty().kind() {
            TypeKind::Float => (23, 127),
            _ => (52, 1023),
        };
        let number = |number: i128| bits.constant(number);
        let largest = number(2 * bias);
        let exponent = |of: Value<'c>| {
            let shifted = builder.binary(Opcode::LShr, of, number(point));
            builder.binary(Opcode::And, shifted, number(2 * bias + 1))
        };
        let difference = builder.binary(Opcode::Sub, exponent(after), exponent(before));
        let wanted = builder.binary(Opcode::Add, difference, number(bias));
        let small = builder.compare_integers(IntPredicate::Slt, wanted, number(0));
        let wanted = builder.select(small, number(0), wanted);
        let large = builder.compare_integers(IntPredicate::Sgt, wanted, largest);
        let wanted = builder.select(large, largest, wanted);
        let both = builder.binary(Opcode::Xor, before, after);
        let width = bits.integer_width().map_or(64, i128::from);
        let sign = builder.binary(Opcode::And, both, number(-1 << (width - 1)));
        let power = builder.binary(Opcode::Shl, wanted, number(point));
        let all = builder.binary(Opcode::Or, power, sign);
        builder.cast(Opcode::BitCast, all, self.end.ty())
    }
}
