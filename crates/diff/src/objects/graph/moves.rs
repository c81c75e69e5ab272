//! Cells between which words are moved as floats: where the words are addresses, they lead to the same memory in all of them.

use super::{CellId, Graph, Target};
use crate::objects::union_find::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

impl Graph {
    /// States that some bytes are moved to others as a float.
    pub(in crate::objects) fn move_between(&mut self, a: CellId, b: CellId) {
        self.moves.push((a, b));
    }

    /// Forgets what was stated: cells become others.
    pub(in crate::objects) fn forget_moves(&mut self) {
        self.moves.clear();
    }

    /// Joins the addresses that may be moved as floats. Where no address is known, there is none, or nobody looks at it.
    pub(in crate::objects) fn join_moved(&mut self) {
        for cells in self.moved_together() {
            let addresses: Vec<(CellId, Target)> = (cells.into_iter())
                .filter_map(|cell| Some((cell, self.address_of(cell)?)))
                .collect();
            let [(_, first), others @ ..] = &addresses[..] else {
                continue;
            };
            if others.is_empty() {
                continue;
            }
            let mut joined = *first;
            for &(_, other) in others {
                joined = self.join(joined, other);
            }
            for (cell, _) in addresses {
                self.set_pointer(cell, joined);
            }
        }
    }

    /// The undivided cells between which words are moved as floats, directly or by way of others.
    pub(in crate::objects) fn moved_together(&mut self) -> Vec<Vec<CellId>> {
        let mut sets: UnionFind<CellId> = UnionFind::default();
        let mut order = Vec::new();
        for (a, b) in self.moves.clone() {
            let mut leaves = self.leaves(a);
            leaves.extend(self.leaves(b));
            for &leaf in &leaves {
                sets.join(leaf, leaves[0]);
            }
            order.extend(leaves);
        }
        let mut groups: Vec<Vec<CellId>> = Vec::new();
        let mut numbers: FxHashMap<CellId, usize> = FxHashMap::default();
        let mut seen: FxHashSet<CellId> = FxHashSet::default();
        for cell in order.into_iter().filter(|&cell| seen.insert(cell)) {
            let number = *numbers.entry(sets.root(cell)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[number].push(cell);
        }
        groups
    }
}
