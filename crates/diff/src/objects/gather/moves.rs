//! Words that are moved as floats.
//!
//! A compiler may move a word as a float that is an address in other cases: one variant of an `enum` has a float where another has a pointer, and only the float is looked at here.
//!
//! ```text
//! %word = load f64 %from align 8          what is at %from may be at %to afterwards: should both be pointers
//! %sum = fadd %old, %word                 elsewhere, they lead to the same memory
//! store f64 %word, %to align 8
//! ```
//!
//! The two places are not the same otherwise: most such words are floats, and where they go there may never be anything else. So each float that is moved has a cell of its own, and
//! moves have a direction: two places from which a function returns floats have nothing in common. Calls move words from arguments to parameters, and from what is returned to results.
//! The lanes of a vector share a cell. Nobody knows where a function goes with a float that is called through a pointer.
//!
//! The derivative stops where the word turns out to be an address ([`Refusal::MovedAsFloat`](ferrozyme_refusal::Refusal)).

use super::super::graph::CellId;
use super::Gather;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{Function, OpData, OpView, Opcode, Scalar, Value};
use ferrozyme_opt::{reached_by_moves, reversed_moves, word_moves};
use rustc_hash::FxHashSet;

/// The floats of a function that come from somewhere and go somewhere as they are: they are loaded, passed or given by a call, and stored, passed or returned.
pub(in crate::objects) struct Moves {
    words: EntitySet<Value>,
    /// Those of them that may come from other functions.
    given: EntitySet<Value>,
    /// From where to where they are moved within the function.
    moves: Vec<(Value, Value)>,
    /// A cell for each that was met.
    cells: SecondaryMap<Value, Option<CellId>>,
    /// Those of the results.
    pub(in crate::objects) results: Vec<Option<CellId>>,
}

impl Moves {
    pub(super) fn of(function: &Function) -> Moves {
        let is_word = |value| is_word(function, value);
        let (mut comes, mut goes) = (Vec::new(), Vec::new());
        let mut given = match function.body {
            Some(_) => function.arguments().to_vec(),
            None => Vec::new(),
        };
        for op in ferrozyme_ir::returning_ops(function) {
            let data = &function.ops[op];
            match function.view(op) {
                OpView::Load { .. } => comes.push(data.results[0]),
                OpView::Store { value, .. } => goes.push(value),
                OpView::Cast(Opcode::Bitcast, bits) => {
                    comes.push(data.results[0]);
                    goes.push(bits);
                }
                OpView::Call { .. } | OpView::CallIndirect { .. } => {
                    given.extend(&data.results);
                    goes.extend(&data.operands);
                }
                OpView::Return { values } => goes.extend(values),
                _ => {}
            }
        }
        comes.extend(&given);
        let words_of = |values: Vec<Value>| values.into_iter().filter(|&value| is_word(value));
        let mut moves = word_moves(function, is_word);
        let coming = reached_by_moves(&moves, words_of(comes));
        let leaving = reached_by_moves(&reversed_moves(&moves), words_of(goes));
        let mut words = EntitySet::new();
        words.extend(coming.into_iter().filter(|word| leaving.contains(word)));
        let mut given_words = EntitySet::new();
        given_words.extend(reached_by_moves(&moves, words_of(given)));
        moves.retain(|&(from, to)| words.contains(from) && words.contains(to));
        Moves {
            words,
            given: given_words,
            moves,
            cells: SecondaryMap::new(),
            results: vec![None; function.results.len()],
        }
    }

    /// The cells of the parameters.
    pub(in crate::objects) fn params(&self, function: &Function) -> Vec<Option<CellId>> {
        let params = function.body.map_or(&[][..], |_| function.arguments());
        params.iter().map(|&param| self.cells[param]).collect()
    }

    /// The words that are not computed here.
    pub(in crate::objects) fn not_computed(&self, function: &Function) -> EntitySet<Value> {
        let is_moved = |&word: &Value| {
            let op = function.def_op(word).map(|(op, _)| &function.ops[op]);
            let moves = |data: &OpData| {
                let moves = matches!(
                    data.opcode,
                    Opcode::Load
                        | Opcode::Select
                        | Opcode::Bitcast
                        | Opcode::Splat
                        | Opcode::Extract
                        | Opcode::Insert
                        | Opcode::Shuffle
                        | Opcode::Call
                        | Opcode::CallIndirect
                );
                moves || !data.regions.is_empty()
            };
            op.is_none_or(moves)
        };
        let mut words = EntitySet::new();
        words.extend(self.words.iter().filter(is_moved));
        words
    }

    /// The words whose cells are among some.
    pub(in crate::objects) fn among(&self, cells: &FxHashSet<CellId>) -> EntitySet<Value> {
        let is_among = |&word: &Value| self.cells[word].is_some_and(|cell| cells.contains(&cell));
        let mut words = EntitySet::new();
        words.extend(self.words.iter().filter(is_among));
        words
    }

    /// The words that may come from other functions.
    pub(in crate::objects) fn given(&self) -> &EntitySet<Value> {
        &self.given
    }
}

/// Whether a value is a float of eight bytes, or several of them. Constants are never addresses.
fn is_word(function: &Function, value: Value) -> bool {
    function.ty(value).scalar() == Scalar::F64 && !function.is_constant(value)
}

impl Gather<'_> {
    /// A float comes from some bytes.
    pub(super) fn comes_from(&mut self, b: usize, float: Value, bytes: CellId) {
        if let Some(cell) = self.moved_cell(b, float) {
            self.graph.move_to(bytes, cell);
        }
    }

    /// A float goes to some bytes.
    pub(super) fn goes_to(&mut self, b: usize, float: Value, bytes: CellId) {
        if let Some(cell) = self.moved_cell(b, float) {
            self.graph.move_to(cell, bytes);
        }
    }

    /// The moves within a function.
    pub(super) fn moves_within(&mut self, b: usize) {
        for index in 0..self.bodies[b].moves.moves.len() {
            let (from, to) = self.bodies[b].moves.moves[index];
            if let Some(cell) = self.moved_cell(b, to) {
                self.goes_to(b, from, cell);
            }
        }
    }

    /// A float is returned.
    pub(super) fn returns(&mut self, b: usize, float: Value, index: usize) {
        if !self.bodies[b].moves.words.contains(float) {
            return;
        }
        let result = match self.bodies[b].moves.results[index] {
            Some(result) => result,
            None => {
                let result = self.graph.new_cell(Scalar::F64.bytes());
                self.bodies[b].moves.results[index] = Some(result);
                result
            }
        };
        self.goes_to(b, float, result);
    }

    /// A float is passed to a function of the same group.
    pub(super) fn passes(&mut self, b: usize, float: Value, inner: usize, param: Value) {
        if let Some(cell) = self.moved_cell(inner, param) {
            self.goes_to(b, float, cell);
        }
    }

    /// A function of the same group gives a float.
    pub(super) fn gives(&mut self, b: usize, float: Value, inner: usize, index: usize) {
        if let Some(cell) = self.bodies[inner].moves.results[index] {
            self.comes_from(b, float, cell);
        }
    }

    /// A float is passed to a function that is not known.
    pub(super) fn passes_to_unknown(&mut self, b: usize, float: Value) {
        if self.bodies[b].moves.words.contains(float) {
            let unknown = self.unknown_callees();
            self.goes_to(b, float, unknown);
        }
    }

    /// The cell of all floats that are passed to functions that are not known.
    pub(super) fn unknown_callees(&mut self) -> CellId {
        let graph = &mut self.graph;
        let bytes = Scalar::F64.bytes();
        *(self.unknown_callees).get_or_insert_with(|| graph.new_cell(bytes))
    }

    fn moved_cell(&mut self, b: usize, float: Value) -> Option<CellId> {
        if !self.bodies[b].moves.words.contains(float) {
            return None;
        }
        let cell = match self.bodies[b].moves.cells[float] {
            Some(cell) => cell,
            None => {
                let cell = self.graph.new_cell(Scalar::F64.bytes());
                self.bodies[b].moves.cells[float] = Some(cell);
                cell
            }
        };
        Some(cell)
    }
}
