//! A function's control flow as a graph of blocks, apart from what the blocks compute.
//!
//! Block 0 is the entry; nothing leads back to it. A block takes parameters (what LLVM calls phis), defines values, and
//! ends. Values follow the rules of SSA: each is defined once, and every use is reached only through its definition.

use ferrozyme_ir::{Type, Value};

/// A value of the graph: an index into [`Graph::types`].
pub(crate) type Name = u32;

/// The control flow of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// All blocks; the first is the entry.
    pub(crate) blocks: Vec<Block>,
    /// The type of every value.
    pub(crate) types: Vec<Type>,
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// What it takes from the edges that lead to it.
    pub(crate) params: Vec<Name>,
    /// What its operations use, as far as other blocks define it. What its end uses need not be listed.
    pub(crate) uses: Vec<Name>,
    /// What its operations define.
    pub(crate) defines: Vec<Name>,
    /// How it ends.
    pub(crate) end: End,
    /// Whether it is so small that every edge may have a copy of its own. Matters for blocks that end in a trap.
    pub(crate) small: bool,
}

/// The end of a block.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// On to another block.
    Jump(Edge),
    /// The first edge if the condition holds, else the second.
    Branch(Operand, [Edge; 2]),
    /// The edge whose list has the value, else the last edge, which has no list.
    Switch(Operand, Vec<Vec<i128>>, Vec<Edge>),
    /// Back to the caller.
    Return(Vec<Operand>),
    /// Nowhere.
    Trap,
}

impl End {
    /// The edges to other blocks.
    pub(crate) fn edges(&self) -> &[Edge] {
        match self {
            End::Jump(edge) => std::slice::from_ref(edge),
            End::Branch(_, edges) => edges,
            End::Switch(_, _, edges) => edges,
            End::Return(_) | End::Trap => &[],
        }
    }
}

/// The way to another block, with its arguments.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Edge {
    /// Where it leads.
    pub(crate) target: u32,
    /// One for each parameter of the target.
    pub(crate) args: Vec<Operand>,
}

/// Something that is used.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Operand {
    /// A value of the graph.
    Named(Name),
    /// A constant of the function that is being built.
    Constant(Value),
}
