//! Sets of offsets: where within its class a pointer may point.
//!
//! A span is `{x + k·repeat}` with `x` one of `lo, lo + step, …, hi`. `k` is 0 where `repeat` is 0; otherwise `k` is any
//! number from 0 on, or any number at all where `both` is set. So `p + 32·j + 8·i` with `i` below 3 is
//! `0, 8, 16` repeated every 32 bytes: the shape of an array of structures that hold arrays.
//!
//! Every operation gives a set that contains the exact result; none ever loses an offset.

use ferrozyme_opt::interval::{self, Interval};
use std::fmt;

/// A set of offsets in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// The smallest offset, before repetition.
    pub lo: i64,
    /// The largest offset, before repetition.
    pub hi: i64,
    /// How far the offsets between the two are apart; 0 where there is only one.
    pub step: u64,
    /// After how many bytes all of this repeats; 0 for never.
    pub repeat: u64,
    /// Whether it repeats towards lower addresses, too.
    pub both: bool,
}

/// More offsets than this in a row count as an array without end.
const MANY: u64 = 1024;

/// Offsets beyond this are no addresses of one object: a bound out there is none.
const FAR: i128 = 1 << 47;

/// Offsets beyond this are given up, lest arithmetic overflow.
const LIMIT: i64 = 1 << 59;

impl Span {
    /// One offset.
    pub const fn exact(offset: i64) -> Span {
        Span {
            lo: offset,
            hi: offset,
            step: 0,
            repeat: 0,
            both: false,
        }
    }

    /// Any offset.
    pub const ANY: Span = Span {
        lo: 0,
        hi: 0,
        step: 0,
        repeat: 1,
        both: true,
    };

    /// The offset, if there is only one.
    pub fn as_exact(self) -> Option<i64> {
        (self.lo == self.hi && self.repeat == 0).then_some(self.lo)
    }

    /// Whether all offsets are multiples of a number.
    pub(super) fn is_multiple_of(self, unit: u64) -> bool {
        let numbers = [
            self.lo.unsigned_abs(),
            self.hi.unsigned_abs(),
            self.step,
            self.repeat,
        ];
        numbers.iter().all(|number| number.is_multiple_of(unit))
    }

    /// The offsets before repetition.
    pub fn positions(self) -> impl Iterator<Item = i64> {
        let step = self.step.max(1) as usize;
        (self.lo..=self.hi).step_by(step)
    }

    /// All offsets moved by the same distance.
    pub(super) fn shifted(self, by: i64) -> Span {
        match (self.lo.checked_add(by), self.hi.checked_add(by)) {
            (Some(lo), Some(hi)) => Span { lo, hi, ..self }.normal(),
            _ => Span::ANY,
        }
    }

    /// All sums of an offset and `scale` times a number of the interval.
    pub(super) fn plus(self, index: Interval, scale: i64) -> Span {
        if scale == 0 {
            return self;
        }
        let scale = i128::from(scale);
        let (a, b) = (
            index.min.saturating_mul(scale),
            index.max.saturating_mul(scale),
        );
        let (lo, hi) = (a.min(b), a.max(b));
        let step = index.step.saturating_mul(scale.unsigned_abs());
        let step = u64::try_from(step).unwrap_or(1);
        if lo == hi || (lo >= -FAR && hi <= FAR && (hi - lo) / i128::from(step) < i128::from(MANY))
        {
            return match (i64::try_from(lo), i64::try_from(hi)) {
                (Ok(lo), Ok(hi)) => self.sum(Span {
                    lo,
                    hi,
                    step,
                    repeat: 0,
                    both: false,
                }),
                _ => Span::ANY,
            };
        }
        let anchor = if (-FAR..=FAR).contains(&lo) {
            lo as i64
        } else {
            lo.rem_euclid(i128::from(step)) as i64
        };
        self.sum(Span {
            repeat: step,
            both: lo < -FAR,
            ..Span::exact(anchor)
        })
    }

    /// All sums of an offset here and one there.
    pub(super) fn sum(self, other: Span) -> Span {
        match (self.lo.checked_add(other.lo), self.hi.checked_add(other.hi)) {
            (Some(lo), Some(hi)) => Span {
                lo,
                hi,
                step: gcd(self.step, other.step),
                repeat: gcd(self.repeat, other.repeat),
                both: self.both || other.both,
            }
            .normal(),
            _ => Span::ANY,
        }
    }

    /// The same distances the other way.
    pub(super) fn negated(self) -> Span {
        match (self.lo.checked_neg(), self.hi.checked_neg()) {
            (Some(hi), Some(lo)) => Span {
                lo,
                hi,
                both: self.repeat > 0,
                ..self
            }
            .normal(),
            _ => Span::ANY,
        }
    }

    /// How the offsets spread around their smallest one.
    pub(super) fn spread(self) -> Span {
        Span {
            lo: 0,
            hi: self.hi - self.lo,
            ..self
        }
    }

    /// The offsets of both.
    pub(super) fn join(self, other: Span) -> Span {
        let repeat = gcd(self.repeat, other.repeat);
        let both = self.both || other.both;
        let (a, b) = if both {
            (self.wrapped(repeat), other.wrapped(repeat))
        } else {
            (self, other)
        };
        Span {
            lo: a.lo.min(b.lo),
            hi: a.hi.max(b.hi),
            step: gcd(gcd(a.step, b.step), a.lo.abs_diff(b.lo)),
            repeat,
            both,
        }
        .normal()
    }

    /// A set that contains `grown` and cannot go on growing from `self` in small steps for long.
    pub(super) fn widen(self, grown: Span) -> Span {
        let wide = Span {
            repeat: gcd(grown.repeat, grown.step).max(1),
            both: grown.both || grown.lo < self.lo,
            ..Span::exact(grown.lo)
        };
        wide.normal()
    }

    fn wrapped(self, repeat: u64) -> Span {
        if repeat == 0 {
            return self;
        }
        let lo = self.lo.rem_euclid(period(repeat));
        Span {
            lo,
            hi: self.hi - self.lo + lo,
            ..self
        }
    }

    /// One way of writing each set: few offsets, within one period, near zero where they repeat in both directions.
    fn normal(mut self) -> Span {
        let Some(width) = self.hi.checked_sub(self.lo) else {
            return Span::ANY;
        };
        if self.lo < -LIMIT || self.hi > LIMIT {
            return Span::ANY;
        }
        if width == 0 {
            self.step = 0;
        }
        let many = self.step > 0 && width as u64 / self.step >= MANY;
        if many || (self.repeat > 0 && width as u64 >= self.repeat) {
            self.repeat = gcd(self.repeat, self.step);
            self.step = 0;
            self.hi = self.lo;
        }
        if self.both && self.repeat > 0 {
            self = self.wrapped(self.repeat);
        }
        self
    }
}

impl fmt::Display for Span {
    /// `8`, `0..=16 by 8`, `0 + 24k` (k from 0 on), `0 + 24z` (any whole z).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.lo)?;
        if self.step > 0 {
            write!(f, "..={} by {}", self.hi, self.step)?;
        }
        if self.repeat > 0 {
            let letter = if self.both { 'z' } else { 'k' };
            write!(f, " + {}{letter}", self.repeat)?;
        }
        Ok(())
    }
}

/// The greatest common divisor; 0 is divided by everything.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    interval::gcd(a.into(), b.into()) as u64
}

/// A period as a divisor of signed offsets.
pub(super) fn period(repeat: u64) -> i64 {
    i64::try_from(repeat).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(lo: i64, repeat: u64) -> Span {
        Span {
            repeat,
            ..Span::exact(lo)
        }
    }

    #[test]
    fn sums_keep_inner_arrays_apart_from_outer_ones() {
        let counter = Interval::new(0, 1 << 50);
        let inner = Interval::new(0, 2);
        let span = Span::exact(0).plus(counter, 32).plus(inner, 8);
        assert_eq!(span.to_string(), "0..=16 by 8 + 32k");
        assert_eq!(span.shifted(-8).to_string(), "-8..=8 by 8 + 32k");
        let all = Interval::of_bits(64);
        assert_eq!(span.plus(all, 8).to_string(), "0 + 8z");
    }

    #[test]
    fn joins_contain_both() {
        assert_eq!(
            Span::exact(0).join(Span::exact(8)).to_string(),
            "0..=8 by 8"
        );
        assert_eq!(
            every(0, 16).join(Span::exact(8)).to_string(),
            "0..=8 by 8 + 16k"
        );
        assert_eq!(every(0, 16).join(Span::exact(40)).to_string(), "0 + 8k");
        assert_eq!(every(0, 16).join(Span::exact(-16)).to_string(), "-16 + 16k");
        let old = Span::exact(0);
        let grown = old.join(Span::exact(-8));
        assert_eq!(old.widen(grown).to_string(), "0 + 8z");
    }
}
