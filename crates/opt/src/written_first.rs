//! Privatisable memory: each iteration of a loop writes it before it reads it, so it carries nothing from one iteration to the next.
//!
//! In
//!
//! ```text
//! for %i: i64 = 0 to %n step 1 {
//!   for %j: i64 = 0 to %m step 1 {
//!     store f64 …, %scratch[j]
//!   }
//!   for %k: i64 = 0 to %m step 1 {
//!     … load f64 %scratch[k]
//! ```
//!
//! the inner loop writes the `8·m` bytes from `%scratch` on, all of them, before anything is read there; and `0 ≤ 8·k`, `8·k + 8 ≤ 8·m`.
//!
//! A write counts if it always runs before the read in the same iteration: it, or a nest of counted loops around it, comes before the
//! read in a region that holds both. A nest that leaves gaps, or whose rows differ in length, does not count.

use crate::alias::{Access, Aliases};
use crate::indices::{Counted, is_loop};
use crate::inequalities::Inequalities;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Op, Opcode, Region};

/// Bytes behind a root that have been written, all of them.
struct Written {
    start: Symbolic,
    bytes: Symbolic,
    /// How often loops run that must run at all.
    counts: Vec<Symbolic>,
}

impl Aliases<'_> {
    /// Whether all that `read` touches has surely been written by `write` when it runs, in the same iteration of `loop_op`, a loop around
    /// both.
    pub fn is_written_first(&self, write: (Op, &Access), read: (Op, &Access), loop_op: Op) -> bool {
        let (Some(size), true) = (&read.1.size, write.1.root == read.1.root) else {
            return false;
        };
        let Some(written) = self.written_before(write, read.0, loop_op) else {
            return false;
        };
        let Some(behind) = read.1.offset.sub(&written.start) else {
            return false;
        };
        let left = written.bytes.sub(&behind).and_then(|bytes| bytes.sub(size));
        let Some(left) = left else {
            return false;
        };
        let mut known = Inequalities::trusting(self.indices());
        self.inequalities_at(read.0, |inequality| known.assume(inequality));
        known.prove_at_least(&behind, 0)
            && known.prove_at_least(&left, 0)
            && written
                .counts
                .iter()
                .all(|count| known.prove_at_least(count, 1))
    }

    /// What an operation has written, over the loops around it that are over when another one runs.
    fn written_before(&self, write: (Op, &Access), read: Op, loop_op: Op) -> Option<Written> {
        let structure = self.structure();
        let common = self.common_region(write.0, read)?;
        let body = *self.function().ops[loop_op].regions.first()?;
        let (first, second) = (
            structure.ancestor_in(write.0, common)?,
            structure.ancestor_in(read, common)?,
        );
        if !structure.is_within(common, body) || structure.order(first) >= structure.order(second) {
            return None;
        }
        let mut written = Written {
            start: write.1.offset.clone(),
            bytes: write.1.size.clone()?,
            counts: Vec::new(),
        };
        let nest = self.loops_up_to(write.0, common)?;
        for counted in &nest {
            self.extend(&mut written, counted, nest.len() == 1)?;
        }
        let visible = |expression: &Symbolic| {
            expression
                .variables()
                .all(|value| self.indices().is_defined_outside(value, first))
        };
        let all_visible = visible(&written.start)
            && visible(&written.bytes)
            && written.counts.iter().all(visible);
        all_visible.then_some(written)
    }

    /// The innermost region that holds two operations.
    fn common_region(&self, a: Op, b: Op) -> Option<Region> {
        let structure = self.structure();
        let other = structure.region_of(b)?;
        let mut region = structure.region_of(a)?;
        while !structure.is_within(other, region) {
            region = structure.parent(region)?;
        }
        Some(region)
    }

    /// The loops around an operation within a region, innermost first, if all are counted and it runs in all their iterations.
    fn loops_up_to(&self, op: Op, region: Region) -> Option<Vec<Counted>> {
        let (function, structure) = (self.function(), self.structure());
        let mut loops = Vec::new();
        let mut inner = structure.region_of(op)?;
        while inner != region {
            let holder = structure.op_of(inner)?;
            let data = &function.ops[holder];
            if is_loop(data.opcode) {
                loops.push(self.indices().counted(holder)?.clone());
            } else {
                let mut others = data.regions.iter().filter(|&&branch| branch != inner);
                let always = matches!(data.opcode, Opcode::If | Opcode::Switch)
                    && others.all(|&branch| function.ends_in_trap(branch));
                if !always {
                    return None;
                }
            }
            inner = structure.region_of(holder)?;
        }
        Some(loops)
    }

    /// Extends what one iteration of a loop writes to what all of them write, if nothing is left out in between.
    ///
    /// A loop that does not run has written nothing. Where it is the only one the number of bytes says so, since no read fits in there.
    fn extend(&self, written: &mut Written, counted: &Counted, only: bool) -> Option<()> {
        if written.bytes.mentions(counted.counter) {
            return None;
        }
        let count = counted.trip_count()?;
        let (factor, rest) = written.start.split(counted.counter);
        if factor.mentions(counted.counter) {
            return None;
        }
        let moves = factor.is_constant() != Some(0);
        if moves {
            let stride = factor.mul(&counted.step)?;
            let first = if stride == written.bytes {
                counted.from.clone()
            } else if stride.scale(-1)? == written.bytes {
                counted.last_counter()?
            } else {
                return None;
            };
            written.start = factor.mul(&first)?.add(&rest)?;
            written.bytes = written.bytes.mul(&count)?;
        }
        if !(only && moves) {
            written.counts.push(count);
        }
        Some(())
    }
}
