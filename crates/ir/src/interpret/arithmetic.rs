//! Evaluates operations without memory, calls and control flow.
//!
//! The interpreter and constant folding share this: [`evaluate`] returns exactly what running the operation returns. All of
//! it is deterministic: the same bits on every machine, except for the payloads of NaNs.
//!
//! An undefined operand makes the result undefined, lane by lane; so does a broken promise (`nsw`, `nuw`, `exact`).
//! Only the choice that `select` does not take may be undefined without consequence.

use super::datum::Bits;
use super::fault::FaultKind;
use super::float;
use crate::facts::Flags;
use crate::function::{Payload, ones, sign_extend};
use crate::opcode::{Form, IntPredicate, Opcode};
use crate::types::{Scalar, Type};
use smallvec::{SmallVec, smallvec};

/// The results of an operation whose effect is `Pure` or `Partial`.
///
/// Operands and types are those of a verified operation, in its order. It fails for undefined behaviour
/// (division by zero) and, with [`FaultKind::NotPure`], for operations that need more than their operands.
pub fn evaluate(
    opcode: Opcode,
    payload: &Payload,
    flags: Flags,
    operand_types: &[Type],
    operands: &[&Bits],
    result_types: &[Type],
) -> Result<SmallVec<[Bits; 2]>, FaultKind> {
    let (Some(&first), Some(&from), Some(&to)) = (
        operands.first(),
        operand_types.first(),
        result_types.first(),
    ) else {
        return Err(FaultKind::NotPure);
    };
    let operand = |index: usize| operands.get(index).copied().unwrap_or(&Bits::Undef);
    let one = |bits: Bits| -> Result<SmallVec<[Bits; 2]>, FaultKind> { Ok(smallvec![bits]) };
    let lanes = usize::from(to.lanes());
    match opcode {
        Opcode::Select if from.is_vector() => {
            let chosen = |lane: usize| match first.lane(lane) {
                None => None,
                Some(0) => operand(2).lane(lane),
                Some(_) => operand(1).lane(lane),
            };
            one(Bits::from_lanes((0..lanes).map(chosen).collect()))
        }
        Opcode::Select => one(match first.lane(0) {
            None => Bits::Undef,
            Some(0) => operand(2).clone(),
            Some(_) => operand(1).clone(),
        }),
        Opcode::Splat => one(Bits::from_lanes(
            vec![first.lane(0); lanes].into_boxed_slice(),
        )),
        Opcode::Extract => {
            let index = operand(1).lane(0).and_then(|raw| usize::try_from(raw).ok());
            one(Bits::from_scalar(index.and_then(|index| first.lane(index))))
        }
        Opcode::Insert => {
            let index = operand(2).lane(0).and_then(|raw| usize::try_from(raw).ok());
            let Some(index) = index.filter(|&index| index < lanes) else {
                return one(Bits::Undef);
            };
            let mut vector: Box<[_]> = (0..lanes).map(|lane| first.lane(lane)).collect();
            vector[index] = operand(1).lane(0);
            one(Bits::from_lanes(vector))
        }
        Opcode::Shuffle => {
            let Payload::Lanes(mask) = payload else {
                return Err(FaultKind::NotPure);
            };
            let half = usize::from(from.lanes());
            let pick = |&lane: &u16| {
                let lane = usize::from(lane);
                if lane < half {
                    first.lane(lane)
                } else {
                    operand(1).lane(lane - half)
                }
            };
            one(Bits::from_lanes(mask.iter().map(pick).collect()))
        }
        Opcode::ReduceFadd => {
            let scalar = from.scalar();
            let mut sum = first.lane(0);
            for lane in 1..usize::from(from.lanes()) {
                sum = match (sum, first.lane(lane)) {
                    (Some(a), Some(b)) => Some(float::compute(Opcode::Fadd, scalar, [a, b, 0])),
                    _ => None,
                };
            }
            one(Bits::from_scalar(sum))
        }
        Opcode::Offset => {
            let Payload::Scale(scale) = *payload else {
                return Err(FaultKind::NotPure);
            };
            one(Bits::from_scalar(
                match (first.lane(0), operand(1).lane(0)) {
                    (Some(base), Some(index)) => Some(offset(base, index, scale)),
                    _ => None,
                },
            ))
        }
        Opcode::Exclusive => one(first.clone()),
        Opcode::Bitcast => one(bitcast(first, from, to)),
        _ if matches!(opcode.form(), Form::FloatPair | Form::FloatSplit) => {
            Ok(evaluate_pair(opcode, from, first))
        }
        _ if is_lanewise(opcode) => {
            let lane = |lane: usize| {
                evaluate_lane(
                    opcode,
                    payload,
                    flags,
                    from.scalar(),
                    to.scalar(),
                    [
                        first.lane(lane),
                        lane_of(operands, 1, lane),
                        lane_of(operands, 2, lane),
                    ],
                )
            };
            if !to.is_vector() {
                return one(Bits::from_scalar(lane(0)?));
            }
            let lanes = (0..lanes).map(lane).collect::<Result<Box<[_]>, _>>()?;
            one(Bits::from_lanes(lanes))
        }
        _ => Err(FaultKind::NotPure),
    }
}

/// The two results of an operation that splits a float.
fn evaluate_pair(opcode: Opcode, from: Type, first: &Bits) -> SmallVec<[Bits; 2]> {
    let pair = |lane: usize| {
        let raw = first.lane(lane)?;
        Some(float::split(opcode, from.scalar(), raw))
    };
    if !from.is_vector() {
        let pair = pair(0);
        return smallvec![
            Bits::from_scalar(pair.map(|(a, _)| a)),
            Bits::from_scalar(pair.map(|(_, b)| b)),
        ];
    }
    let (a, b): (Vec<_>, Vec<_>) = (0..usize::from(from.lanes()))
        .map(pair)
        .map(|pair| (pair.map(|(a, _)| a), pair.map(|(_, b)| b)))
        .unzip();
    smallvec![Bits::from_lanes(a.into()), Bits::from_lanes(b.into())]
}

/// A lane of an operand; a missing operand counts as defined.
fn lane_of(operands: &[&Bits], index: usize, lane: usize) -> Option<u128> {
    operands
        .get(index)
        .map_or(Some(0), |operand| operand.lane(lane))
}

/// Whether an operation has one result and computes each of its lanes from the same lane of its operands.
pub(super) fn is_lanewise(opcode: Opcode) -> bool {
    match opcode.form() {
        Form::IntUnary
        | Form::IntBinary
        | Form::FloatUnary
        | Form::FloatBinary
        | Form::FloatTernary
        | Form::FloatAndInt
        | Form::FloatToExponent
        | Form::IntCompare
        | Form::FloatCompare => true,
        Form::Cast => opcode != Opcode::Bitcast,
        Form::FloatSplit
        | Form::FloatPair
        | Form::Special
        | Form::Structured
        | Form::Terminator => false,
    }
}

/// One lane of an operation for which [`is_lanewise`] holds; operands that it does not have are defined.
#[inline]
pub(super) fn evaluate_lane(
    opcode: Opcode,
    payload: &Payload,
    flags: Flags,
    from: Scalar,
    to: Scalar,
    operands: [Option<u128>; 3],
) -> Result<Option<u128>, FaultKind> {
    let [Some(a), Some(b), Some(c)] = operands else {
        let divides = matches!(
            opcode,
            Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem
        );
        if divides && operands[1].is_none() {
            return Err(FaultKind::UndefUsed { role: "a divisor" });
        }
        if opcode == Opcode::Freeze {
            return Ok(Some(0));
        }
        return Ok(None);
    };
    match opcode.form() {
        Form::IntUnary => Ok(Some(int_unary(opcode, from.bits(), a))),
        Form::IntBinary => int_binary(opcode, from.bits(), flags, a, b),
        Form::FloatUnary
        | Form::FloatBinary
        | Form::FloatTernary
        | Form::FloatAndInt
        | Form::FloatToExponent => Ok(Some(float::compute(opcode, from, [a, b, c]))),
        Form::IntCompare => match payload {
            Payload::IntPredicate(predicate) => Ok(Some(u128::from(compare_ints(
                *predicate,
                from.bits(),
                a,
                b,
            )))),
            _ => Err(FaultKind::NotPure),
        },
        Form::FloatCompare => match payload {
            Payload::FloatPredicate(predicate) => {
                let (a, b) = (float::widen(from, a), float::widen(from, b));
                Ok(Some(u128::from(predicate.holds(a, b))))
            }
            _ => Err(FaultKind::NotPure),
        },
        Form::Cast => Ok(cast(opcode, flags, from, to, a)),
        _ => Err(FaultKind::NotPure),
    }
}

/// The address `base + scale·index`.
#[inline]
pub(super) fn offset(base: u128, index: u128, scale: i64) -> u128 {
    let distance = (index as u64).wrapping_mul(scale as u64);
    u128::from((base as u64).wrapping_add(distance))
}

fn int_unary(opcode: Opcode, bits: u32, a: u128) -> u128 {
    let unused = 128 - bits;
    match opcode {
        Opcode::Ctpop => u128::from(a.count_ones()) & ones(bits),
        Opcode::Ctlz => u128::from(a.leading_zeros() - unused) & ones(bits),
        Opcode::Cttz => u128::from(a.trailing_zeros().min(bits)) & ones(bits),
        Opcode::Bswap => a.swap_bytes() >> unused,
        Opcode::Bitreverse => a.reverse_bits() >> unused,
        Opcode::Freeze => a,
        _ => unreachable!("{opcode} is not an operation on one integer"),
    }
}

fn int_binary(
    opcode: Opcode,
    bits: u32,
    flags: Flags,
    a: u128,
    b: u128,
) -> Result<Option<u128>, FaultKind> {
    let mask = ones(bits);
    let signed = |raw: u128| sign_extend(raw, bits);
    let fits_signed = |value: Option<i128>| {
        value.is_some_and(|value| sign_extend(value as u128 & mask, bits) == value)
    };
    let fits_unsigned = |value: Option<u128>| value.is_some_and(|value| value & mask == value);
    let nsw = flags.contains(Flags::NSW);
    let nuw = flags.contains(Flags::NUW);
    let exact = flags.contains(Flags::EXACT);
    let kept = |holds: bool, value: u128| Ok(holds.then_some(value & mask));
    match opcode {
        Opcode::Add => kept(
            (!nsw || fits_signed(signed(a).checked_add(signed(b))))
                && (!nuw || fits_unsigned(a.checked_add(b))),
            a.wrapping_add(b),
        ),
        Opcode::Sub => kept(
            (!nsw || fits_signed(signed(a).checked_sub(signed(b)))) && (!nuw || a >= b),
            a.wrapping_sub(b),
        ),
        Opcode::Mul => kept(
            (!nsw || fits_signed(signed(a).checked_mul(signed(b))))
                && (!nuw || fits_unsigned(a.checked_mul(b))),
            a.wrapping_mul(b),
        ),
        Opcode::Sdiv | Opcode::Srem => {
            let (a, b) = (signed(a), signed(b));
            if b == 0 {
                return Err(FaultKind::DivisionByZero);
            }
            if b == -1 && a == sign_extend(1 << (bits - 1), bits) {
                return Err(FaultKind::DivisionOverflow);
            }
            if opcode == Opcode::Srem {
                return kept(true, (a % b) as u128);
            }
            kept(!exact || a % b == 0, (a / b) as u128)
        }
        Opcode::Udiv | Opcode::Urem if b == 0 => Err(FaultKind::DivisionByZero),
        Opcode::Udiv => kept(!exact || a.is_multiple_of(b), a / b),
        Opcode::Urem => kept(true, a % b),
        Opcode::Shl | Opcode::Lshr | Opcode::Ashr => {
            if b >= u128::from(bits) {
                return Ok(None);
            }
            let amount = b as u32;
            match opcode {
                Opcode::Shl => {
                    let shifted = (a << amount) & mask;
                    kept(
                        (!nsw || signed(shifted) >> amount == signed(a))
                            && (!nuw || shifted >> amount == a),
                        shifted,
                    )
                }
                _ if exact && a & ones(amount) != 0 => Ok(None),
                Opcode::Lshr => kept(true, a >> amount),
                _ => kept(true, (signed(a) >> amount) as u128),
            }
        }
        Opcode::And => Ok(Some(a & b)),
        Opcode::Or => Ok(Some(a | b)),
        Opcode::Xor => Ok(Some(a ^ b)),
        Opcode::Smin => kept(true, signed(a).min(signed(b)) as u128),
        Opcode::Smax => kept(true, signed(a).max(signed(b)) as u128),
        Opcode::Umin => Ok(Some(a.min(b))),
        Opcode::Umax => Ok(Some(a.max(b))),
        _ => unreachable!("{opcode} is not an operation on two integers"),
    }
}

fn compare_ints(predicate: IntPredicate, bits: u32, a: u128, b: u128) -> bool {
    let signed = |raw: u128| sign_extend(raw, bits);
    match predicate {
        IntPredicate::Eq => a == b,
        IntPredicate::Ne => a != b,
        IntPredicate::Slt => signed(a) < signed(b),
        IntPredicate::Sle => signed(a) <= signed(b),
        IntPredicate::Sgt => signed(a) > signed(b),
        IntPredicate::Sge => signed(a) >= signed(b),
        IntPredicate::Ult => a < b,
        IntPredicate::Ule => a <= b,
        IntPredicate::Ugt => a > b,
        IntPredicate::Uge => a >= b,
    }
}

fn cast(opcode: Opcode, flags: Flags, from: Scalar, to: Scalar, a: u128) -> Option<u128> {
    let mask = ones(to.bits());
    match opcode {
        Opcode::TruncInt => {
            let low = a & mask;
            let signed = sign_extend(low, to.bits()) == sign_extend(a, from.bits());
            let kept = (!flags.contains(Flags::NSW) || signed)
                && (!flags.contains(Flags::NUW) || low == a);
            kept.then_some(low)
        }
        Opcode::Zext => Some(a),
        Opcode::Sext => Some(sign_extend(a, from.bits()) as u128 & mask),
        Opcode::Fptrunc | Opcode::Fpext => Some(float::convert(from, to, a)),
        Opcode::Fptosi => float::to_int(float::widen(from, a), to.bits(), true),
        Opcode::Fptoui => float::to_int(float::widen(from, a), to.bits(), false),
        Opcode::FptosiSat => Some(float::to_int_saturating(
            float::widen(from, a),
            to.bits(),
            true,
        )),
        Opcode::FptouiSat => Some(float::to_int_saturating(
            float::widen(from, a),
            to.bits(),
            false,
        )),
        Opcode::Sitofp => {
            let value = sign_extend(a, from.bits());
            Some(float::from_int(to, value < 0, value.unsigned_abs()))
        }
        Opcode::Uitofp => Some(float::from_int(to, false, a)),
        Opcode::Ptrtoint | Opcode::Inttoptr => Some(a & mask),
        _ => unreachable!("{opcode} is not a cast of single lanes"),
    }
}

/// The bits of all lanes, the first lowest, split into lanes of another size. A lane with undefined bits is undefined.
fn bitcast(bits: &Bits, from: Type, to: Type) -> Bits {
    if !from.is_vector() && !to.is_vector() {
        return bits.clone();
    }
    let (from_width, to_width) = (from.scalar().bits(), to.scalar().bits());
    let cut = |lane: u32| {
        let mut raw = 0;
        let mut filled = 0;
        while filled < to_width {
            let position = lane * to_width + filled;
            let (source, start) = (position / from_width, position % from_width);
            let count = (from_width - start).min(to_width - filled);
            raw |= ((bits.lane(source as usize)? >> start) & ones(count)) << filled;
            filled += count;
        }
        Some(raw)
    };
    if to.is_vector() {
        Bits::from_lanes((0..u32::from(to.lanes())).map(cut).collect())
    } else {
        Bits::from_scalar(cut(0))
    }
}
