//! Which values an integer may have: an interval with a step.
//!
//! `3·i + 1` for a counter from 0 on is `1, 4, 7, …`. Offsets of pointers are derived from this, and from them the
//! period of arrays. The analysis runs through a function in rounds until nothing changes; carried values that keep growing are widened.
//!
//! Conditions count: `i != 8` in the region of an `if` ends a row that comes from above at 16. `undef` is whatever suits: it adds nothing.
//!
//! Arithmetic that may wrap around keeps only what wrapping keeps: the remainder modulo a power of two. A loop counter
//! is taken not to run for more than 2^48 rounds.

use super::guard::{Bounds, ends_in_trap};
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{
    Constant, Flags, Function, Op, Opcode, Region, Scalar, Type, Value, ValueDef, sign_extend,
};

/// The numbers `lo, lo + step, …, hi`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub lo: i128,
    pub hi: i128,
    /// 0 where there is only one number.
    pub step: u128,
}

/// No bound lies beyond this, so that arithmetic on bounds does not overflow: numbers out there fit into no type that is followed closely.
const FAR: i128 = 1 << 125;

/// How often a counted loop may run, at most.
const ROUNDS: i128 = 1 << 48;

/// After how many changes a carried value is widened.
const PATIENCE: u8 = 6;

/// After how many rounds over the function every value that still changes keeps its step only.
const LIMIT: usize = 12;

/// After how many rounds every value that still changes is given up.
const LAST: usize = 2 * LIMIT;

impl Interval {
    pub(super) const fn exact(value: i128) -> Interval {
        Interval {
            lo: value,
            hi: value,
            step: 0,
        }
    }

    /// All signed numbers of this many bits.
    pub(super) fn full(bits: u32) -> Interval {
        let half = 1i128 << (bits.clamp(1, 126) - 1);
        Interval {
            lo: -half,
            hi: half - 1,
            step: 1,
        }
    }

    /// The numbers from `lo` to `hi`, both of which may be too large to be told. Those beyond what can be told are left out where the step says which they are; otherwise
    /// nothing is known.
    fn bounded(lo: i128, hi: i128, step: u128) -> Interval {
        let near = -FAR..=FAR;
        let unknown = Interval {
            lo: -FAR,
            hi: FAR,
            step: 1,
        };
        let told = near.contains(&lo) && near.contains(&hi);
        match i128::try_from(step) {
            _ if told => Interval { lo, hi, step },
            Ok(whole @ 1..) if whole <= FAR >> 1 => {
                match (near.contains(&lo), near.contains(&hi)) {
                    (true, _) => Interval {
                        lo,
                        hi: FAR - (FAR - lo).rem_euclid(whole),
                        step,
                    },
                    (_, true) => Interval {
                        lo: -FAR + (hi + FAR).rem_euclid(whole),
                        hi,
                        step,
                    },
                    _ => unknown,
                }
            }
            _ => unknown,
        }
    }

    pub(super) fn negated(self) -> Interval {
        Interval::bounded(
            self.hi.saturating_neg(),
            self.lo.saturating_neg(),
            self.step,
        )
    }

    /// Those of them that are not negative; all where none is.
    pub(super) fn at_least_zero(self) -> Interval {
        self.cut(0, self.hi).unwrap_or(self)
    }

    fn join(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
            step: gcd(gcd(self.step, other.step), self.lo.abs_diff(other.lo)),
        }
    }

    pub(super) fn plus(self, other: Interval) -> Interval {
        Interval::bounded(
            self.lo.saturating_add(other.lo),
            self.hi.saturating_add(other.hi),
            gcd(self.step, other.step),
        )
    }

    pub(super) fn times(self, factor: i128) -> Interval {
        let (a, b) = (
            self.lo.saturating_mul(factor),
            self.hi.saturating_mul(factor),
        );
        let step = self.step.saturating_mul(factor.unsigned_abs());
        Interval::bounded(a.min(b), a.max(b), step)
    }

    /// A set that contains all products with a number of another set.
    fn product(self, other: Interval) -> Interval {
        let corners = [
            self.lo.saturating_mul(other.lo),
            self.lo.saturating_mul(other.hi),
            self.hi.saturating_mul(other.lo),
            self.hi.saturating_mul(other.hi),
        ];
        let lo = corners.into_iter().min().unwrap_or(-FAR).clamp(-FAR, FAR);
        let hi = corners.into_iter().max().unwrap_or(FAR).clamp(-FAR, FAR);
        // What divides all numbers of a set divides all products.
        let divisor = |set: Interval| gcd(set.step, set.lo.unsigned_abs());
        let step = divisor(self).saturating_mul(divisor(other)).max(1);
        Interval { lo: 0, hi: 0, step }.spread_over(Interval { lo, hi, step: 1 })
    }

    /// All numbers divided by `2^by`, rounded down. Where the division leaves no rest, multiples stay multiples.
    fn shifted_down(self, by: u32) -> Interval {
        let whole = 1u128 << by;
        let divides =
            self.step.is_multiple_of(whole) && self.lo.unsigned_abs().is_multiple_of(whole);
        let (lo, hi) = (self.lo >> by, self.hi >> by);
        Interval {
            lo,
            hi,
            step: match divides {
                _ if lo == hi => 0,
                true => self.step >> by,
                false => 1,
            },
        }
    }

    fn as_exact(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// What remains of a result in a type of this many bits: itself where it fits, or where overflow is excluded;
    /// otherwise only its remainder modulo a power of two.
    pub(super) fn fitted(self, bits: u32, no_overflow: bool) -> Interval {
        let full = Interval::full(bits);
        if self.lo >= full.lo && self.hi <= full.hi {
            return self;
        }
        if no_overflow && self.step > 0 && self.lo <= full.hi && self.hi >= full.lo {
            return self.cut(full.lo, full.hi).unwrap_or(full);
        }
        let modulus = if self.step == 0 {
            1u128 << bits.min(126)
        } else {
            1u128 << self.step.trailing_zeros().min(bits).min(126)
        };
        if self.step == 0 {
            let raw = (self.lo as u128) & (modulus - 1);
            return Interval::exact(sign_extend(raw, bits.min(126)));
        }
        Interval {
            lo: self.lo,
            hi: self.lo,
            step: modulus,
        }
        .spread_over(full)
    }

    /// What numbers, some of them negative, are as unsigned numbers of this many bits.
    fn unsigned(self, bits: u32) -> Interval {
        let step = match self.step {
            0 => 1,
            step => 1u128 << step.trailing_zeros().min(bits).min(100),
        };
        Interval { step, ..self }.spread_over(Interval {
            lo: 0,
            hi: (1i128 << bits.min(100)) - 1,
            step: 1,
        })
    }

    /// All numbers within `bounds` that are equal to `lo` modulo `step`.
    fn spread_over(self, bounds: Interval) -> Interval {
        let step = i128::try_from(self.step).ok();
        let step = step.filter(|step| (1..=FAR).contains(step)).unwrap_or(1);
        let first = self.lo.rem_euclid(step);
        let lo = bounds.lo + (first - bounds.lo).rem_euclid(step);
        let hi = bounds.hi - (bounds.hi - first).rem_euclid(step);
        if lo >= hi {
            return Interval::exact(lo);
        }
        Interval {
            lo,
            hi,
            step: step as u128,
        }
    }

    /// What lies between two bounds.
    pub(super) fn cut(self, min: i128, max: i128) -> Option<Interval> {
        // Bounds that come from ranges may be any numbers.
        let (min, max) = (min.max(-FAR), max.min(FAR));
        let step = i128::try_from(self.step).unwrap_or(1).max(1);
        let above =
            |from: i128, to: i128| (to.rem_euclid(step) - from.rem_euclid(step)).rem_euclid(step);
        let lo = match self.lo >= min {
            true => self.lo,
            false => min.checked_add(above(min, self.lo))?,
        };
        let hi = match self.hi <= max {
            true => self.hi,
            false => max.checked_sub(above(self.lo, max))?,
        };
        (lo <= hi).then_some(Interval {
            lo,
            hi,
            step: if lo == hi { 0 } else { self.step },
        })
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The intervals of all integers of a function.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    known: SecondaryMap<Value, Option<Interval>>,
}

impl Intervals {
    /// Computes them.
    pub(super) fn of(function: &Function) -> Intervals {
        let mut analysis = Analysis {
            function,
            known: SecondaryMap::new(),
            changes: SecondaryMap::new(),
            bounds: Bounds::default(),
            changed: true,
            effort: Effort::Patient,
        };
        if let Some(body) = function.body {
            for (&argument, param) in function.regions[body].args.iter().zip(&function.params) {
                let full = Interval::full(param.ty.scalar().bits());
                let range = param.facts.range;
                analysis.set(
                    argument,
                    range.and_then(|range| full.cut(range.min, range.max)),
                );
            }
            let mut round = 0;
            while analysis.changed {
                analysis.changed = false;
                analysis.effort = match round {
                    0..LIMIT => Effort::Patient,
                    LIMIT..LAST => Effort::Hurried,
                    _ => Effort::None,
                };
                analysis.region(body);
                round += 1;
            }
        }
        Intervals {
            known: analysis.known,
        }
    }

    /// Which values an integer may have.
    pub(super) fn get(&self, function: &Function, value: Value) -> Interval {
        constant(function, value)
            .or(self.known.get(value).copied().flatten())
            .unwrap_or(Interval::full(function.ty(value).scalar().bits()))
    }
}

fn constant(function: &Function, value: Value) -> Option<Interval> {
    let ty = function.ty(value);
    match (&function.values[value].def, ty.scalar()) {
        (ValueDef::Constant(Constant::Bits(raw)), Scalar::Int(bits)) => {
            let number = sign_extend(*raw, u32::from(bits));
            let fits = number.unsigned_abs() <= 1 << 64;
            Some(match fits {
                true => Interval::exact(number),
                false => Interval::full(u32::from(bits)),
            })
        }
        (ValueDef::Constant(_), scalar) => Some(Interval::full(scalar.bits())),
        _ => None,
    }
}

struct Analysis<'f> {
    function: &'f Function,
    known: SecondaryMap<Value, Option<Interval>>,
    changes: SecondaryMap<Value, u8>,
    /// What conditions say at the place that is looked at.
    bounds: Bounds,
    changed: bool,
    effort: Effort,
}

/// How values that change again are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// They may, a few times.
    Patient,
    /// They keep their step only.
    Hurried,
    /// They may be anything.
    None,
}

impl Analysis<'_> {
    fn region(&mut self, region: Region) {
        let mark = self.bounds.mark();
        for &op in &self.function.regions[region].ops {
            self.op(op);
        }
        self.bounds.restore(mark);
    }

    /// From here on a condition holds, or does not.
    fn assume(&mut self, condition: Value, holds: bool) {
        let (function, known) = (self.function, &self.known);
        let known = |bounds: &Bounds, value| {
            let found = constant(function, value).or(bounds.get(value));
            found.or(known[value])
        };
        self.bounds.assume(function, condition, holds, &known);
    }

    /// The interval of an operand; none where nothing has reached it yet.
    fn get(&self, value: Value) -> Option<Interval> {
        let ty = self.function.ty(value);
        if !is_int(ty) {
            return Some(Interval::full(ty.scalar().bits()));
        }
        constant(self.function, value)
            .or_else(|| self.bounds.get(value))
            .or(self.known[value])
    }

    /// The interval of an operand that is one of several; none also for `undef`.
    fn get_defined(&self, value: Value) -> Option<Interval> {
        let defined = self.function.constant_of(value) != Some(&Constant::Undef);
        defined.then(|| self.get(value)).flatten()
    }

    /// Gives a value an interval; `None` is anything of its type.
    fn set(&mut self, value: Value, interval: Option<Interval>) {
        let ty = self.function.ty(value);
        let full = Interval::full(ty.scalar().bits());
        let mut new = interval.unwrap_or(full);
        if let Some(range) = self.function.values[value].range {
            new = new.cut(range.min, range.max).unwrap_or(new);
        }
        if let Some(old) = self.known[value] {
            new = old.join(new);
            if new == old {
                return;
            }
            self.changes[value] = self.changes[value].saturating_add(1);
            if self.effort == Effort::None {
                new = full;
            } else if self.effort == Effort::Hurried {
                new = new.spread_over(full);
            } else if self.changes[value] > PATIENCE {
                let bounds = Interval {
                    lo: if new.lo < old.lo { full.lo } else { new.lo },
                    hi: if new.hi > old.hi { full.hi } else { new.hi },
                    step: new.step,
                };
                new = new.spread_over(bounds);
            }
        }
        if self.known[value] != Some(new) {
            self.known[value] = Some(new);
            self.changed = true;
        }
    }

    fn op(&mut self, op: Op) {
        let data = &self.function.ops[op];
        match data.opcode {
            Opcode::If => {
                let condition = data.operands[0];
                for (&region, holds) in data.regions.iter().zip([true, false]) {
                    let mark = self.bounds.mark();
                    self.assume(condition, holds);
                    self.region(region);
                    self.flow(region, 0, &data.results);
                    self.bounds.restore(mark);
                }
                for (&region, holds) in data.regions.iter().zip([false, true]) {
                    if ends_in_trap(self.function, region) {
                        self.assume(condition, holds);
                    }
                }
            }
            Opcode::Switch => {
                for &region in &data.regions {
                    self.region(region);
                    self.flow(region, 0, &data.results);
                }
            }
            Opcode::For => {
                let region = data.regions[0];
                let args = &self.function.regions[region].args;
                let counter = self.counter(data.operands[0], data.operands[1], data.operands[2]);
                if let Some(counter) = counter {
                    self.set(args[0], counter);
                }
                self.flow_values(&data.operands[3..], &args[1..]);
                self.region(region);
                self.flow(region, 0, &args[1..]);
                self.flow(region, 0, &data.results);
                self.flow_values(&data.operands[3..], &data.results);
            }
            Opcode::Loop => {
                let region = data.regions[0];
                let args = &self.function.regions[region].args;
                self.flow_values(&data.operands, args);
                self.region(region);
                self.flow(region, 1, args);
                self.flow(region, 1, &data.results);
            }
            _ => {
                if let [result] = data.results[..] {
                    if is_int(self.function.ty(result)) {
                        self.compute(op, result);
                    }
                } else {
                    for &result in &data.results {
                        if is_int(self.function.ty(result)) {
                            self.set(result, None);
                        }
                    }
                }
            }
        }
    }

    /// What a region hands on at its end flows into these values.
    fn flow(&mut self, region: Region, skip: usize, into: &[Value]) {
        let function = self.function;
        if let Some(&last) = function.regions[region].ops.last() {
            let data = &function.ops[last];
            if data.opcode != Opcode::Trap {
                self.flow_values(data.operands.get(skip..).unwrap_or(&[]), into);
            }
        }
    }

    fn flow_values(&mut self, from: &[Value], into: &[Value]) {
        for (&from, &into) in from.iter().zip(into) {
            if is_int(self.function.ty(into))
                && let Some(interval) = self.get_defined(from)
            {
                self.set(into, Some(interval));
            }
        }
    }

    /// The values of a loop counter; the outer `None` where its operands are not reached.
    fn counter(&self, from: Value, to: Value, step: Value) -> Option<Option<Interval>> {
        let (from, to, step) = (self.get(from)?, self.get(to)?, self.get(step)?);
        let Some(by) = step.as_exact().filter(|&by| by != 0) else {
            return Some(None);
        };
        let whole = gcd(from.step, by.unsigned_abs());
        let reach = by.saturating_mul(ROUNDS);
        let interval = if by > 0 {
            let top = from.hi.saturating_add(reach).min(to.hi.saturating_sub(1));
            if top < from.lo {
                return Some(Some(Interval::exact(from.lo)));
            }
            Interval {
                lo: from.lo,
                hi: top - (top - from.lo).rem_euclid(whole as i128),
                step: whole,
            }
        } else {
            let bottom = from.lo.saturating_add(reach).max(to.lo.saturating_add(1));
            if bottom > from.hi {
                return Some(Some(Interval::exact(from.hi)));
            }
            Interval {
                lo: bottom + (from.hi - bottom).rem_euclid(whole as i128),
                hi: from.hi,
                step: whole,
            }
        };
        Some(Some(Interval {
            step: if interval.lo == interval.hi {
                0
            } else {
                interval.step
            },
            ..interval
        }))
    }

    fn compute(&mut self, op: Op, result: Value) {
        let data = &self.function.ops[op];
        let bits = self.function.ty(result).scalar().bits();
        let operands = &data.operands;
        let interval = match data.opcode {
            Opcode::Select => {
                match (self.get_defined(operands[1]), self.get_defined(operands[2])) {
                    (Some(a), Some(b)) => Some(a.join(b)),
                    (Some(one), None) | (None, Some(one)) => Some(one),
                    (None, None) => return,
                }
            }
            Opcode::Zext | Opcode::Sext | Opcode::TruncInt => {
                let Some(a) = self.get(operands[0]) else {
                    return;
                };
                let from = self.function.ty(operands[0]).scalar().bits();
                if data.opcode == Opcode::Zext && a.lo < 0 {
                    Some(a.unsigned(from))
                } else {
                    Some(a.fitted(bits, false))
                }
            }
            opcode @ (Opcode::Add
            | Opcode::Sub
            | Opcode::Mul
            | Opcode::Shl
            | Opcode::And
            | Opcode::Urem
            | Opcode::Srem
            | Opcode::Lshr
            | Opcode::Ashr
            | Opcode::Udiv
            | Opcode::Sdiv
            | Opcode::Smin
            | Opcode::Smax
            | Opcode::Umin
            | Opcode::Umax) => {
                let (Some(a), Some(b)) = (self.get(operands[0]), self.get(operands[1])) else {
                    return;
                };
                of_binary(opcode, a, b, bits, data.flags.contains(Flags::NSW))
            }
            _ => None,
        };
        self.set(result, interval);
    }
}

/// What an operation on two integers of some width gives; none if that can be anything. `signed` says that it does not overflow.
fn of_binary(
    opcode: Opcode,
    a: Interval,
    b: Interval,
    bits: u32,
    signed: bool,
) -> Option<Interval> {
    let exact = |interval: Interval| interval.as_exact();
    match opcode {
        Opcode::Add | Opcode::Sub => {
            let b = if opcode == Opcode::Sub {
                b.negated()
            } else {
                b
            };
            Some(a.plus(b).fitted(bits, signed))
        }
        Opcode::Mul => match (exact(a), exact(b)) {
            (_, Some(factor)) => Some(a.times(factor).fitted(bits, signed)),
            (Some(factor), _) => Some(b.times(factor).fitted(bits, signed)),
            _ => Some(a.product(b).fitted(bits, signed)),
        },
        Opcode::Shl => exact(b)
            .filter(|&by| (0..i128::from(bits.min(64))).contains(&by))
            .map(|by| a.times(1 << by).fitted(bits, signed)),
        Opcode::And => {
            let mask = exact(a).or(exact(b)).filter(|&mask| mask != 0);
            mask.map(|mask| {
                let step = 1u128 << mask.trailing_zeros().min(100);
                let bounds = if mask > 0 {
                    Interval {
                        lo: 0,
                        hi: mask,
                        step: 1,
                    }
                } else {
                    Interval::full(bits)
                };
                Interval {
                    step,
                    ..Interval::exact(0)
                }
                .spread_over(bounds)
            })
        }
        Opcode::Urem | Opcode::Srem => of_remainder(opcode, a, b),
        Opcode::Lshr | Opcode::Ashr => {
            // A negative number counts as 2^bits more where zeros come in from above.
            let a = match opcode {
                Opcode::Lshr if a.lo < 0 => (bits <= 64).then(|| a.unsigned(bits)),
                _ => Some(a),
            };
            exact(b)
                .filter(|&by| (0..i128::from(bits)).contains(&by))
                .zip(a)
                .map(|(by, a)| a.shifted_down(by as u32).fitted(bits, false))
        }
        Opcode::Udiv | Opcode::Sdiv => {
            let divisor = exact(b).filter(|&by| by > 0 && a.lo >= 0);
            divisor.map(|by| {
                Interval {
                    step: 1,
                    ..Interval::exact(a.lo / by)
                }
                .spread_over(Interval {
                    lo: a.lo / by,
                    hi: a.hi / by,
                    step: 1,
                })
            })
        }
        Opcode::Smin | Opcode::Smax => {
            let both = a.join(b);
            let cut = if opcode == Opcode::Smin {
                both.cut(both.lo, a.hi.min(b.hi))
            } else {
                both.cut(a.lo.max(b.lo), both.hi)
            };
            Some(cut.unwrap_or(both))
        }
        Opcode::Umin | Opcode::Umax => {
            let both = a.join(b);
            // Negative numbers are the largest: what is below one of at most `hi` is not negative.
            let cut = match opcode {
                Opcode::Umin => [a, b]
                    .iter()
                    .filter(|one| one.lo >= 0)
                    .map(|one| one.hi)
                    .min()
                    .and_then(|hi| both.cut(both.lo.max(0), hi)),
                _ if both.lo >= 0 => both.cut(a.lo.max(b.lo), both.hi),
                _ => None,
            };
            Some(cut.unwrap_or(both))
        }
        _ => None,
    }
}

fn of_remainder(opcode: Opcode, a: Interval, b: Interval) -> Option<Interval> {
    let divisor = b.as_exact();
    divisor
        .filter(|&by| by > 0 && a.lo >= 0)
        .map(|by| {
            if a.hi < by {
                return a;
            }
            let step = gcd(gcd(a.step, by.unsigned_abs()), a.lo.unsigned_abs()).max(1);
            Interval {
                step,
                ..Interval::exact(0)
            }
            .spread_over(Interval {
                lo: 0,
                hi: by - 1,
                step: 1,
            })
        })
        .or_else(|| {
            // The remainder of anything is below the divisor, and has the sign of what is divided.
            divisor.filter(|&by| by > 1).map(|by| Interval {
                lo: match opcode {
                    Opcode::Srem => 1 - by,
                    _ => 0,
                },
                hi: by - 1,
                step: 1,
            })
        })
}

/// Whether values of this type are followed. The widest are products of which it is checked whether they fit into a word; whatever comes close to
/// the ends of their range is anything.
fn is_int(ty: Type) -> bool {
    ty.is_int() && !ty.is_vector() && ty.scalar().bits() <= 128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_powers_of_two_only() {
        let every = Interval {
            lo: 0,
            hi: (1 << 63) - 1,
            step: 1,
        };
        let twelve = every.times(12).fitted(64, false);
        assert_eq!(twelve.step, 4);
        assert!(twelve.lo < 0 && twelve.lo % 4 == 0);
        let kept = every.times(12).plus(Interval::exact(1)).fitted(64, true);
        assert_eq!((kept.lo, kept.step), (1, 12));
        assert_eq!((kept.hi - 1) % 12, 0);
    }

    #[test]
    fn products_of_multiples_are_multiples() {
        let rows = Interval::full(32).times(8);
        let product = rows.product(Interval::full(64));
        assert_eq!(product.fitted(64, false).step, 8);
    }

    #[test]
    fn bounds_never_overflow() {
        let ends = [i128::MIN, -FAR, -1, 0, 1, FAR, i128::MAX];
        for (lo, hi) in ends.iter().flat_map(|&lo| ends.map(|hi| (lo, hi))) {
            if lo >= hi {
                continue;
            }
            for step in [1, 8, 1 << 90, u128::MAX] {
                let row = Interval { lo, hi, step };
                let results = [
                    row.negated(),
                    row.plus(row),
                    row.times(i128::MAX),
                    row.product(row),
                    row.fitted(64, true),
                    row.cut(i128::MIN, i128::MAX).unwrap_or(row).negated(),
                    row.at_least_zero().plus(row.negated()),
                ];
                for result in results {
                    assert!(result.times(3).plus(result).negated().fitted(64, false).hi < 1 << 64);
                }
            }
        }
        let rows = Interval {
            lo: 1,
            hi: FAR,
            step: 8,
        }
        .times(4);
        assert_eq!((rows.lo, rows.step, (rows.hi - 4) % 32), (4, 32, 0));
    }

    /// LLVM's way to extend the sign of the lower half of a word, and to multiply by 8 at once.
    #[test]
    fn shifts_up_and_down_keep_multiples() {
        let up = Interval::full(64).times(1 << 32).fitted(64, false);
        assert_eq!(up.step, 1 << 32);
        assert_eq!(up.shifted_down(29).step, 8);
        assert_eq!(up.unsigned(64).shifted_down(29).step, 8);
        assert_eq!(Interval::exact(-5).shifted_down(1), Interval::exact(-3));
    }
}
