//! Cells from which words are moved to others as floats: where the words are addresses, they lead to the same memory in both.

use super::{CellId, Graph, Target};
use crate::objects::union_find::UnionFind;
use ferrozyme_opt::{reached_by_moves, reversed_moves};
use rustc_hash::{FxHashMap, FxHashSet};

impl Graph {
    /// States that some bytes are moved to others as a float.
    pub(in crate::objects) fn move_to(&mut self, from: CellId, to: CellId) {
        self.moves.push((from, to));
    }

    /// Forgets what was stated: cells become others.
    pub(in crate::objects) fn forget_moves(&mut self) {
        self.moves.clear();
    }

    /// Joins the addresses in each cell with those in all cells that it is moved to, directly or by way of others. Where no address is known, there is none, or nobody looks at it.
    pub(in crate::objects) fn join_moved(&mut self) {
        let moves = self.undivided_moves();
        let with_addresses = self.addresses_in(&moves);
        // The cells on the way from an address to an address. All addresses in front of a cell come to all behind it, so each connected part is one set.
        let behind = reached_by_moves(&moves, with_addresses.iter().copied());
        let ahead = reached_by_moves(&reversed_moves(&moves), with_addresses.iter().copied());
        let is_between = |cell: CellId| behind.contains(&cell) && ahead.contains(&cell);
        let mut sets: UnionFind<CellId> = UnionFind::default();
        for (from, to) in moves {
            if is_between(from) && is_between(to) {
                sets.join(from, to);
            }
        }
        let mut groups: FxHashMap<CellId, usize> = FxHashMap::default();
        let mut together: Vec<Vec<CellId>> = Vec::new();
        for cell in with_addresses {
            let number = *groups.entry(sets.root(cell)).or_insert(together.len());
            match together.get_mut(number) {
                Some(cells) => cells.push(cell),
                None => together.push(vec![cell]),
            }
        }
        for cells in together.iter().filter(|cells| cells.len() > 1) {
            let mut joined: Option<Target> = None;
            for &cell in cells {
                joined = match (joined, self.address_of(cell)) {
                    (Some(others), Some(address)) => Some(self.join(others, address)),
                    (others, address) => others.or(address),
                };
            }
            let Some(target) = joined else { continue };
            for &cell in cells {
                self.set_pointer(cell, target);
            }
        }
    }

    /// The cells with addresses that are moved, or to which others are.
    fn addresses_in(&mut self, moves: &[(CellId, CellId)]) -> Vec<CellId> {
        let mut cells: Vec<CellId> = moves.iter().flat_map(|&(from, to)| [from, to]).collect();
        let mut seen = FxHashSet::default();
        cells.retain(|&cell| seen.insert(cell) && self.address_of(cell).is_some());
        cells
    }

    /// The cells to which addresses may be moved, and which are moved on to another.
    pub(in crate::objects) fn moved_addresses(&mut self, to: CellId) -> FxHashSet<CellId> {
        let moves = self.undivided_moves();
        let with_addresses = self.addresses_in(&moves);
        let ahead = reached_by_moves(&reversed_moves(&moves), [to]);
        let mut cells = reached_by_moves(&moves, with_addresses);
        cells.retain(|cell| ahead.contains(cell));
        cells
    }

    /// The moves between undivided cells.
    pub(in crate::objects) fn undivided_moves(&mut self) -> Vec<(CellId, CellId)> {
        let mut between = Vec::new();
        for (from, to) in self.moves.clone() {
            let ends = self.leaves(to);
            for from in self.leaves(from) {
                between.extend(ends.iter().map(|&to| (from, to)));
            }
        }
        let mut seen = FxHashSet::default();
        between.retain(|&(from, to)| from != to && seen.insert((from, to)));
        between
    }
}
