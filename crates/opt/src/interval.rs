//! Intervals of integers, open or closed at either end.

use ferrozyme_ir::Range;
use std::ops::{Add, Mul, Neg};

/// All integers from `min` to `max`; `i128::MIN` and `i128::MAX` stand for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The smallest, or `i128::MIN`.
    pub min: i128,
    /// The largest, or `i128::MAX`.
    pub max: i128,
}

impl Interval {
    /// Every integer.
    pub const ALL: Interval = Interval {
        min: i128::MIN,
        max: i128::MAX,
    };

    /// From `min` to `max`.
    pub fn new(min: i128, max: i128) -> Interval {
        Interval { min, max }
    }

    /// One integer.
    pub fn point(number: i128) -> Interval {
        Interval::new(number, number)
    }

    /// The range of a signed integer of this many bits.
    pub fn of_bits(bits: u32) -> Interval {
        if bits >= 128 {
            return Interval::ALL;
        }
        let half = 1i128 << (bits - 1);
        Interval::new(-half, half - 1)
    }

    /// The smallest, if there is a limit.
    pub fn lower(self) -> Option<i128> {
        (self.min != i128::MIN).then_some(self.min)
    }

    /// The largest, if there is a limit.
    pub fn upper(self) -> Option<i128> {
        (self.max != i128::MAX).then_some(self.max)
    }

    /// Whether all of this lies in `other`.
    pub fn is_within(self, other: Interval) -> bool {
        self.min >= other.min && self.max <= other.max
    }

    /// What lies in both. Where nothing does, the code that asks cannot run, and the answer is this one.
    pub fn intersect(self, other: Interval) -> Interval {
        let both = Interval::new(self.min.max(other.min), self.max.min(other.max));
        if both.min <= both.max { both } else { self }
    }

    /// The smallest interval around both.
    pub fn union(self, other: Interval) -> Interval {
        Interval::new(self.min.min(other.min), self.max.max(other.max))
    }
}

impl Add for Interval {
    type Output = Interval;

    /// All sums.
    fn add(self, other: Interval) -> Interval {
        let lower = match (self.lower(), other.lower()) {
            (Some(a), Some(b)) => a.saturating_add(b),
            _ => i128::MIN,
        };
        let upper = match (self.upper(), other.upper()) {
            (Some(a), Some(b)) => a.saturating_add(b),
            _ => i128::MAX,
        };
        Interval::new(lower, upper)
    }
}

impl Neg for Interval {
    type Output = Interval;

    /// All negated.
    fn neg(self) -> Interval {
        let flip = |number: i128| match number {
            i128::MIN => i128::MAX,
            i128::MAX => i128::MIN,
            number => -number,
        };
        Interval::new(flip(self.max), flip(self.min))
    }
}

impl Mul for Interval {
    type Output = Interval;

    /// All products.
    fn mul(self, other: Interval) -> Interval {
        let corners = [
            multiply(self.min, other.min),
            multiply(self.min, other.max),
            multiply(self.max, other.min),
            multiply(self.max, other.max),
        ];
        let min = corners.iter().copied().min().expect("four corners");
        let max = corners.iter().copied().max().expect("four corners");
        Interval::new(min, max)
    }
}

/// Saturation keeps a limitless end limitless, since a whole number other than 0 times it is no nearer to zero; only the
/// negative of the largest number has to be taken for the smallest.
fn multiply(a: i128, b: i128) -> i128 {
    match a.saturating_mul(b) {
        product if product == -i128::MAX => i128::MIN,
        product => product,
    }
}

impl From<Range> for Interval {
    fn from(range: Range) -> Interval {
        Interval::new(range.min, range.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn products_take_the_extreme_corners() {
        let product = Interval::new(-2, 3) * Interval::new(-5, 7);
        assert_eq!(product, Interval::new(-15, 21));
    }
}
