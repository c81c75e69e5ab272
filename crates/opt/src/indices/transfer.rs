//! What the result of one integer operation is in terms of its operands.

use super::{Indices, is_index};
use crate::interval::{Interval, exact, transfer};
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Flags, OpData, OpView, Opcode, Value};
use smallvec::SmallVec;

/// Larger factors are assumed to wrap around on purpose.
const LARGE_FACTOR: u64 = 1 << 32;

/// How deep narrow arithmetic is looked into.
const MAX_DEPTH: usize = 8;

impl Indices<'_> {
    /// The expression and interval of an operation's only result.
    pub(super) fn transfer(
        &self,
        data: &OpData,
        result: Value,
    ) -> (Option<Symbolic>, Option<Interval>) {
        if !is_index(self.function, result) {
            return (None, None);
        }
        let bits = self.function.ty(result).scalar().bits();
        let operands: SmallVec<[Interval; 3]> = (data.operands.iter())
            .map(|&operand| self.interval_of_value(operand))
            .collect();
        let interval = transfer(self.function, data, &operands);
        let expression = self.transfer_expression(data, result, bits);
        (expression, interval)
    }

    fn transfer_expression(&self, data: &OpData, result: Value, bits: u32) -> Option<Symbolic> {
        if !data
            .operands
            .iter()
            .all(|&operand| is_index(self.function, operand))
        {
            return None;
        }
        let of = |value: Value| self.expression(value);
        match data.view() {
            OpView::Cast(_, a) if self.widened.contains(&result) => self.in_more_bits(a, 0),
            OpView::Binary(
                opcode @ (Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Shl),
                a,
                b,
            ) => {
                let exact = data.flags.contains(Flags::NSW);
                if bits < 64 && !exact && !self.fits(data, bits) {
                    return None;
                }
                let combined = match opcode {
                    Opcode::Add => of(a).add(&of(b)),
                    Opcode::Sub => of(a).sub(&of(b)),
                    Opcode::Mul => of(a).mul(&of(b)),
                    _ => {
                        let amount = of(b).is_constant()?;
                        if amount < 0 || amount >= i64::from(bits.min(62)) {
                            return None;
                        }
                        of(a).scale(1 << amount)
                    }
                }?;
                let large = combined
                    .terms()
                    .iter()
                    .any(|term| term.coefficient.unsigned_abs() > LARGE_FACTOR);
                (exact || !large).then_some(combined)
            }
            // Where the low bits of one side are zero, `or` with a small constant is a sum.
            OpView::Binary(Opcode::Or, a, b) if bits == 64 => {
                let (left, right) = (of(a), of(b));
                let low = right.is_constant().filter(|&low| low >= 0)?;
                let free = left.common_divisor() | left.constant_part().unsigned_abs();
                let zeros = free.trailing_zeros();
                (zeros < 63 && low < 1 << zeros).then(|| left.plus(low))?
            }
            OpView::Cast(Opcode::Sext, a) => Some(of(a)),
            OpView::Cast(Opcode::Zext, a) if self.interval_of_value(a).min >= 0 => Some(of(a)),
            OpView::Cast(Opcode::TruncInt, a) => {
                let source = self.interval_of_value(a);
                let kept = source.is_within(Interval::of_bits(bits));
                (kept || data.flags.contains(Flags::NSW)).then(|| of(a))
            }
            // The limit that trip counts get so that they fit; sizes are below it.
            OpView::Binary(Opcode::Umin, a, b)
                if of(b).is_constant().is_some_and(|most| most >= i64::MAX - 1) =>
            {
                Some(of(a))
            }
            // Where it is known which one is larger.
            OpView::Binary(
                opcode @ (Opcode::Umin | Opcode::Smin | Opcode::Umax | Opcode::Smax),
                one,
                other,
            ) => {
                let [a, b] = [one, other].map(|value| self.interval_of_value(value));
                let unsigned = matches!(opcode, Opcode::Umin | Opcode::Umax);
                if unsigned && (a.min < 0 || b.min < 0) {
                    return None;
                }
                let (smaller, larger) = match (a.max <= b.min, b.max <= a.min) {
                    (true, _) => (one, other),
                    (_, true) => (other, one),
                    _ => return None,
                };
                Some(match opcode {
                    Opcode::Umin | Opcode::Smin => of(smaller),
                    _ => of(larger),
                })
            }
            OpView::Select {
                then, otherwise, ..
            } => {
                let (a, b) = (of(then), of(otherwise));
                (a == b && self.function.ty(result) == self.function.ty(then)).then_some(a)
            }
            _ => None,
        }
    }

    /// What narrow arithmetic would compute if it had more bits.
    fn in_more_bits(&self, value: Value, depth: usize) -> Option<Symbolic> {
        let of = |value: Value| self.in_more_bits(value, depth + 1);
        match self.function.definition(value) {
            _ if depth > MAX_DEPTH => None,
            Some(OpView::Binary(Opcode::Add, a, b)) => of(a)?.add(&of(b)?),
            Some(OpView::Binary(Opcode::Sub, a, b)) => of(a)?.sub(&of(b)?),
            Some(OpView::Binary(Opcode::Mul, a, b)) => of(a)?.mul(&of(b)?),
            Some(OpView::Cast(Opcode::TruncInt, a)) => Some(self.expression(a)),
            _ => Some(self.expression(value)),
        }
    }

    /// Whether the expression of an operation's result is its value as a number.
    pub(super) fn computes_exactly(&self, data: &OpData) -> bool {
        let wraps = match data.opcode {
            Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Shl => {
                !data.flags.contains(Flags::NSW) && !self.fits(data, 64)
            }
            _ => false,
        };
        !wraps && data.operands.iter().all(|&operand| self.is_exact(operand))
    }

    pub(super) fn is_exact(&self, value: Value) -> bool {
        // A value without an expression is a variable.
        let info = &self.info[value];
        info.expression.is_none() || info.exact
    }

    /// Whether the exact result of an operation surely fits into its type.
    fn fits(&self, data: &OpData, bits: u32) -> bool {
        let [a, b] = data.both().map(|value| self.interval_of_value(value));
        exact(data.opcode, a, b).is_some_and(|sum| sum.is_within(Interval::of_bits(bits)))
    }
}
