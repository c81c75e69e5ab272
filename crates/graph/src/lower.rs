//! Graphs to Loop IR: kernels over buffers, and a function that calls them.
//!
//! A *kernel* is a function that computes one tensor: a nest of loops over its elements that stores each, or a `contract`. An element is computed from elements of operands ([`kernel`](self::kernel)):
//! loaded from the operand's buffer or, if the operand is *inlined*, computed in turn. So fusion is the choice of tensors that have no buffer ([`Fusion`]).
//!
//! ```text
//! %y = exp %x : f64[2, 3]      func @exp_1(%y: ptr noalias, %x: ptr noalias readonly) {
//!                                for %i: i64 = 0 to 2 step 1 { for %j: i64 = 0 to 3 step 1 {
//!                        ─▶        %x_ij = load f64 …;  %y_ij = exp f64 %x_ij;  store f64 %y_ij, … } }
//!                              }
//! ```
//!
//! `@main` takes the memory of each parameter and calls the kernels in order; `for`, `while` and `if` are the Loop IR's. Tensors have memory of their own, or are where a plan ([`memory`](crate::memory)) has them. `feed`, `receive` and the calls of Rust functions
//! are calls of functions that the host defines ([`FEED`], [`RECEIVE`], [`CALL`]).
//!
//! Conditions take a byte in memory. An index out of range is a `trap`.

pub(crate) mod access;
pub(crate) mod arithmetic;
mod fusion;
pub(crate) mod kernel;
mod program;
pub(crate) mod source;
pub(crate) mod strided;
pub(crate) mod sum;
pub(crate) mod view;

pub use fusion::{Fusion, Joint};
pub use kernel::{ElementRule, Kernel, WholeRule};

use crate::graph::Graph;
use crate::memory::MemoryPlan;
use crate::types::TensorType;
use ferrozyme_ir::{FunctionId, Module};
use rustc_hash::FxHashMap;

/// The function that feeds: `@feed(number, to)` writes the tensor of the exchange of this number.
pub const FEED: &str = "__ferrozyme_feed";
/// The function that receives: `@receive(number, position, from)` gets the tensor at a position of the exchange of this number.
pub const RECEIVE: &str = "__ferrozyme_receive";

/// The function that overwrites memory which holds nothing any more: `@poison(address, bytes)`.
pub const POISON: &str = "__ferrozyme_poison";

/// The functions that call Rust functions: `@call_3(number, a, b, y)` has the call of this number carried out on the addresses of its operands, then of its results. There is one for each number of addresses, which ends its name.
pub const CALL: &str = "__ferrozyme_call_";

/// A `call` or `call_vjp` as the host knows it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the function.
    pub name: Box<str>,
    /// Whether its derivative is called.
    pub derivative: bool,
    /// The types of the operands.
    pub operands: Vec<TensorType>,
    /// The types of the results.
    pub results: Vec<TensorType>,
    /// The line of the program that made it.
    pub location: Option<String>,
}

/// A `feed` or `receive` as the host knows it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its name.
    pub name: Box<str>,
    /// Whether the host feeds it; otherwise it receives it.
    pub feeds: bool,
    /// The types of the tensors, in order.
    pub types: Vec<TensorType>,
}

/// A graph as Loop IR.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The kernels and `@main`.
    pub module: Module,
    /// The function that runs the graph. Its arguments are the addresses of the parameters, in their order.
    pub main: FunctionId,
    /// What `@feed` and `@receive` exchange, by number.
    pub exchanges: Vec<Exchange>,
    /// For each kernel, how many bytes the tensor behind each parameter has.
    pub sizes: FxHashMap<FunctionId, Vec<usize>>,
    /// What `@call_…` calls, by number.
    pub calls: Vec<Call>,
}

/// Lowers a graph that verifies. Every tensor that is not inlined has memory of its own, which `@main` allocates.
pub fn lower(graph: &Graph, fusion: &Fusion) -> Lowered {
    program::lower_program(graph, fusion, None, false)
}

/// Lowers a graph that verifies, with tensors where a plan has them. `@main` takes the address of the arena after those of the parameters.
pub fn lower_planned(graph: &Graph, fusion: &Fusion, memory: &MemoryPlan) -> Lowered {
    program::lower_program(graph, fusion, Some(memory), false)
}

/// As [`lower_planned`], for tests: [`POISON`] is called for all bytes of the arena that hold nothing any more, as soon as that is so. What comes to something else then reads what the plan takes for dead.
pub fn lower_poisoned(graph: &Graph, fusion: &Fusion, memory: &MemoryPlan) -> Lowered {
    program::lower_program(graph, fusion, Some(memory), true)
}
