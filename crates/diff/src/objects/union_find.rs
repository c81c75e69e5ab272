//! Sets that are joined.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Disjoint sets of keys: each key is in one of its own until that is joined with another.
#[derive(Clone, Debug)]
pub(super) struct UnionFind<K> {
    parents: FxHashMap<K, K>,
}

impl<K> Default for UnionFind<K> {
    fn default() -> UnionFind<K> {
        UnionFind {
            parents: FxHashMap::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> UnionFind<K> {
    /// The key that stands for a key's set.
    pub(super) fn root(&mut self, key: K) -> K {
        let mut at = key;
        while let Some(&parent) = self.parents.get(&at) {
            // Later searches have half the way.
            if let Some(&next) = self.parents.get(&parent) {
                self.parents.insert(at, next);
            }
            at = parent;
        }
        at
    }

    /// Makes one set of two.
    pub(super) fn join(&mut self, a: K, b: K) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parents.insert(a, b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_become_one_set() {
        let mut sets = UnionFind::default();
        for key in 0..100 {
            sets.join(key, key + 1);
        }
        sets.join(200, 201);
        let root = sets.root(0);
        assert!((0..=100).all(|key| sets.root(key) == root));
        assert_eq!(sets.root(200), sets.root(201));
        assert_ne!(sets.root(200), root);
        assert_eq!(sets.root(300), 300);
    }
}
