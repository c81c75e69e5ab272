//! Symbolic bounds: the counters of loops replaced by their smallest or largest values.
//!
//! `i*n + j` within `for i = 0 to m { for j = 0 to n { … } }` is at most `m*n - 1` and at least 0.

use crate::indices::{Counted, Indices};
use crate::inequalities::{Inequalities, Sign};
use crate::symbolic::Symbolic;
use ferrozyme_ir::Op;

impl Indices<'_> {
    /// An upper bound of an expression over all iterations of some loops, without their counters.
    ///
    /// It holds wherever the bodies of all these loops run; whether it is reached is another question.
    pub fn upper_bound(&self, expression: &Symbolic, loops: &[Op]) -> Option<Symbolic> {
        self.bound(expression, loops, Sign::NotNegative)
    }

    /// A lower bound, as [`Indices::upper_bound`].
    pub fn lower_bound(&self, expression: &Symbolic, loops: &[Op]) -> Option<Symbolic> {
        self.bound(expression, loops, Sign::NotPositive)
    }

    fn bound(&self, expression: &Symbolic, loops: &[Op], rising: Sign) -> Option<Symbolic> {
        let mut counted: Vec<&Counted> = loops.iter().filter_map(|&op| self.counted(op)).collect();
        // Innermost first: inner bounds may mention outer counters.
        counted.sort_by_key(|counted| std::cmp::Reverse(self.structure().depth(counted.body)));
        let mut known = Inequalities::new(self);
        for each in &counted {
            known.assume_within(each);
        }
        let mut bound = expression.clone();
        for each in &counted {
            if !bound.mentions(each.counter) {
                continue;
            }
            let (factor, rest) = bound.split(each.counter);
            if factor.mentions(each.counter) {
                return None;
            }
            let extreme = if known.sign(&factor)? == rising {
                each.largest()?
            } else {
                each.smallest()?
            };
            bound = factor.mul(&extreme)?.add(&rest)?;
        }
        Some(bound)
    }
}
