//! Restructures control flow: a control-flow graph becomes `if`, `switch` and `loop` with regions.
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
//! The algorithm is that of Bahmann, Reissmann, Jahre and Meyer, "Perfect Reconstructability of Control Flow from Demand Dependence
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
use emit::Form;
use ferrozyme_ir::{Function, Type};
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
    let blocks = graph.blocks.len();
    normalise(&mut graph, &function.results);
    let flow = Flow::of(&graph);
    let tree = Tree::of(&graph, &flow).map_err(|TooDeep| StructureError::TooDeep)?;
    let carry = Carry::of(&graph, &tree);
    let form = Form {
        graph: &graph,
        tree: &tree,
        carry: &carry,
        blocks,
        nodes: flow.nodes.len(),
    };
    form.emit(function, translate)
        .map_err(StructureError::Block)
}

/// Leaves one place to return from, and no branch whose two edges are the same.
fn normalise(graph: &mut Graph, results: &[Type]) {
    for block in &mut graph.blocks {
        if let End::Branch(_, [first, second]) = &block.end
            && first == second
        {
            block.end = End::Jump(first.clone());
        }
    }
    let returns = |block: &&mut Block| matches!(block.end, End::Return(_));
    if graph.blocks.iter_mut().filter(returns).count() < 2 {
        return;
    }
    let exit = graph.blocks.len() as u32;
    for block in graph.blocks.iter_mut().filter(returns) {
        if let End::Return(args) = std::mem::replace(&mut block.end, End::Trap) {
            block.end = End::Jump(Edge { target: exit, args });
        }
    }
    let first = graph.types.len() as Name;
    graph.types.extend(results);
    let params: Vec<Name> = (first..graph.types.len() as Name).collect();
    graph.blocks.push(Block {
        end: End::Return(params.iter().map(|&name| Operand::Named(name)).collect()),
        params,
        uses: Vec::new(),
        defines: Vec::new(),
        small: false,
    });
}
