//! Rules for integers, comparisons, choices and addresses. All arithmetic wraps around.

use super::{Rewrite, matching, number};
use crate::carried::yielded;
use crate::conditions::decide;
use crate::cse::is_commutative;
use crate::interval::Interval;
use ferrozyme_ir::{
    Constant, Flags, FloatPredicate, Form, Function, IntPredicate, Op, OpView, Opcode, Payload,
    Range, Scalar, Type, Value, ValueDef, ones, sign_extend,
};
use smallvec::smallvec;

/// The first rule that fits an operation.
pub(super) fn simplify(function: &mut Function, op: Op) -> Option<Rewrite> {
    let data = &function.ops[op];
    match data.opcode {
        Opcode::Icmp => compare(function, op),
        Opcode::Select => select(function, op),
        Opcode::Offset => offset(function, op),
        _ if data.opcode.form() == Form::IntBinary => binary(function, op),
        _ => None,
    }
}

/// The operand of a negation: `%a` for `xor i1 %a, 1`.
pub(super) fn negated_condition(function: &Function, condition: Value) -> Option<Value> {
    let (operands, _) = matching(function, condition, Opcode::Xor)?;
    (function.ty(condition).scalar() == Scalar::Int(1) && number(function, operands[1]) == Some(-1))
        .then(|| operands[0])
}

fn binary(function: &mut Function, op: Op) -> Option<Rewrite> {
    use Opcode::*;
    let data = &function.ops[op];
    let (opcode, flags) = (data.opcode, data.flags);
    let [a, b] = data.both();
    let ty = function.ty(a);

    // Constants go to the right.
    if is_commutative(opcode) && function.is_constant(a) && !function.is_constant(b) {
        return Rewrite::binary(opcode, b, a, flags);
    }

    if a == b {
        match opcode {
            Sub | Xor | Srem | Urem => return Some(Rewrite::To(function.zero(ty))),
            And | Or | Smin | Smax | Umin | Umax => return Some(Rewrite::To(a)),
            // A zero divisor is undefined already.
            Sdiv | Udiv => return Some(Rewrite::To(function.int(ty, 1))),
            _ => {}
        }
    }

    if number(function, a) == Some(0) {
        match opcode {
            Sdiv | Udiv | Srem | Urem | Shl | Lshr | Ashr => return Some(Rewrite::To(a)),
            // 0 - (0 - x) = x
            Sub => {
                if let Some((inner, _)) = matching(function, b, Sub)
                    && number(function, inner[0]) == Some(0)
                {
                    return Some(Rewrite::To(inner[1]));
                }
            }
            _ => {}
        }
    }

    if let Some(rewrite) = cancel(function, opcode, a, b) {
        return Some(rewrite);
    }
    with_constant(function, op)
}

/// Sums and differences in which something cancels out.
fn cancel(function: &mut Function, opcode: Opcode, a: Value, b: Value) -> Option<Rewrite> {
    use Opcode::*;
    let ty = function.ty(a);
    match opcode {
        Add => {
            // x + (y - x) = y
            for (x, difference) in [(a, b), (b, a)] {
                if let Some((inner, _)) = matching(function, difference, Sub) {
                    if inner[1] == x {
                        return Some(Rewrite::To(inner[0]));
                    }
                    // x + (0 - y) = x - y
                    if number(function, inner[0]) == Some(0) {
                        return Rewrite::binary(Sub, x, inner[1], Flags::NONE);
                    }
                }
            }
        }
        Sub => {
            // (x + y) - y = x
            if let Some((inner, _)) = matching(function, a, Add) {
                if inner[1] == b {
                    return Some(Rewrite::To(inner[0]));
                }
                if inner[0] == b {
                    return Some(Rewrite::To(inner[1]));
                }
            }
            // x - (x - y) = y
            if let Some((inner, _)) = matching(function, b, Sub)
                && inner[0] == a
            {
                return Some(Rewrite::To(inner[1]));
            }
            // (p + s·i) - p = s·i
            if let Some((index, scale, flags)) = distance(function, a, b) {
                let scale = function.int(ty, i128::from(scale));
                return Rewrite::binary(Mul, index, scale, flags);
            }
        }
        _ => {}
    }

    None
}

/// Rules for a constant on the right.
fn with_constant(function: &mut Function, op: Op) -> Option<Rewrite> {
    use Opcode::*;
    let data = &function.ops[op];
    let (opcode, flags) = (data.opcode, data.flags);
    let [a, b] = data.both();
    let ty = function.ty(a);
    let bits = ty.scalar().bits();
    let smallest = sign_extend(1 << (bits - 1), bits);
    let largest = sign_extend(ones(bits) >> 1, bits);

    let c = number(function, b)?;
    let unsigned = c as u128 & ones(bits);
    match (opcode, c) {
        (Add | Sub | Or | Xor | Shl | Lshr | Ashr, 0) => return Some(Rewrite::To(a)),
        (Mul | And, 0) => return Some(Rewrite::To(b)),
        // -1 is also the only one of an i1.
        (And, -1) => return Some(Rewrite::To(a)),
        (Or, -1) => return Some(Rewrite::To(b)),
        (Mul, _) if unsigned == 1 => return Some(Rewrite::To(a)),
        (Sdiv, 1) => return Some(Rewrite::To(a)),
        (Udiv, _) if unsigned == 1 => return Some(Rewrite::To(a)),
        (Srem, 1) => return Some(Rewrite::To(function.zero(ty))),
        (Urem, _) if unsigned == 1 => return Some(Rewrite::To(function.zero(ty))),
        // A shift amount that is too large gives `undef`.
        (Shl | Lshr | Ashr, _) if unsigned >= u128::from(bits) => {
            return Some(Rewrite::To(function.undef(ty)));
        }
        // Products are what index expressions are made of. The top bit is a sign and would change what `nsw` says.
        (Shl, _) => {
            let factor = function.int(ty, 1 << unsigned);
            let kept = if unsigned + 1 < u128::from(bits) {
                flags.intersection(Flags::NSW.union(Flags::NUW))
            } else {
                Flags::NONE
            };
            return Rewrite::binary(Mul, a, factor, kept);
        }
        (Sub, _) => {
            let negated = function.int(ty, c.wrapping_neg());
            let kept = if c == smallest {
                Flags::NONE
            } else {
                flags.intersection(Flags::NSW)
            };
            return Rewrite::binary(Add, a, negated, kept);
        }
        (Smin, _) if c == largest => return Some(Rewrite::To(a)),
        (Smin, _) if c == smallest => return Some(Rewrite::To(b)),
        (Smax, _) if c == smallest => return Some(Rewrite::To(a)),
        (Smax, _) if c == largest => return Some(Rewrite::To(b)),
        (Umin, -1) | (Umax, 0) => return Some(Rewrite::To(a)),
        (Umin, 0) | (Umax, -1) => return Some(Rewrite::To(b)),
        _ => {}
    }

    if let (Smin | Smax, Some(range)) = (opcode, range_of(function, a)) {
        for (chosen, predicate) in [(a, IntPredicate::Sle), (b, IntPredicate::Sge)] {
            let predicate = if opcode == Smin {
                predicate
            } else {
                predicate.swapped()
            };
            if decide(predicate, range, Interval::point(c)) == Some(true) {
                return Some(Rewrite::To(chosen));
            }
        }
    }

    // (y · c) / c = y, where the product does not overflow.
    if let Some((inner, inner_flags)) = matching(function, a, Mul)
        && let Some(factor) = number(function, inner[1])
        && factor != 0
    {
        let undone = match opcode {
            Sdiv => inner_flags.contains(Flags::NSW) && factor == c,
            Udiv => inner_flags.contains(Flags::NUW) && factor == c,
            Lshr => {
                inner_flags.contains(Flags::NUW) && factor as u128 & ones(bits) == 1 << unsigned
            }
            _ => false,
        };
        if undone {
            return Some(Rewrite::To(inner[0]));
        }
    }

    if opcode == Xor
        && ty.scalar() == Scalar::Int(1)
        && c == -1
        && let Some(rewrite) = negate_comparison(function, a)
    {
        return Some(rewrite);
    }

    // (y ∘ c₁) ∘ c = y ∘ (c₁ ∘ c)
    if matches!(opcode, Add | Mul | And | Or | Xor | Smin | Smax)
        && let Some((inner, inner_flags)) = matching(function, a, opcode)
        && let Some(c1) = number(function, inner[1])
    {
        let combined = match opcode {
            Add => c1.wrapping_add(c),
            Mul => c1.wrapping_mul(c),
            And => c1 & c,
            Or => c1 | c,
            Xor => c1 ^ c,
            Smin => c1.min(c),
            _ => c1.max(c),
        };
        let constant = function.int(ty, combined);
        let kept = if opcode == Add {
            flags_of_joined_sum(flags.intersection(inner_flags), c1, c, bits)
        } else {
            Flags::NONE
        };
        return Rewrite::binary(opcode, inner[0], constant, kept);
    }
    None
}

/// What holds for `x + (c₁ + c₂)` if `flags` hold for both sums of `(x + c₁) + c₂`.
fn flags_of_joined_sum(flags: Flags, c1: i128, c2: i128, bits: u32) -> Flags {
    let mut kept = Flags::NONE;
    let fits = c1
        .checked_add(c2)
        .is_some_and(|sum| sign_extend(sum as u128 & ones(bits), bits) == sum);
    if fits && (c1 >= 0) == (c2 >= 0) {
        kept = kept.union(flags.intersection(Flags::NSW));
    }
    let mask = ones(bits);
    let unsigned_fits = (c1 as u128 & mask)
        .checked_add(c2 as u128 & mask)
        .is_some_and(|sum| sum <= mask);
    if unsigned_fits {
        kept = kept.union(flags.intersection(Flags::NUW));
    }
    kept
}

/// The opposite of a comparison, as a comparison.
fn negate_comparison(function: &Function, condition: Value) -> Option<Rewrite> {
    let (op, _) = function.def_op(condition)?;
    let data = &function.ops[op];
    let payload = match data.payload {
        Payload::IntPredicate(predicate) => Payload::IntPredicate(predicate.negated()),
        Payload::FloatPredicate(predicate) => Payload::FloatPredicate(negate_float(predicate)),
        _ => return None,
    };
    Some(Rewrite::Into(
        data.opcode,
        data.operands.clone(),
        payload,
        data.flags,
    ))
}

fn negate_float(predicate: FloatPredicate) -> FloatPredicate {
    use FloatPredicate::*;
    match predicate {
        Oeq => Une,
        Une => Oeq,
        One => Ueq,
        Ueq => One,
        Ogt => Ule,
        Ule => Ogt,
        Oge => Ult,
        Ult => Oge,
        Olt => Uge,
        Uge => Olt,
        Ole => Ugt,
        Ugt => Ole,
        Ord => Uno,
        Uno => Ord,
    }
}

fn compare(function: &mut Function, op: Op) -> Option<Rewrite> {
    use IntPredicate::*;
    let data = &function.ops[op];
    let OpView::Icmp(predicate, a, b) = data.view() else {
        return None;
    };
    let ty = function.ty(a);
    let truth = ty.with_scalar(Scalar::Int(1));
    let icmp = |predicate, a, b| {
        Some(Rewrite::Into(
            Opcode::Icmp,
            smallvec![a, b],
            Payload::IntPredicate(predicate),
            Flags::NONE,
        ))
    };
    if a == b {
        let holds = matches!(predicate, Eq | Sle | Sge | Ule | Uge);
        return Some(Rewrite::To(function.int(truth, i128::from(holds))));
    }
    if function.is_constant(a) && !function.is_constant(b) {
        return icmp(predicate.swapped(), b, a);
    }
    // x - y = 0 is x = y.
    if let (Eq | Ne, Some(0), Some((inner, _))) = (
        predicate,
        number(function, b),
        matching(function, a, Opcode::Sub),
    ) {
        return icmp(predicate, inner[0], inner[1]);
    }
    if let Some((predicate, other)) = smaller_or_larger(function, predicate, a, b) {
        return icmp(predicate, a, other);
    }
    if let Some((predicate, other)) = smaller_or_larger(function, predicate, b, a) {
        return icmp(predicate, b, other);
    }
    let c = number(function, b)?;
    // A comparison of truth values with a constant is the value or its negation.
    if ty.scalar() == Scalar::Int(1) && matches!(predicate, Eq | Ne) {
        if (predicate == Eq) == (c == -1) {
            return Some(Rewrite::To(a));
        }
        let all = function.int(ty, -1);
        return Rewrite::binary(Opcode::Xor, a, all, Flags::NONE);
    }
    if let Some(range) = range_of(function, a)
        && let Some(holds) = decide(predicate, range, Interval::point(c))
    {
        return Some(Rewrite::To(function.int(truth, i128::from(holds))));
    }
    // x + c₁ = c is x = c - c₁.
    if matches!(predicate, Eq | Ne)
        && let Some((inner, _)) = matching(function, a, Opcode::Add)
        && let Some(c1) = number(function, inner[1])
    {
        let moved = function.int(ty, c.wrapping_sub(c1));
        return icmp(predicate, inner[0], moved);
    }
    None
}

/// `x = min(x, y)` is `x ≤ y`, and so on: what a value is compared with instead of the smaller or larger of itself and that.
fn smaller_or_larger(
    function: &Function,
    predicate: IntPredicate,
    value: Value,
    chosen: Value,
) -> Option<(IntPredicate, Value)> {
    let OpView::Binary(opcode, first, second) = function.definition(chosen)? else {
        return None;
    };
    let equal = match opcode {
        Opcode::Umin => IntPredicate::Ule,
        Opcode::Umax => IntPredicate::Uge,
        Opcode::Smin => IntPredicate::Sle,
        Opcode::Smax => IntPredicate::Sge,
        _ => return None,
    };
    let predicate = match predicate {
        IntPredicate::Eq => equal,
        IntPredicate::Ne => equal.negated(),
        _ => return None,
    };
    match value {
        _ if first == value => Some((predicate, second)),
        _ if second == value => Some((predicate, first)),
        _ => None,
    }
}

/// Between which limits a value lies, as far as that is plain to see.
fn range_of(function: &Function, value: Value) -> Option<Interval> {
    let data = &function.values[value];
    let range = match data.def {
        ValueDef::Argument { region, index } if Some(region) == function.body => {
            function.params[index as usize].facts.range
        }
        ValueDef::Result { op, .. }
            if function.ops[op].opcode == Opcode::Zext && !data.ty.is_vector() =>
        {
            let source = function.ops[op].operand();
            let bits = function.ty(source).scalar().bits();
            Some(Range {
                min: 0,
                max: ones(bits) as i128,
            })
        }
        _ => None,
    };
    data.range.or(range).map(Interval::from)
}

fn select(function: &mut Function, op: Op) -> Option<Rewrite> {
    let data = &function.ops[op];
    let OpView::Select {
        condition,
        then: a,
        otherwise: b,
    } = data.view()
    else {
        return None;
    };
    let flags = data.flags;
    let ty = function.ty(a);
    let select = |condition, a, b| {
        Some(Rewrite::Into(
            Opcode::Select,
            smallvec![condition, a, b],
            Payload::None,
            flags,
        ))
    };
    match number(function, condition) {
        Some(0) => return Some(Rewrite::To(b)),
        Some(_) => return Some(Rewrite::To(a)),
        None => {}
    }
    // An undefined value may as well be the other one.
    if a == b || matches!(function.constant_of(b), Some(Constant::Undef)) {
        return Some(Rewrite::To(a));
    }
    if matches!(function.constant_of(a), Some(Constant::Undef)) {
        return Some(Rewrite::To(b));
    }
    if let Some(positive) = negated_condition(function, condition) {
        return select(positive, b, a);
    }
    if ty.scalar() == Scalar::Int(1) && function.ty(condition) == ty {
        match (number(function, a), number(function, b)) {
            (Some(-1), Some(0)) => return Some(Rewrite::To(condition)),
            (Some(0), Some(-1)) => {
                let all = function.int(ty, -1);
                return Rewrite::binary(Opcode::Xor, condition, all, Flags::NONE);
            }
            _ => {}
        }
    }
    // A choice within a choice on the same condition is made already.
    if let Some((inner, _)) = matching(function, a, Opcode::Select)
        && inner[0] == condition
    {
        return select(condition, inner[1], b);
    }
    if let Some((inner, _)) = matching(function, b, Opcode::Select)
        && inner[0] == condition
    {
        return select(condition, a, inner[2]);
    }
    None
}

fn offset(function: &mut Function, op: Op) -> Option<Rewrite> {
    let data = &function.ops[op];
    let OpView::Offset { base, index, scale } = data.view() else {
        return None;
    };
    let flags = data.flags;
    let offset = |base, index, scale, flags| {
        Some(Rewrite::Into(
            Opcode::Offset,
            smallvec![base, index],
            Payload::Scale(scale),
            flags,
        ))
    };
    if function.ty(index) != Type::I64 {
        return None;
    }
    if scale == 0 {
        return Some(Rewrite::To(base));
    }
    if let Some(count) = number(function, index) {
        if count == 0 {
            return Some(Rewrite::To(base));
        }
        // Constants count in bytes.
        let bytes = i64::try_from(count * i128::from(scale)).ok()?;
        if scale != 1 {
            let index = function.int(Type::I64, i128::from(bytes));
            return offset(base, index, 1, flags);
        }
        let (inner, _) = function.def_op(base)?;
        let inner = &function.ops[inner];
        if let OpView::Offset { base, index, scale } = inner.view() {
            let sum = function
                .int_of(index)?
                .checked_mul(i128::from(scale))?
                .checked_add(i128::from(bytes))?;
            let sum = i64::try_from(sum).ok()?;
            let kept = flags.intersection(inner.flags);
            let index = function.int(Type::I64, i128::from(sum));
            return offset(base, index, 1, kept);
        }
        return None;
    }
    // p + s·(c·i) = p + (s·c)·i
    if let Some((inner, inner_flags)) = matching(function, index, Opcode::Mul)
        && let Some(factor) = number(function, inner[1])
        && let Some(scale) = i64::try_from(factor)
            .ok()
            .and_then(|factor| factor.checked_mul(scale))
    {
        let kept = match inner_flags.contains(Flags::NUW) {
            true => flags,
            false => flags.without(Flags::NUW),
        };
        return offset(base, inner[0], scale, kept);
    }
    None
}

/// How far one address is from another that it was counted from: index, scale, and what is promised of their product.
fn distance(function: &Function, to: Value, from: Value) -> Option<(Value, i64, Flags)> {
    let (pointer, _) = matching(function, to, Opcode::Ptrtoint)?;
    let (offset, _) = function.def_op(pointer[0])?;
    let data = &function.ops[offset];
    let OpView::Offset { base, index, scale } = data.view() else {
        return None;
    };
    if function.ty(to) != Type::I64 || function.ty(index) != Type::I64 {
        return None;
    }
    is_address_of(function, from, base, MAX_BRANCHES).then(|| {
        let promised = match scale > 0 {
            true => data.flags.intersection(Flags::NUW),
            false => Flags::NONE,
        };
        (index, scale, promised)
    })
}

/// How many branches within each other an address and its pointer may come out of.
const MAX_BRANCHES: u32 = 4;

/// Whether a number is the address of a pointer. Both may be results of one branch: memory of no size has an address that is made up.
fn is_address_of(function: &Function, number: Value, pointer: Value, depth: u32) -> bool {
    if let Some((source, _)) = matching(function, number, Opcode::Ptrtoint) {
        return source[0] == pointer;
    }
    if let (Some(Constant::Bits(number)), Some(Constant::Bits(pointer))) =
        (function.constant_of(number), function.constant_of(pointer))
    {
        return number == pointer;
    }
    let (Some((op, index)), Some((other, other_index))) =
        (function.def_op(number), function.def_op(pointer))
    else {
        return false;
    };
    let is_branch = matches!(function.ops[op].opcode, Opcode::If | Opcode::Switch);
    op == other
        && is_branch
        && depth > 0
        && function.ops[op].regions.iter().all(|&region| {
            yielded(function, region).is_none_or(|values| {
                let (number, pointer) = (values[index], values[other_index]);
                is_address_of(function, number, pointer, depth - 1)
            })
        })
}
