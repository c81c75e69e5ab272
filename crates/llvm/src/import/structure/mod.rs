//! Brings control flow into structured form: a graph of blocks becomes `if`, `switch` and `loop` with regions.
//!
//! ```text
//! entry:                                       %c0 = …
//!   br %c0, head, exit                         %r = if %c0 -> (f64) {
//! head(%i, %s):                                  %s2 = loop with (%i: i64 = 0, %s: f64 = 0.0) {
//!   …                                              …
//!   br %c1, head(%i1, %s1), exit(%s1)     →        again %c1, %i1, %s1
//! exit(%r):                                      }
//!   ret %r                                       yield %s2
//!                                              } else { yield 0.0 }
//!                                              return %r
//! ```
//!
//! The way is that of Bahmann, Reissmann, Jahre and Meyer, "Perfect Reconstructability of Control Flow from Demand Dependence
//! Graphs" (2015): first loops, so that each is entered in one place and left in one place ([`flow`]), then branches,
//! so that all arms of one end in the same place ([`level`], [`tree`]); where that takes it, a number or a truth value says where control
//! is to go. Then it is found which values are handed through regions ([`carry`]), and all of it is written down ([`emit`]).
//!
//! Time grows nearly linearly with the graph, times the depth of nesting. Recursion follows nesting only.

mod carry;
mod emit;
mod flow;
mod graph;
mod level;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use emit::{Translate, Writer};
pub(crate) use graph::{Block, Edge, End, Graph, Name, Operand};
pub(crate) use tree::TooDeep;

use carry::Carry;
use ferrozyme_ir::Function;
use flow::Flow;
use tree::Tree;

/// Why a graph could not be brought into structured form.
#[derive(Debug)]
pub(crate) enum StructureError<E> {
    /// Regions would nest too deep.
    TooDeep,
    /// A block cannot be written.
    Block(E),
}

/// Brings a graph into structured form, in the body of a function, which is empty before.
///
/// Edges of one switch that lead to the same block with the same arguments are to be given as one.
pub(crate) fn structure<T: Translate>(
    mut graph: Graph,
    function: &mut Function,
    translate: &mut T,
) -> Result<(), StructureError<T::Error>> {
    normalise(&mut graph);
    let flow = Flow::of(&graph);
    let tree = Tree::of(&graph, &flow).map_err(|TooDeep| StructureError::TooDeep)?;
    let carry = Carry::of(&graph, &tree);
    emit::emit(&graph, &tree, &carry, flow.nodes.len(), function, translate)
        .map_err(StructureError::Block)
}

/// Leaves one place to return from, and no branch whose two edges are the same.
fn normalise(graph: &mut Graph) {
    let returns: Vec<usize> = (0..graph.blocks.len())
        .filter(|&index| matches!(graph.blocks[index].end, End::Return(_)))
        .collect();
    if let [first, _, ..] = returns[..] {
        let types: Vec<_> = match &graph.blocks[first].end {
            End::Return(values) => values.iter().map(|&value| graph.operand_type(value)).collect(),
            _ => Vec::new(),
        };
        let exit = graph.blocks.len() as u32;
        for index in returns {
            if let End::Return(args) = std::mem::replace(&mut graph.blocks[index].end, End::Trap) {
                graph.blocks[index].end = End::Jump(Edge { target: exit, args });
            }
        }
        let _ = types;
    }
}
