//! A point of the space that `@main` maps from and to: its float arguments or results, and the memory behind its pointers.
//!
//! The function is seen as a map from (floats, memory before) to (results, memory after). Tangents and cotangents are
//! points of the same shapes, so the dot-product test covers what a program leaves in memory too.

use crate::random::Random;

/// Floats and memory.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    /// Float arguments, or float results.
    pub floats: Vec<f64>,
    /// Each piece of memory.
    pub blocks: Vec<Vec<f64>>,
}

impl State {
    /// All numbers, floats first.
    pub fn iter(&self) -> impl Iterator<Item = f64> {
        self.floats
            .iter()
            .chain(self.blocks.iter().flatten())
            .copied()
    }

    /// All numbers in a list, floats first.
    pub fn numbers(&self) -> Vec<f64> {
        self.iter().collect()
    }

    /// All numbers, floats first, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        self.floats
            .iter_mut()
            .chain(self.blocks.iter_mut().flatten())
    }

    /// The sum of products of corresponding numbers.
    pub fn dot(&self, other: &State) -> f64 {
        self.iter().zip(other.iter()).map(|(a, b)| a * b).sum()
    }

    /// The largest magnitude.
    pub fn largest(&self) -> f64 {
        self.iter()
            .map(f64::abs)
            .fold(0.0, |a, b| if b.is_nan() { b } else { a.max(b) })
    }

    /// Whether all numbers are finite.
    pub fn is_finite(&self) -> bool {
        self.iter().all(f64::is_finite)
    }

    /// `self + factor·direction`.
    pub fn moved(&self, factor: f64, direction: &State) -> State {
        self.combined(direction, |a, b| a + factor * b)
    }

    /// Combines corresponding numbers.
    pub fn combined(&self, other: &State, combine: impl Fn(f64, f64) -> f64) -> State {
        let mut result = self.clone();
        for (a, b) in result.iter_mut().zip(other.iter()) {
            *a = combine(*a, b);
        }
        result
    }

    /// A point of the same shape with numbers from −1 to 1.
    pub fn random_like(&self, random: &mut Random) -> State {
        let mut result = self.clone();
        for number in result.iter_mut() {
            *number = random.float(-1.0, 1.0);
        }
        result
    }

    /// A point of the same shape that is zero.
    pub fn zero_like(&self) -> State {
        let mut result = self.clone();
        result.iter_mut().for_each(|number| *number = 0.0);
        result
    }

    /// Whether all bits agree; any NaN equals any other, because the payload of a NaN is unspecified.
    pub fn same_bits(&self, other: &State) -> bool {
        self.floats.len() == other.floats.len()
            && self.iter().count() == other.iter().count()
            && self
                .iter()
                .zip(other.iter())
                .all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
    }

    /// The first place where two points differ by more than `tolerance`, in words.
    pub fn difference(&self, other: &State, tolerance: f64) -> Option<String> {
        let differs = |a: f64, b: f64| {
            a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) && {
                let distance = (a - b).abs();
                distance.is_nan() || distance > tolerance
            }
        };
        for (position, (&a, &b)) in self.floats.iter().zip(&other.floats).enumerate() {
            if differs(a, b) {
                return Some(format!("float {position} is {b:?} instead of {a:?}"));
            }
        }
        for (number, (own, others)) in self.blocks.iter().zip(&other.blocks).enumerate() {
            for (position, (&a, &b)) in own.iter().zip(others).enumerate() {
                if differs(a, b) {
                    return Some(format!(
                        "memory {number}[{position}] is {b:?} instead of {a:?}"
                    ));
                }
            }
        }
        None
    }
}
