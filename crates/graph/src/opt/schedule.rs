//! Orders operations so that updates of parameters come as soon as their values can be computed: the gradients that they are made of are then needed no longer, and optimisers do not keep all of them.
//!
//! ```text
//! %g1 = contract %x, %dy                       %g1 = contract %x, %dy
//! %dx = contract %dy, %w1                      %dx = contract %dy, %w1
//! %g0 = contract %z, %dx                       %c1 = fmul %g1, %rate;  %v1 = fsub %w1, %c1
//! %c1 = fmul %g1, %rate                        update @w1 %v1
//! %v1 = fsub %w1, %c1                   ─▶     %g0 = contract %z, %dx
//! update @w1 %v1                               …
//! ```
//!
//! What moves are updates and their *arithmetic*: operations without reductions that lead to nothing else. It moves up, to where the last of the tensors is computed that it is made of, and what reads the parameter before has run
//! (not only the operation that takes the tensor, but the kernel that it is part of), so that the update can be in place. Everything else keeps its order.

use crate::fuse::{Repeats, choose_inlined};
use crate::graph::{Graph, Op, Parameter, Region, Tensor};
use crate::lower::Fusion;
use crate::opcode::Opcode;
use crate::payload::Payload;
use rustc_hash::{FxHashMap, FxHashSet};

/// See the file's head. Returns how many operations moved.
pub fn schedule(graph: &mut Graph) -> usize {
    schedule_for(graph, Repeats::PROCESSOR)
}

/// As [`schedule`], for kernels that compute elements so often.
pub(super) fn schedule_for(graph: &mut Graph, repeats: Repeats) -> usize {
    let (fusion, _) = choose_inlined(graph, repeats);
    let mut regions = vec![graph.body()];
    graph.for_each_op(graph.body(), &mut |_, op| {
        regions.extend(graph.ops[op].regions.iter().copied());
    });
    let mut moved = 0;
    for region in regions {
        let before = &graph.regions[region].ops;
        let after = Scheduler::new(graph, &fusion, region).run();
        moved += before.iter().zip(&after).filter(|(a, b)| a != b).count();
        graph.regions[region].ops = after;
    }
    moved
}

/// Updates that share arithmetic, such as those of a parameter and of the optimiser's state for it.
#[derive(Default)]
struct Cluster {
    /// Positions of the updates, ascending.
    updates: Vec<usize>,
    /// How many operations must run before.
    missing: usize,
}

struct Scheduler<'g> {
    graph: &'g Graph,
    ops: &'g [Op],
    position: FxHashMap<Op, usize>,
    /// For each operation, whether it is arithmetic of updates.
    is_arithmetic: Vec<bool>,
    /// For each operation, the parameters whose memory it or its kernel reads, and those that it updates.
    reads: Vec<Vec<Parameter>>,
    writes: Vec<Vec<Parameter>>,
    clusters: Vec<Cluster>,
    /// For each operation, the clusters that wait for it.
    waiting: Vec<Vec<usize>>,
    done: Vec<bool>,
    order: Vec<Op>,
}

impl<'g> Scheduler<'g> {
    fn new(graph: &'g Graph, fusion: &Fusion, region: Region) -> Scheduler<'g> {
        let ops = &graph.regions[region].ops[..];
        let mut scheduler = Scheduler {
            graph,
            ops,
            position: ops.iter().enumerate().map(|(at, &op)| (op, at)).collect(),
            is_arithmetic: vec![false; ops.len()],
            reads: vec![Vec::new(); ops.len()],
            writes: vec![Vec::new(); ops.len()],
            clusters: Vec::new(),
            waiting: vec![Vec::new(); ops.len()],
            done: vec![false; ops.len()],
            order: Vec::with_capacity(ops.len()),
        };
        for (at, &op) in ops.iter().enumerate() {
            scheduler.find_states(fusion, at, op);
        }
        scheduler.find_arithmetic(region);
        scheduler.find_clusters();
        scheduler
    }

    /// Finds the parameters whose memory an operation may read or write when it runs, with the regions in it.
    fn find_states(&mut self, fusion: &Fusion, at: usize, op: Op) {
        let graph = self.graph;
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut visit = |op: Op, inside: bool| {
            match (&graph.ops[op].payload, graph.ops[op].opcode) {
                (Payload::Parameter(parameter), Opcode::Update) => writes.push(*parameter),
                (Payload::Parameter(parameter), _) if inside => reads.push(*parameter),
                _ => {}
            }
            for input in fusion.inputs(graph, op) {
                if let Some(read) = parameter_of(graph, input) {
                    reads.push(read);
                }
            }
        };
        visit(op, false);
        for &region in &graph.ops[op].regions {
            graph.for_each_op(region, &mut |_, op| visit(op, true));
        }
        // What regions yield is copied when they end.
        for &region in &graph.ops[op].regions {
            let results = graph.regions[region].results.iter();
            reads.extend(results.filter_map(|&result| parameter_of(graph, result)));
        }
        self.reads[at] = reads;
        self.writes[at] = writes;
    }

    /// Finds the operations that lead to updates in this region only, element by element.
    fn find_arithmetic(&mut self, region: Region) {
        let graph = self.graph;
        // Tensors that something else uses.
        let mut used: FxHashSet<Tensor> = graph.regions[region].results.iter().copied().collect();
        for (at, &op) in self.ops.iter().enumerate().rev() {
            let data = &graph.ops[op];
            let is_pure = matches!(
                data.opcode,
                Opcode::Elementwise | Opcode::Cast | Opcode::Broadcast | Opcode::Reshape
            );
            let leads_on = data.opcode == Opcode::Update
                || (is_pure && data.results.iter().all(|result| !used.contains(result)));
            if leads_on {
                self.is_arithmetic[at] = true;
                continue;
            }
            used.extend(&data.operands);
            for &inner in &data.regions {
                used.extend(&graph.regions[inner].results);
                graph.for_each_op(inner, &mut |_, op| {
                    used.extend(&graph.ops[op].operands);
                    for &inner in &graph.ops[op].regions {
                        used.extend(&graph.regions[inner].results);
                    }
                });
            }
        }
    }

    /// For each operation, whether it is arithmetic on tensors of several elements that are no constants and not the same number everywhere: what only updates of one parameter and its states share.
    fn find_individual(&self) -> Vec<bool> {
        let graph = self.graph;
        let mut is_individual = vec![false; self.ops.len()];
        for (at, &op) in self.ops.iter().enumerate() {
            let own = |&operand: &Tensor| {
                let is_large = graph.ty(operand).shape.count() > 1;
                let inside = graph.def_op(operand).and_then(|op| self.position.get(&op));
                is_large
                    && inside.is_none_or(|&inner| {
                        let opcode = graph.ops[self.ops[inner]].opcode;
                        match self.is_arithmetic[inner] {
                            true => is_individual[inner],
                            false => !matches!(opcode, Opcode::Constant | Opcode::Iota),
                        }
                    })
            };
            is_individual[at] = self.is_arithmetic[at] && graph.ops[op].operands.iter().any(own);
        }
        is_individual
    }

    /// Joins updates that share arithmetic of their own, and counts what each cluster waits for.
    fn find_clusters(&mut self) {
        let updates: Vec<usize> = (0..self.ops.len())
            .filter(|&at| self.graph.ops[self.ops[at]].opcode == Opcode::Update)
            .collect();
        let is_individual = self.find_individual();
        let mut cluster_of: FxHashMap<usize, usize> = FxHashMap::default();
        for &update in &updates {
            let mut shared = self.needed(update);
            shared.retain(|&at| is_individual[at]);
            let mut known: Vec<usize> = shared
                .iter()
                .filter_map(|at| cluster_of.get(at).copied())
                .collect();
            known.sort_unstable();
            known.dedup();
            let cluster = known.first().copied().unwrap_or_else(|| {
                self.clusters.push(Cluster::default());
                self.clusters.len() - 1
            });
            // This update joins the clusters with which it shares something.
            for &other in known.iter().skip(1) {
                let updates = std::mem::take(&mut self.clusters[other].updates);
                self.clusters[cluster].updates.extend(updates);
                let joined = cluster_of.values_mut().filter(|number| **number == other);
                joined.for_each(|number| *number = cluster);
            }
            let updates = &mut self.clusters[cluster].updates;
            updates.push(update);
            updates.sort_unstable();
            cluster_of.extend(shared.into_iter().map(|at| (at, cluster)));
        }
        for cluster in 0..self.clusters.len() {
            let Some(before) = self.prerequisites(cluster) else {
                self.clusters[cluster].missing = usize::MAX;
                continue;
            };
            self.clusters[cluster].missing = before.len();
            for at in before {
                self.waiting[at].push(cluster);
            }
        }
    }

    /// The arithmetic that an update is made of, with the reads of parameters and the constants in it.
    fn needed(&self, update: usize) -> Vec<usize> {
        let mut needed = Vec::new();
        let mut waiting = vec![update];
        while let Some(at) = waiting.pop() {
            for operand in &self.graph.ops[self.ops[at]].operands {
                let op = self.graph.def_op(*operand);
                let at = op.and_then(|op| self.position.get(&op).copied());
                if let Some(at) = at
                    && self.is_movable(at)
                    && !needed.contains(&at)
                {
                    needed.push(at);
                    waiting.push(at);
                }
            }
        }
        needed.sort_unstable();
        needed
    }

    fn is_movable(&self, at: usize) -> bool {
        let opcode = self.graph.ops[self.ops[at]].opcode;
        self.is_arithmetic[at]
            || matches!(opcode, Opcode::Parameter | Opcode::Constant | Opcode::Iota)
    }

    /// What must run before a cluster: what computes the tensors that it is made of, and all that stands before and reads or writes the same parameters. None if the cluster must stay
    /// where it is because a state is written in it more than once, or written and then read.
    fn prerequisites(&self, cluster: usize) -> Option<FxHashSet<usize>> {
        let mut before = FxHashSet::default();
        let updates = &self.clusters[cluster].updates;
        let mut own: FxHashSet<usize> = updates.iter().copied().collect();
        for &update in updates {
            own.extend(self.needed(update));
        }
        for &at in &own {
            let touched = self.writes[at].iter().copied().chain(self.read_at(at));
            for parameter in touched {
                let mut earlier = updates.iter().filter(|&&update| update < at);
                if earlier.any(|&update| self.writes[update].contains(&parameter)) {
                    return None;
                }
            }
            for &operand in &self.graph.ops[self.ops[at]].operands {
                let op = self.graph.def_op(operand);
                before.extend(op.and_then(|op| self.position.get(&op).copied()));
            }
            for parameter in &self.writes[at] {
                let touches = |&other: &usize| {
                    self.reads[other].contains(parameter) || self.writes[other].contains(parameter)
                };
                before.extend((0..at).filter(touches));
            }
            if let Some(parameter) = self.read_at(at) {
                before.extend((0..at).filter(|&other| self.writes[other].contains(&parameter)));
            }
        }
        before.retain(|at| !own.contains(at));
        Some(before)
    }

    /// The parameter that an operation reads, if it does nothing else.
    fn read_at(&self, at: usize) -> Option<Parameter> {
        match (
            &self.graph.ops[self.ops[at]].payload,
            self.graph.ops[self.ops[at]].opcode,
        ) {
            (Payload::Parameter(parameter), Opcode::Parameter) => Some(*parameter),
            _ => None,
        }
    }

    fn run(mut self) -> Vec<Op> {
        for cluster in 0..self.clusters.len() {
            if self.clusters[cluster].missing == 0 {
                self.emit_cluster(cluster);
            }
        }
        for at in 0..self.ops.len() {
            let is_update = self.graph.ops[self.ops[at]].opcode == Opcode::Update;
            if self.is_arithmetic[at] && !is_update {
                continue;
            }
            if is_update && !self.done[at] {
                // Something before it waits for it: it stays where it is.
                for needed in self.needed(at) {
                    self.emit(needed);
                }
            }
            self.emit(at);
        }
        // What leads nowhere.
        for at in 0..self.ops.len() {
            self.emit(at);
        }
        self.order
    }

    fn emit(&mut self, at: usize) {
        if std::mem::replace(&mut self.done[at], true) {
            return;
        }
        self.order.push(self.ops[at]);
        for cluster in std::mem::take(&mut self.waiting[at]) {
            self.clusters[cluster].missing -= 1;
            if self.clusters[cluster].missing == 0 {
                self.emit_cluster(cluster);
            }
        }
    }

    /// First all that is computed, then the updates, each after the reads of its parameter that stand before it.
    fn emit_cluster(&mut self, cluster: usize) {
        let updates = self.clusters[cluster].updates.clone();
        let needed: FxHashSet<usize> = updates
            .iter()
            .filter(|&&update| !self.done[update])
            .flat_map(|&update| self.needed(update))
            .collect();
        let mut needed: Vec<usize> = needed.into_iter().collect();
        needed.sort_unstable();
        for at in needed {
            self.emit(at);
        }
        for update in updates {
            let parameters = self.writes[update].clone();
            for at in 0..update {
                if self
                    .read_at(at)
                    .is_some_and(|read| parameters.contains(&read))
                {
                    self.emit(at);
                }
            }
            self.emit(update);
        }
    }
}

/// The parameter that a tensor is the value of.
fn parameter_of(graph: &Graph, tensor: Tensor) -> Option<Parameter> {
    let data = &graph.ops[graph.def_op(tensor)?];
    match (&data.payload, data.opcode) {
        (Payload::Parameter(parameter), Opcode::Parameter) => Some(*parameter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::print::print;

    #[test]
    fn an_ordered_graph_stays_as_it_is() {
        let text = r#"
            parameter @w : f32[4] = 1.0
            parameter @v : f32[4] = 1.0
            graph {
              %w = parameter @w : f32[4]
              %v = parameter @v : f32[4]
              %a = exp %w : f32[4]
              %b = reduce sum %a [0] : f32[]
              %c = broadcast %b [0: 4] : f32[4]
              %d = exp %v : f32[4]
              %e = reduce max %d [0] : f32[]
              receive "e" %e
              %f = fadd %w, %c : f32[4]
              update @w %f
            }"#;
        let mut graph = parse(text).expect("it is a graph");
        assert!(schedule(&mut graph) > 0);
        let once = print(&graph);
        assert_eq!(schedule(&mut graph), 0, "{once}");
        let at = |what: &str| once.find(what).expect("it is there");
        assert!(at("update") < at("%d = exp"), "{once}");
    }
}
