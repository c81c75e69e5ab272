//! Rounding by adding a large constant, as in exponential functions that are written by hand.
//!
//! ```text
//! %s = fadd double %x, 0x1.8p52                 %x0 = call double @__ferrozyme_inactive_f64(double %x)
//! %k = fsub double %s, 0x1.8p52         ⇒       %s = fadd double %x0, 0x1.8p52
//!                                               %k = fsub double %s, 0x1.8p52
//! ```
//!
//! The sum has no bits left for (small) fractions, so `%k` is a whole number, or a multiple of 1/128 for a table with that many entries, and so are the low bits of the sum where they are read as an integer. Both are constant between their steps, as the result of `round` is. In real numbers
//! `%k` would be `%x`: the derivative would be one, and that of an exponential function made of `x − k·ln 2` zero.
//!
//! Two kinds of constants round:
//!
//! - *Shifts*, one and a half times a power of two with at most a small whole number added (an exponent's bias), from the size on at which steps are 1/128 in `f64` and 1/2 in `f32`. Nothing else is written with such a constant, so the sum is detached whatever becomes of it, in memory or another function too.
//! - Smaller shifts, powers of two, and all constants that leave steps of 1/2 or more, if the sum shows what it is for: the constant is subtracted again, or bits of the sum are read.
//!
//! Other constants are summands as any other: `(1 + x) - 1` in `log1p`, or the error term of a compensated sum. Assumes that vector operations have been split into scalar ones.

use crate::detach::detached;
use ferrozyme_llvm::{Context, Module, Opcode, TypeKind, Value};
use std::collections::HashSet;

/// Detaches all that is rounded in this way from its derivative.
pub(crate) fn detach_rounding<'c>(context: &'c Context, module: Module<'c>) {
    let functions = module.functions().filter(|of| !of.is_declaration());
    let sums: Vec<Sum<'c>> = functions
        .flat_map(|function| function.instructions().collect::<Vec<_>>())
        .filter_map(Sum::of)
        .filter(Sum::rounds)
        .collect();
    for sum in sums {
        let builder = context.builder();
        builder.before(sum.value);
        for &operand in sum.summand {
            let summand = sum.value.operand(operand);
            if let Some(constant) = detached(context, module, &builder, summand) {
                sum.value.set_operand(operand, constant);
            }
        }
    }
}

/// The sum of a constant and something else.
struct Sum<'c> {
    value: Value<'c>,
    /// What the constant may be: several where a branch chooses it.
    constants: Vec<f64>,
    /// The operands that the rest is made of: one, or both factors of a fused product.
    summand: &'static [u32],
}

impl<'c> Sum<'c> {
    fn of(value: Value<'c>) -> Option<Sum<'c>> {
        if !value.is_instruction() {
            return None;
        }
        let constants = |operand: u32| constants_of(value.operand(operand));
        let (constants, summand): (Vec<f64>, &[u32]) = match value.opcode()? {
            Opcode::FAdd => match constants(1) {
                Some(added) => (added, &[0]),
                None => (constants(0)?, &[1]),
            },
            Opcode::FSub => match constants(1) {
                Some(taken) => (taken.iter().map(|taken| -taken).collect(), &[0]),
                None => (constants(0)?, &[1]),
            },
            Opcode::Call if is_fused(value) => (constants(2)?, &[0, 1]),
            _ => return None,
        };
        Some(Sum {
            value,
            constants,
            summand,
        })
    }

    /// Whether it is the sum that is meant, or its steps.
    fn rounds(&self) -> bool {
        let constants = self.constants.iter();
        let kinds: Option<Vec<Rounding>> = constants
            .map(|&constant| Rounding::of(self.value, constant))
            .collect();
        let Some(kinds) = kinds else {
            return false;
        };
        let all = |holds: fn(&Rounding) -> bool| kinds.iter().all(holds);
        all(Rounding::is_plain)
            || all(Rounding::may_round) && self.is_undone(all(|kind| kind.steps_are_large))
    }

    /// Whether the constant is subtracted from the sum again, or bits of the sum are read where that shows rounding. The sum is followed through branches.
    fn is_undone(&self, bits_show: bool) -> bool {
        let mut seen = HashSet::from([self.value]);
        let mut work = vec![self.value];
        while let Some(value) = work.pop() {
            for user in value.users() {
                if !user.is_instruction() {
                    continue;
                }
                let undoes = Sum::of(user).is_some_and(|next| {
                    let is_taken = user.is(Opcode::FSub) && next.summand == [1];
                    let sign = if is_taken { 1.0 } else { -1.0 };
                    let undone = next.constants.iter().map(|constant| sign * constant);
                    !user.is(Opcode::Call) && undone.eq(self.constants.iter().copied())
                });
                let is_integer = user.ty().integer_width().is_some();
                if undoes || bits_show && user.is(Opcode::BitCast) && is_integer {
                    return true;
                }
                let passes = user.is(Opcode::Phi) || user.is(Opcode::Select);
                if passes && seen.insert(user) {
                    work.push(user);
                }
            }
        }
        false
    }
}

/// The constants that a value may be, in the order in which branches name them; of a constant with the sign of something else, its size.
fn constants_of(value: Value<'_>) -> Option<Vec<f64>> {
    if let Some(constant) = value.as_float() {
        return Some(vec![constant]);
    }
    if !value.is_instruction() {
        return None;
    }
    match value.opcode()? {
        Opcode::Select => [1, 2]
            .map(|at| value.operand(at).as_float())
            .into_iter()
            .collect(),
        Opcode::Phi => (value.incoming().into_iter())
            .map(|(value, _)| value.as_float())
            .collect(),
        Opcode::Call => {
            let name = value.called_intrinsic()?;
            let is_size = name.starts_with("llvm.copysign.");
            is_size
                .then(|| value.operand(0).as_float())
                .flatten()
                .map(|size| vec![size])
        }
        _ => None,
    }
}

/// Whether a call computes a product and a sum.
fn is_fused(call: Value<'_>) -> bool {
    let name = call.called_function().map(|callee| callee.name());
    let names = [
        "fma",
        "fmaf",
        "llvm.fma.f32",
        "llvm.fma.f64",
        "llvm.fmuladd.f32",
        "llvm.fmuladd.f64",
    ];
    name.is_some_and(|name| names.contains(&name.as_str()))
}

/// What a constant does to the numbers that it is added to.
struct Rounding {
    /// The exponent of the constant's power of two.
    exponent: i32,
    /// Whether it is one and a half times a power of two, or that and a small whole number.
    is_shift: bool,
    /// Whether it is a power of two.
    is_power: bool,
    /// From which exponent on nothing but rounding is meant by a shift, and from which on it may be meant.
    limits: [i32; 2],
    /// Whether sums with it are multiples of one half or more.
    steps_are_large: bool,
}

impl Rounding {
    fn of(sum: Value<'_>, constant: f64) -> Option<Rounding> {
        let (point, limits) = match sum.ty().kind() {
            TypeKind::Double => (52, [45, 32]),
            TypeKind::Float => (23, [22, 13]),
            _ => return None,
        };
        let size = constant.abs();
        if !size.is_normal() {
            return None;
        }
        let exponent = (size.to_bits() >> 52) as i32 - 1023;
        let power = f64::from(exponent).exp2();
        // The biases of exponents, which are added in the same step.
        let bias = size - 1.5 * power;
        let is_bias = bias.fract() == 0.0 && bias.abs() <= 1024.0 && bias.abs() < power / 64.0;
        Some(Rounding {
            exponent,
            is_shift: is_bias && exponent <= point,
            is_power: size == power,
            limits,
            steps_are_large: exponent >= point - 1,
        })
    }

    /// Whether nothing but rounding is meant by a sum with it.
    fn is_plain(&self) -> bool {
        self.is_shift && self.exponent >= self.limits[0]
    }

    /// Whether rounding may be meant.
    fn may_round(&self) -> bool {
        self.steps_are_large || (self.is_shift || self.is_power) && self.exponent >= self.limits[1]
    }
}
