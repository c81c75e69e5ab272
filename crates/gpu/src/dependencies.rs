//! Which launches need what others leave in memory, and what may run at the same time.
//!
//! ```text
//! 0: %a = exp %x      lane 0: 0 ── 2 (waits for 1)
//! 1: %b = log %x ─▶   lane 1: 1
//! 2: %c = %a + %b
//! ```
//! A device that has several queues, here *lanes*, runs what stands in different ones at the same time, and waits only where one step needs another. Steps need each other if they touch the same bytes and one of them writes; places that a plan
//! gives to several tensors one after the other keep their steps apart in this way, too.

use crate::Kernel;
use crate::parallel::written_roots;
use crate::schedule::{Buffer, Step};
use ferrozyme_ir::{Function, Op, Value};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a kernel does with the memory behind one of its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferUse {
    /// Whether it writes there. Otherwise it only reads.
    pub writes: bool,
    /// How many bytes behind the address it may touch.
    pub bytes: usize,
}

/// Where a step stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The number of the lane.
    pub lane: usize,
    /// The steps in other lanes that must have ended before, at most one in each.
    pub waits: Vec<usize>,
}

/// What the operations of a kernel do with each of its buffers. Tensors have these sizes, where they are known.
pub(crate) fn buffer_uses(
    function: &Function,
    ops: &[Op],
    buffers: &[Value],
    sizes: Option<&[usize]>,
) -> Vec<BufferUse> {
    let written = written_roots(function, ops);
    let bytes = |number: usize| {
        let size = sizes.and_then(|sizes| sizes.get(number));
        size.copied().unwrap_or(usize::MAX)
    };
    let uses = buffers
        .iter()
        .enumerate()
        .map(|(number, buffer)| BufferUse {
            writes: written.contains(buffer),
            bytes: bytes(number),
        });
    uses.collect()
}

/// Bytes that a step touches.
struct Touched {
    step: usize,
    bytes: Range<usize>,
    writes: bool,
}

/// For each of a list of launches, copies and counts, the earlier ones that must have ended before. What those need themselves may be left out.
pub fn dependencies(kernels: &[Kernel], steps: &[Step]) -> Vec<Vec<usize>> {
    let mut touched: FxHashMap<Buffer, Vec<Touched>> = FxHashMap::default();
    let mut all = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let accesses = accesses_of(kernels, step);
        let mut needed: Vec<usize> = Vec::new();
        for (buffer, bytes, writes) in &accesses {
            for other in touched.get(buffer).into_iter().flatten() {
                let meets = other.bytes.start < bytes.end && bytes.start < other.bytes.end;
                if meets && (*writes || other.writes) {
                    needed.push(other.step);
                }
            }
        }
        needed.sort_unstable();
        needed.dedup();
        for (buffer, bytes, writes) in accesses {
            let others = touched.entry(buffer).or_default();
            if writes {
                // Who meets what is overwritten meets this step as well.
                let is_covered = |other: &Touched| {
                    other.step != number
                        && bytes.start <= other.bytes.start
                        && other.bytes.end <= bytes.end
                };
                others.retain(|other| !is_covered(other));
            }
            others.push(Touched {
                step: number,
                bytes,
                writes,
            });
        }
        all.push(needed);
    }
    all
}

/// The bytes that a step touches, and whether it writes them.
fn accesses_of(kernels: &[Kernel], step: &Step) -> Vec<(Buffer, Range<usize>, bool)> {
    let range = |offset: usize, bytes: usize| offset..offset.saturating_add(bytes);
    match step {
        Step::Launch { kernel, places } => {
            let pairs = places.iter().zip(&kernels[*kernel].buffers);
            let accesses =
                pairs.map(|(place, of)| (place.buffer, range(place.offset, of.bytes), of.writes));
            accesses.collect()
        }
        Step::Copy { to, from, bytes } => vec![
            (to.buffer, range(to.offset, *bytes), true),
            (from.buffer, range(from.offset, *bytes), false),
        ],
        Step::Count { to } => vec![(to.buffer, range(to.offset, 4), true)],
        _ => Vec::new(),
    }
}

/// Deals steps out to lanes: a step follows one that it needs if that is the last of its lane, and otherwise goes to the lane that has been without a new step for longest.
pub fn deal_out(dependencies: &[Vec<usize>], lanes: usize) -> Vec<Seat> {
    let mut last: Vec<Option<usize>> = vec![None; lanes];
    let mut seats: Vec<Seat> = Vec::with_capacity(dependencies.len());
    // For each step, the last step of each lane that has ended when it has.
    let mut ended: Vec<Vec<Option<usize>>> = Vec::with_capacity(dependencies.len());
    for (number, needed) in dependencies.iter().enumerate() {
        let follows = needed.iter().rev().map(|&other| seats[other].lane);
        let mut follows = follows.zip(needed.iter().rev());
        let behind = follows.find(|&(lane, &other)| last[lane] == Some(other));
        let idle = (0..lanes).min_by_key(|&lane| last[lane]);
        let lane = behind.map(|(lane, _)| lane).or(idle).unwrap_or(0);
        let mut known = last[lane].map_or(vec![None; lanes], |before| ended[before].clone());
        let mut waits: Vec<usize> = Vec::new();
        // From the last one on, since it may have waited for the others.
        for &other in needed.iter().rev() {
            let home = seats[other].lane;
            if known[home] >= Some(other) {
                continue;
            }
            if home != lane {
                waits.push(other);
            }
            for (known, &more) in known.iter_mut().zip(&ended[other]) {
                *known = (*known).max(more);
            }
        }
        known[lane] = Some(number);
        last[lane] = Some(number);
        waits.sort_unstable();
        seats.push(Seat { lane, waits });
        ended.push(known);
    }
    seats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Place;

    fn copy(to: usize, from: usize) -> Step {
        let place = |offset: usize| Place { buffer: 0, offset };
        Step::Copy {
            to: place(to),
            from: place(from),
            bytes: 8,
        }
    }

    #[test]
    fn steps_that_touch_the_same_bytes_need_each_other_if_one_writes() {
        // Reads of one place, a write into its middle, a write elsewhere, and a read of both.
        let steps = [
            copy(100, 0),
            copy(200, 0),
            copy(4, 300),
            copy(400, 300),
            copy(500, 8),
        ];
        let needed = dependencies(&[], &steps);
        assert_eq!(needed, [vec![], vec![], vec![0, 1], vec![], vec![2]]);
    }

    #[test]
    fn what_is_overwritten_as_a_whole_is_needed_through_its_writer() {
        let steps = [copy(0, 100), copy(200, 0), copy(0, 300), copy(400, 0)];
        let needed = dependencies(&[], &steps);
        assert_eq!(needed, [vec![], vec![0], vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_chain_stays_in_its_lane_and_others_go_elsewhere() {
        let seats = deal_out(&[vec![], vec![0], vec![], vec![1, 2], vec![]], 2);
        let lanes: Vec<usize> = seats.iter().map(|seat| seat.lane).collect();
        assert_eq!(lanes, [0, 0, 1, 1, 0]);
        assert_eq!(seats[3].waits, [1]);
    }

    /// A step that waits knows what the one before had waited for.
    #[test]
    fn nobody_waits_twice() {
        let seats = deal_out(&[vec![], vec![], vec![0, 1], vec![0, 2], vec![2]], 2);
        let waits: Vec<&[usize]> = seats.iter().map(|seat| &*seat.waits).collect();
        assert_eq!(waits, [&[][..], &[], &[0], &[], &[2]]);
    }

    /// Whatever needs each other runs one after the other, for random lists.
    #[test]
    fn what_is_needed_has_ended() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..200 {
            let count = 1 + random(20);
            let needed: Vec<Vec<usize>> = (0..count)
                .map(|number| (0..number).filter(|_| random(3) == 0).collect())
                .collect();
            let lanes = 1 + random(4);
            let seats = deal_out(&needed, lanes);
            // What has ended for certain before each step begins: the one before it in its lane, what it waits for, and what those had before.
            let mut before: Vec<Vec<usize>> = Vec::new();
            for (number, seat) in seats.iter().enumerate() {
                let previous = (0..number)
                    .rev()
                    .find(|&other| seats[other].lane == seat.lane);
                let mut ended: Vec<usize> = previous
                    .into_iter()
                    .chain(seat.waits.iter().copied())
                    .collect();
                for position in 0..ended.len() {
                    let other = ended[position];
                    ended.extend(before[other].clone());
                }
                assert!(
                    needed[number].iter().all(|other| ended.contains(other)),
                    "{needed:?} {seats:?}"
                );
                before.push(ended);
            }
        }
    }
}
