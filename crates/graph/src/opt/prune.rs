//! Removes what nobody uses: operations without effect, and carried tensors and results of regions that lead nowhere.
//!
//! ```text
//! %r, %s = for %n, %a, %b (%i: i32[], %x: f32[2], %y: f32[2]) {      %r = for %n, %a (%i: i32[], %x: f32[2]) {
//!   %p = exp %x                                                        %p = exp %x
//!   %q = fadd %x, %y                                           ─▶      yield %p
//!   yield %p, %q                                                     }
//! }                                                                  receive "r" %r
//! receive "r" %r
//! ```

use crate::graph::{Def, Graph, Op, Region, Tensor};
use crate::opcode::{Effect, Opcode};
use cranelift_entity::EntitySet;

/// See the file's head.
pub fn prune(graph: &mut Graph) -> usize {
    let mut live = Live {
        graph,
        ops: EntitySet::new(),
        tensors: EntitySet::new(),
        waiting: Vec::new(),
        holders: Vec::new(),
    };
    live.hold(graph.body(), None);
    while let Some(tensor) = live.waiting.pop() {
        live.follow(tensor);
    }
    let (ops, tensors) = (live.ops, live.tensors);
    remove(graph, graph.body(), &ops, &tensors)
}

/// What is used, found from operations with effects backwards.
struct Live<'g> {
    graph: &'g Graph,
    ops: EntitySet<Op>,
    tensors: EntitySet<Tensor>,
    /// Tensors that are used, whose definitions have not been looked at.
    waiting: Vec<Tensor>,
    /// For each region that has arguments, the operation that holds it.
    holders: Vec<(Region, Op)>,
}

impl Live<'_> {
    /// Finds the operations with effects in a region, whose holder is used with them. Returns whether there are any.
    fn hold(&mut self, region: Region, holder: Option<Op>) -> bool {
        let graph = self.graph;
        if let Some(holder) = holder {
            self.holders.push((region, holder));
        }
        let mut any = false;
        for &op in &graph.regions[region].ops {
            let data = &graph.ops[op];
            let mut has_effect =
                matches!(data.opcode.row().effect, Effect::Write | Effect::Exchange);
            for &inner in &data.regions {
                has_effect |= self.hold(inner, Some(op));
            }
            // It may never end.
            has_effect |= data.opcode == Opcode::While;
            if has_effect {
                self.use_op(op);
                any = true;
            }
        }
        any
    }

    fn use_tensor(&mut self, tensor: Tensor) {
        if self.tensors.insert(tensor) {
            self.waiting.push(tensor);
        }
    }

    /// Marks an operation; of one with regions, only what decides which regions run and how often.
    fn use_op(&mut self, op: Op) {
        if !self.ops.insert(op) {
            return;
        }
        let data = &self.graph.ops[op];
        match data.opcode {
            Opcode::For | Opcode::If => self.use_tensor(data.operands[0]),
            Opcode::While => {
                for &condition in &self.graph.regions[data.regions[0]].results {
                    self.use_tensor(condition);
                }
            }
            _ => {
                for &operand in &data.operands {
                    self.use_tensor(operand);
                }
            }
        }
    }

    /// Marks what a tensor depends on.
    fn follow(&mut self, tensor: Tensor) {
        let graph = self.graph;
        match graph.tensors[tensor].def {
            Def::Result(op, index) => {
                self.use_op(op);
                let data = &graph.ops[op];
                match data.opcode {
                    Opcode::For | Opcode::While => self.use_carried(op, index),
                    Opcode::If => {
                        for &region in &data.regions {
                            self.use_tensor(graph.regions[region].results[index]);
                        }
                    }
                    _ => {}
                }
            }
            Def::Argument(region, index) => {
                let holder = self.holders.iter().find(|(held, _)| *held == region);
                if let Some(&(_, op)) = holder
                    && let Some(index) = index.checked_sub(counters(graph.ops[op].opcode))
                {
                    self.use_carried(op, index);
                }
            }
        }
    }

    /// Marks a tensor that a loop carries.
    fn use_carried(&mut self, op: Op, index: usize) {
        let data = &self.graph.ops[op];
        let body = data.regions[data.regions.len() - 1];
        self.use_tensor(data.operands[counters(data.opcode) + index]);
        self.use_tensor(self.graph.regions[body].results[index]);
        self.use_tensor(data.results[index]);
        for &region in &data.regions {
            let arguments = &self.graph.regions[region].arguments;
            self.use_tensor(arguments[counters(data.opcode) + index]);
        }
    }
}

/// How many operands and arguments of a loop are no carried tensors: the trip count, and the number of the iteration.
fn counters(opcode: Opcode) -> usize {
    usize::from(opcode == Opcode::For)
}

/// Removes from a region what is not used. Returns how many operations and carried tensors.
fn remove(
    graph: &mut Graph,
    region: Region,
    ops: &EntitySet<Op>,
    tensors: &EntitySet<Tensor>,
) -> usize {
    let all = std::mem::take(&mut graph.regions[region].ops);
    let before = all.len();
    let kept: Vec<Op> = all.into_iter().filter(|&op| ops.contains(op)).collect();
    let mut removed = before - kept.len();
    for &op in &kept {
        for inner in graph.ops[op].regions.clone() {
            removed += remove(graph, inner, ops, tensors);
        }
        if !graph.ops[op].regions.is_empty() {
            removed += remove_results(graph, op, tensors);
        }
    }
    graph.regions[region].ops = kept;
    removed
}

/// Removes the results of an operation with regions that are not used, with the carried tensors that they are.
fn remove_results(graph: &mut Graph, op: Op, tensors: &EntitySet<Tensor>) -> usize {
    let data = graph.ops[op].clone();
    let unused: Vec<usize> = (0..data.results.len())
        .filter(|&index| !tensors.contains(data.results[index]))
        .collect();
    let offset = counters(data.opcode);
    for &index in unused.iter().rev() {
        graph.ops[op].results.remove(index);
        match data.opcode {
            Opcode::If => {
                for &region in &data.regions {
                    graph.regions[region].results.remove(index);
                }
            }
            _ => {
                graph.ops[op].operands.remove(offset + index);
                for &region in &data.regions {
                    graph.regions[region].arguments.remove(offset + index);
                }
                let body = data.regions[data.regions.len() - 1];
                graph.regions[body].results.remove(index);
            }
        }
    }
    for (index, result) in graph.ops[op].results.clone().into_iter().enumerate() {
        graph.tensors[result].def = Def::Result(op, index);
    }
    for &region in &data.regions {
        for (index, argument) in graph.regions[region]
            .arguments
            .clone()
            .into_iter()
            .enumerate()
        {
            graph.tensors[argument].def = Def::Argument(region, index);
        }
    }
    unused.len()
}
