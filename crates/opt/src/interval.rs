//! Intervals of integers with a step, open or closed at either end: `3·i + 1` for a counter from 0 on is `1, 4, 7, …`.
//!
//! Every operation gives a set that contains all exact results; none ever loses a number. What becomes of them in a type that may be too narrow is said by
//! [`Interval::fitted`], and what operations of the IR make of them by [`transfer`].

mod transfer;

pub(crate) use transfer::exact;
pub use transfer::transfer;

use ferrozyme_ir::{Range, sign_extend};
use std::ops::{Add, Mul, Neg};

/// The integers `min, min + step, …, max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The smallest; one that is farther away than [`Interval::lower`] says is no limit.
    pub min: i128,
    /// The largest; one that is farther away than [`Interval::upper`] says is no limit.
    pub max: i128,
    /// How far they are apart; 0 where there is only one.
    pub step: u128,
}

/// No end lies beyond this, so that arithmetic on ends does not overflow.
const FAR: i128 = 1 << 125;

/// An end that lies here or beyond is no limit. Integers of 128 bits may lie there.
const OPEN: i128 = FAR >> 1;

impl Interval {
    /// Every integer.
    pub const ALL: Interval = Interval {
        min: -FAR,
        max: FAR,
        step: 1,
    };

    /// From `min` to `max`.
    pub fn new(min: i128, max: i128) -> Interval {
        let (min, max) = (min.clamp(-FAR, FAR), max.clamp(-FAR, FAR));
        let step = u128::from(min != max);
        Interval { min, max, step }
    }

    /// One integer.
    pub fn point(number: i128) -> Interval {
        Interval::bounded(number, number, 0)
    }

    /// The range of a signed integer of this many bits.
    pub fn of_bits(bits: u32) -> Interval {
        let half = 1i128 << (bits.clamp(1, 126) - 1);
        Interval::new(-half, half - 1)
    }

    /// What a counter can be that goes by steps of `by` from `from` on, and stays on this side of `to`.
    pub fn of_counter(from: Interval, to: Interval, by: Interval) -> Interval {
        let around = if by.min > 0 {
            Interval::new(from.min, to.max.saturating_sub(1))
        } else if by.max < 0 {
            Interval::new(to.min.saturating_add(1), from.max)
        } else {
            from.union(to)
        };
        let step = gcd(from.step, by.divisor());
        match around.min <= around.max {
            true => Interval { step, ..from }.spread_over(around),
            // The counter of a loop that never runs has no value to speak of.
            false => from,
        }
    }

    /// The numbers from `min` to `max`, both of which may be too far away to be told. Where one of them is, the step still says which numbers lie on the way there.
    fn bounded(min: i128, max: i128, step: u128) -> Interval {
        let is_told = |end: i128| -OPEN < end && end < OPEN;
        let whole = i128::try_from(step).unwrap_or(i128::MAX);
        let (min, max) = match (is_told(min), is_told(max)) {
            (true, true) => (min, max),
            (true, false) if (1..=OPEN).contains(&whole) => {
                (min, FAR - (FAR - min).rem_euclid(whole))
            }
            (false, true) if (1..=OPEN).contains(&whole) => {
                (-FAR + (max + FAR).rem_euclid(whole), max)
            }
            _ => return Interval::ALL,
        };
        Interval { min, max, step }
    }

    /// The smallest, if there is a limit.
    pub fn lower(self) -> Option<i128> {
        (self.min > -OPEN).then_some(self.min)
    }

    /// The largest, if there is a limit.
    pub fn upper(self) -> Option<i128> {
        (self.max < OPEN).then_some(self.max)
    }

    /// The number, if there is only one.
    pub fn as_point(self) -> Option<i128> {
        (self.min == self.max).then_some(self.min)
    }

    /// Whether all of this lies in between the ends of `other`.
    pub fn is_within(self, other: Interval) -> bool {
        self.min >= other.min && self.max <= other.max
    }

    /// A number that divides all of them; 0 for only 0.
    fn divisor(self) -> u128 {
        gcd(self.step, self.min.unsigned_abs())
    }

    /// What lies between two ends, if anything does.
    pub fn cut(self, min: i128, max: i128) -> Option<Interval> {
        // Ends that come from ranges may be any numbers.
        let (min, max) = (min.max(-FAR), max.min(FAR));
        let step = i128::try_from(self.step).unwrap_or(1).max(1);
        let above =
            |from: i128, to: i128| (to.rem_euclid(step) - from.rem_euclid(step)).rem_euclid(step);
        let min = match self.min >= min {
            true => self.min,
            false => min.checked_add(above(min, self.min))?,
        };
        let max = match self.max <= max {
            true => self.max,
            false => max.checked_sub(above(self.min, max))?,
        };
        let step = if min == max { 0 } else { self.step };
        (min <= max).then_some(Interval { min, max, step })
    }

    /// What lies between the ends of another. Where nothing does, the code that asks cannot run, and the answer is this one.
    pub fn intersect(self, other: Interval) -> Interval {
        self.cut(other.min, other.max).unwrap_or(self)
    }

    /// Those of them that are not negative; all where none is.
    pub fn at_least_zero(self) -> Interval {
        self.intersect(Interval::new(0, FAR))
    }

    /// The smallest interval around both.
    pub fn union(self, other: Interval) -> Interval {
        Interval {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            step: gcd(gcd(self.step, other.step), self.min.abs_diff(other.min)),
        }
    }

    /// All numbers divided by `2^by`, rounded down. Where the division leaves no rest, multiples stay multiples.
    fn shifted_down(self, by: u32) -> Interval {
        let shifted = Interval::new(self.min >> by, self.max >> by);
        match self.divisor().is_multiple_of(1 << by) && shifted.step > 0 {
            true => Interval {
                step: self.step >> by,
                ..shifted
            },
            false => shifted,
        }
    }

    /// What remains of a result in a type of this many bits: itself where it fits, or where overflow is excluded;
    /// otherwise only its remainder modulo a power of two.
    pub fn fitted(self, bits: u32, no_overflow: bool) -> Interval {
        let full = Interval::of_bits(bits);
        if self.is_within(full) {
            return self;
        }
        if no_overflow && self.step > 0 && self.min <= full.max && self.max >= full.min {
            return self.cut(full.min, full.max).unwrap_or(full);
        }
        if self.step == 0 {
            let raw = (self.min as u128) & ((1 << bits.min(126)) - 1);
            return Interval::point(sign_extend(raw, bits.min(126)));
        }
        let step = 1u128 << self.step.trailing_zeros().min(bits).min(126);
        Interval { step, ..self }.spread_over(full)
    }

    /// What numbers, some of them negative, are as unsigned numbers of this many bits.
    fn unsigned(self, bits: u32) -> Interval {
        let step = match self.step {
            0 => 1,
            step => 1u128 << step.trailing_zeros().min(bits).min(100),
        };
        Interval { step, ..self }.spread_over(Interval::new(0, (1i128 << bits.min(100)) - 1))
    }

    /// All numbers between the ends of another interval that are equal to `min` modulo `step`.
    pub(crate) fn spread_over(self, around: Interval) -> Interval {
        let step = i128::try_from(self.step).ok();
        let step = match step.filter(|step| (2..=FAR).contains(step)) {
            Some(step) => step,
            None => return Interval::new(around.min, around.max),
        };
        let first = self.min.rem_euclid(step);
        let min = around.min + (first - around.min).rem_euclid(step);
        let max = around.max - (around.max - first).rem_euclid(step);
        match min < max {
            true => Interval {
                min,
                max,
                step: step as u128,
            },
            false => Interval::point(min),
        }
    }
}

impl Add for Interval {
    type Output = Interval;

    /// All sums.
    fn add(self, other: Interval) -> Interval {
        Interval::bounded(
            self.min.saturating_add(other.min),
            self.max.saturating_add(other.max),
            gcd(self.step, other.step),
        )
    }
}

impl Neg for Interval {
    type Output = Interval;

    /// All negated.
    fn neg(self) -> Interval {
        Interval::bounded(-self.max, -self.min, self.step)
    }
}

impl Mul for Interval {
    type Output = Interval;

    /// A set that contains all products.
    fn mul(self, other: Interval) -> Interval {
        let (set, factor) = match (self.as_point(), other.as_point()) {
            (_, Some(factor)) => (self, Some(factor)),
            (factor, _) => (other, factor),
        };
        if let Some(factor) = factor {
            let ends = [set.min, set.max].map(|end| end.saturating_mul(factor));
            let step = set.step.saturating_mul(factor.unsigned_abs());
            return Interval::bounded(ends[0].min(ends[1]), ends[0].max(ends[1]), step);
        }
        let corners = [
            self.min.saturating_mul(other.min),
            self.min.saturating_mul(other.max),
            self.max.saturating_mul(other.min),
            self.max.saturating_mul(other.max),
        ];
        let [min, max] = [corners.iter().min(), corners.iter().max()];
        let around = Interval::new(*min.expect("four corners"), *max.expect("four corners"));
        // What divides all numbers of a set divides all products.
        let step = self.divisor().saturating_mul(other.divisor());
        Interval {
            step,
            ..Interval::point(0)
        }
        .spread_over(around)
    }
}

impl From<Range> for Interval {
    fn from(range: Range) -> Interval {
        Interval::new(range.min, range.max)
    }
}

/// The greatest common divisor; 0 is divided by everything.
pub fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 && a != 1 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(min: i128, max: i128, step: u128) -> Interval {
        Interval { min, max, step }
    }

    #[test]
    fn open_ends_stay_open() {
        let counter = Interval::new(0, i128::MAX);
        assert_eq!((counter + Interval::point(5)).lower(), Some(5));
        assert_eq!((counter + Interval::point(5)).upper(), None);
        assert_eq!((counter * Interval::point(-8)).lower(), None);
        assert_eq!((counter * Interval::point(-8)).upper(), Some(0));
        assert_eq!((counter * counter).lower(), Some(0));
        assert_eq!((-counter).upper(), Some(0));
        assert_eq!(Interval::ALL * Interval::point(0), Interval::point(0));
        assert_eq!((Interval::ALL * Interval::point(-1)).lower(), None);
        assert_eq!((-counter + Interval::point(5)).lower(), None);
    }

    #[test]
    fn products_take_the_extreme_corners() {
        let product = Interval::new(-2, 3) * Interval::new(-5, 7);
        assert_eq!(product, Interval::new(-15, 21));
    }

    #[test]
    fn wrapping_keeps_powers_of_two_only() {
        let twelve = every(0, (1 << 63) - 1, 1) * Interval::point(12);
        let wrapped = twelve.fitted(64, false);
        assert_eq!(wrapped.step, 4);
        assert!(wrapped.min < 0 && wrapped.min % 4 == 0);
        let kept = (twelve + Interval::point(1)).fitted(64, true);
        assert_eq!((kept.min, kept.step), (1, 12));
        assert_eq!((kept.max - 1) % 12, 0);
    }

    #[test]
    fn products_of_multiples_are_multiples() {
        let product = Interval::of_bits(32) * Interval::point(8) * Interval::of_bits(64);
        assert_eq!(product.fitted(64, false).step, 8);
    }

    #[test]
    fn ends_never_overflow() {
        let ends = [-FAR, -OPEN, -1, 0, 1, OPEN, FAR];
        for (min, max) in ends.iter().flat_map(|&min| ends.map(|max| (min, max))) {
            if min >= max {
                continue;
            }
            for step in [1, 8, 1 << 90, u128::MAX] {
                let row = every(min, max, step);
                let results = [
                    -row,
                    row + row,
                    row * Interval::point(i128::MAX >> 4),
                    row * row,
                    row.fitted(64, true),
                    -row.cut(i128::MIN, i128::MAX).unwrap_or(row),
                    row.at_least_zero() + -row,
                ];
                for result in results {
                    let sum = -(result * Interval::point(3) + result);
                    assert!(sum.fitted(64, false).max < 1 << 64);
                }
            }
        }
        let rows = every(1, FAR, 8) * Interval::point(4);
        assert_eq!((rows.min, rows.step, (rows.max - 4) % 32), (4, 32, 0));
    }

    /// LLVM's way to extend the sign of the lower half of a word, and to multiply by 8 at once.
    #[test]
    fn shifts_up_and_down_keep_multiples() {
        let up = (Interval::of_bits(64) * Interval::point(1 << 32)).fitted(64, false);
        assert_eq!(up.step, 1 << 32);
        assert_eq!(up.shifted_down(29).step, 8);
        assert_eq!(up.unsigned(64).shifted_down(29).step, 8);
        assert_eq!(Interval::point(-5).shifted_down(1), Interval::point(-3));
    }

    /// Counters stay where their steps lead.
    #[test]
    fn counters_keep_their_step() {
        let [zero, ten] = [0, 10].map(Interval::point);
        let up = Interval::of_counter(zero, ten, Interval::point(4));
        assert_eq!(up, every(0, 8, 4));
        let down = Interval::of_counter(ten, zero, Interval::point(-4));
        assert_eq!(down, every(2, 10, 4));
        let unknown = Interval::of_counter(zero, ten, Interval::new(1, 4));
        assert_eq!(unknown, Interval::new(0, 9));
    }
}
