//! Intervals of bytes, each with the operation that writes it.

use ferrozyme_ir::Op;

/// Answers which interval, of those that meet a given one, stands last in the text.
pub(super) struct IntervalTree {
    /// The ends of all intervals, sorted. Slot `i` is what lies between bounds `i` and `i + 1`.
    bounds: Vec<i64>,
    /// How many leaves the tree has: a power of two.
    leaves: usize,
    /// For each node, the last interval that covers all of it.
    covering: Vec<Option<(u32, Op)>>,
    /// For each node, the last interval that meets it.
    meeting: Vec<Option<(u32, Op)>>,
}

impl IntervalTree {
    pub(super) fn of(intervals: &[(i64, i64, u32, Op)]) -> IntervalTree {
        let mut bounds: Vec<i64> = intervals
            .iter()
            .flat_map(|&(start, end, ..)| [start, end])
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let leaves = bounds.len().next_power_of_two();
        let mut tree = IntervalTree {
            bounds,
            leaves,
            covering: vec![None; 2 * leaves],
            meeting: vec![None; 2 * leaves],
        };
        for &(start, end, order, op) in intervals {
            let first = tree.bounds.partition_point(|&bound| bound < start);
            let last = tree.bounds.partition_point(|&bound| bound < end);
            tree.insert(1, 0, leaves, first, last, (order, op));
        }
        tree
    }

    pub(super) fn latest_of_all(&self) -> Option<(u32, Op)> {
        self.meeting[1]
    }

    pub(super) fn latest(&self, start: i64, end: i64) -> Option<(u32, Op)> {
        // The first slot that ends behind `start`, and the first that starts at or behind `end`.
        let first = self
            .bounds
            .partition_point(|&bound| bound <= start)
            .saturating_sub(1);
        let last = self.bounds.partition_point(|&bound| bound < end);
        self.query(1, 0, self.leaves, first, last)
    }

    fn insert(
        &mut self,
        node: usize,
        low: usize,
        high: usize,
        first: usize,
        last: usize,
        entry: (u32, Op),
    ) {
        if first >= high || last <= low {
            return;
        }
        self.meeting[node] = later(self.meeting[node], Some(entry));
        if first <= low && high <= last {
            self.covering[node] = later(self.covering[node], Some(entry));
            return;
        }
        let middle = (low + high) / 2;
        self.insert(2 * node, low, middle, first, last, entry);
        self.insert(2 * node + 1, middle, high, first, last, entry);
    }

    fn query(
        &self,
        node: usize,
        low: usize,
        high: usize,
        first: usize,
        last: usize,
    ) -> Option<(u32, Op)> {
        if first >= high || last <= low {
            return None;
        }
        if first <= low && high <= last {
            return self.meeting[node];
        }
        let middle = (low + high) / 2;
        let below = later(
            self.query(2 * node, low, middle, first, last),
            self.query(2 * node + 1, middle, high, first, last),
        );
        later(self.covering[node], below)
    }
}

fn later(a: Option<(u32, Op)>, b: Option<(u32, Op)>) -> Option<(u32, Op)> {
    match (a, b) {
        (Some(x), Some(y)) => Some(if x.0 >= y.0 { x } else { y }),
        (x, y) => x.or(y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_looking_at_all() {
        let mut state = 1u64;
        let mut random = |limit: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % limit
        };
        for _ in 0..200 {
            let intervals: Vec<(i64, i64, u32, Op)> = (0..1 + random(12) as u32)
                .map(|order| {
                    let start = random(40) as i64 - 20;
                    let end = start + 1 + random(9) as i64;
                    (start, end, order, Op::from_u32(order))
                })
                .collect();
            let tree = IntervalTree::of(&intervals);
            for start in -25..25 {
                for size in 1..6 {
                    let expected = intervals
                        .iter()
                        .filter(|&&(a, b, ..)| a < start + size && start < b)
                        .map(|&(_, _, order, op)| (order, op))
                        .max_by_key(|&(order, _)| order);
                    assert_eq!(tree.latest(start, start + size), expected);
                }
            }
            let last = intervals.last().map(|&(_, _, order, op)| (order, op));
            assert_eq!(tree.latest_of_all(), last);
        }
    }
}
