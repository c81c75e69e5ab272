//! Inlined tensors that several kernels compute from more bytes than they have themselves.
//!
//! ```text
//! %s = fadd %a, %b      kernel 1: … %a + %b …       kernel 1: %s = %a + %b; …
//! 1 uses %s             kernel 2: … %a + %b …  ─▶   kernel 2: … %s …
//! 2, 3, 4 use %s        kernels 3 and 4 likewise    kernels 3 and 4 likewise
//! ```
//! Kernels that each read the operands move `kernels · operands` bytes; where one of them writes the tensor for the others, `operands + kernels · tensor`, and what is read again in that one is in a cache. Sums that go on from layer to layer are where this matters:
//! each kernel would read all terms so far.

use crate::graph::{Graph, Op, OpData, Region, Tensor};
use crate::lower::Fusion;
use crate::lower::kernel::memory_type;
use crate::opcode::Opcode;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashSet;

/// The inlined tensors that take more traffic than buffers for them would.
pub(super) fn costly(graph: &Graph, fusion: &Fusion) -> Vec<Tensor> {
    let mut finder = Finder {
        graph,
        fusion,
        kernels: SecondaryMap::new(),
        costly: Vec::new(),
    };
    finder.region(graph.body());
    finder.costly
}

struct Finder<'g> {
    graph: &'g Graph,
    fusion: &'g Fusion,
    /// The kernels that read a tensor, or compute it if it is inlined, by the operation where they run.
    kernels: SecondaryMap<Tensor, FxHashSet<Op>>,
    costly: Vec<Tensor>,
}

impl Finder<'_> {
    /// From the last operation to the first, so that it is known which kernels use a tensor.
    fn region(&mut self, region: Region) {
        let graph = self.graph;
        let ops = &graph.regions[region].ops;
        // Where the kernel of each operation runs.
        let mut runs: SecondaryMap<Op, Option<Op>> = SecondaryMap::new();
        let mut position: SecondaryMap<Op, usize> = SecondaryMap::new();
        for (at, &op) in ops.iter().enumerate() {
            position[op] = at;
            for &member in self.fusion.members(graph, &op) {
                runs[member] = Some(op);
            }
        }
        for &op in ops.iter().rev() {
            let data = &graph.ops[op];
            for &inner in &data.regions {
                self.region(inner);
            }
            let mut users = FxHashSet::default();
            match data.results[..] {
                [result] if self.fusion.inlined.contains(result) => {
                    users = std::mem::take(&mut self.kernels[result]);
                    let count = users.len();
                    if data.opcode != Opcode::Contract && !pays(graph, self.fusion, data, count) {
                        self.costly.push(result);
                        // The kernel that runs first computes it.
                        let first = users.iter().copied().min_by_key(|&op| position[op]);
                        users.clear();
                        users.extend(first);
                    }
                }
                _ => {
                    users.insert(runs[op].unwrap_or(op));
                }
            }
            for &operand in &data.operands {
                self.kernels[operand].extend(&users);
            }
        }
    }
}

/// Whether kernels that each read what an operation is computed from move no more bytes than one that writes its result for the others.
fn pays(graph: &Graph, fusion: &Fusion, data: &OpData, kernels: usize) -> bool {
    if kernels < 2 {
        return true;
    }
    let result = data.results[0];
    let most = graph.ty(result).shape.count();
    let fits = |read: usize| read * (kernels - 1) <= most * bytes(graph, result) * kernels;
    let mut operands = data.operands.clone();
    operands.sort_unstable();
    operands.dedup();
    // As if all operands had buffers, and as it is now.
    fits(
        operands
            .iter()
            .map(|&tensor| moved(graph, tensor, most))
            .sum(),
    ) || fits(
        sources(graph, fusion, data)
            .iter()
            .map(|&tensor| moved(graph, tensor, most))
            .sum(),
    )
}

/// The tensors with buffers that an operation is computed from.
fn sources(graph: &Graph, fusion: &Fusion, data: &OpData) -> Vec<Tensor> {
    let mut seen: FxHashSet<Tensor> = data.operands.iter().copied().collect();
    let mut waiting: Vec<Tensor> = seen.iter().copied().collect();
    let mut sources = Vec::new();
    while let Some(tensor) = waiting.pop() {
        match graph.def_op(tensor) {
            Some(op) if fusion.inlined.contains(tensor) => {
                let operands = graph.ops[op].operands.iter().copied();
                waiting.extend(operands.filter(|&operand| seen.insert(operand)));
            }
            _ => sources.push(tensor),
        }
    }
    sources
}

fn bytes(graph: &Graph, tensor: Tensor) -> usize {
    memory_type(graph.ty(tensor).element).bytes() as usize
}

/// The bytes that are read of a tensor, or of what it shows, for so many elements.
fn moved(graph: &Graph, tensor: Tensor, most: usize) -> usize {
    let own = graph.ty(tensor).shape.count().min(most) * bytes(graph, tensor);
    let Some(op) = graph.def_op(tensor) else {
        return own;
    };
    let data = &graph.ops[op];
    match data.opcode {
        _ if super::is_made_of_numbers(graph, data) => 0,
        Opcode::Broadcast | Opcode::Cast | Opcode::Reshape | Opcode::Detach => {
            own.min(moved(graph, data.operands[0], most))
        }
        _ => own,
    }
}
