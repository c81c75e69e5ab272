//! Words that are moved as floats.
//!
//! A compiler may move a word as a float that is an address in other cases: one variant of an `enum` has a float where another has a pointer, and only the float is looked at here.
//!
//! ```text
//! %word = load f64 %from align 8          what is at %from and what is at %to are moved together: should both be pointers
//! %sum = fadd %old, %word                 elsewhere, they lead to the same memory
//! store f64 %word, %to align 8
//! ```
//!
//! The two places are not the same otherwise: most such words are floats, and where they go there may never be anything else.
//! The derivative stops where the word turns out to be an address ([`Refusal::MovedAsFloat`](ferrozyme_refusal::Refusal)).

use super::super::graph::CellId;
use super::super::union_find::UnionFind;
use super::Gather;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{Function, OpData, OpView, Opcode, Scalar, Type, Value};
use ferrozyme_opt::word_moves;

/// The floats of a function that are copied from somewhere to somewhere, not computed. A *web* is some of them that are connected by moves.
pub(in crate::objects) struct Moves {
    /// For each, one that stands for it and for all that may be the same.
    webs: SecondaryMap<Value, Option<Value>>,
    /// A cell for each web.
    cells: SecondaryMap<Value, Option<CellId>>,
}

impl Moves {
    /// Those of a function. Floats that come from nowhere or go nowhere are left out.
    pub(super) fn of(function: &Function) -> Moves {
        let is_word = |value| function.ty(value) == Type::F64 && !function.is_constant(value);
        let mut same: UnionFind<Value> = UnionFind::default();
        for (from, to) in word_moves(function, is_word) {
            same.join(from, to);
        }
        let (mut comes, mut goes) = (Vec::new(), Vec::new());
        for op in ferrozyme_ir::returning_ops(function) {
            let data = &function.ops[op];
            match function.view(op) {
                OpView::Load { .. } => comes.push(data.results[0]),
                OpView::Store { value, .. } => goes.push(value),
                OpView::Cast(Opcode::Bitcast, bits) => {
                    comes.push(data.results[0]);
                    goes.push(bits);
                }
                _ => {}
            }
        }
        let mut roots = |values: Vec<Value>| -> EntitySet<Value> {
            let mut roots = EntitySet::new();
            let words = values.into_iter().filter(|&value| is_word(value));
            roots.extend(words.map(|word| same.root(word)));
            roots
        };
        let (comes, goes) = (roots(comes), roots(goes));
        let mut webs = SecondaryMap::new();
        for value in function.values.keys().filter(|&value| is_word(value)) {
            let root = same.root(value);
            if comes.contains(root) && goes.contains(root) {
                webs[value] = Some(root);
            }
        }
        Moves {
            webs,
            cells: SecondaryMap::new(),
        }
    }

    /// Those of them that are not computed here.
    pub(in crate::objects) fn words(&self, function: &Function) -> EntitySet<Value> {
        let is_moved = |&value: &Value| {
            let op = function.def_op(value).map(|(op, _)| &function.ops[op]);
            let moves = |data: &OpData| {
                let opcode = data.opcode;
                let moves = matches!(opcode, Opcode::Load | Opcode::Select | Opcode::Bitcast);
                moves || !data.regions.is_empty()
            };
            self.webs[value].is_some() && op.is_none_or(moves)
        };
        let mut words = EntitySet::new();
        words.extend(function.values.keys().filter(is_moved));
        words
    }
}

impl Gather<'_> {
    /// A float comes from some bytes, or goes there.
    pub(super) fn moves(&mut self, b: usize, float: Value, bytes: CellId) {
        if let Some(cell) = self.moved_cell(b, float) {
            self.graph.move_between(cell, bytes);
        }
    }

    /// The cell of a float that may be a word from elsewhere, and of all that may be the same.
    fn moved_cell(&mut self, b: usize, float: Value) -> Option<CellId> {
        let web = self.bodies[b].moves.webs[float]?;
        let cell = match self.bodies[b].moves.cells[web] {
            Some(cell) => cell,
            None => {
                let cell = self.graph.new_cell(Scalar::F64.bytes());
                self.bodies[b].moves.cells[web] = Some(cell);
                cell
            }
        };
        Some(cell)
    }
}
