//! Rewrites a graph operation by operation.

use crate::graph::{Graph, Op, Region, Tensor};
use rustc_hash::FxHashMap;

/// Goes through all operations in order, those of regions before the operation that holds them. The rule sees an operation with its operands replaced already. If it returns tensors, they replace the
/// results and the operation goes away; operations that it makes stand in its place. Returns how many operations went away.
pub(super) fn rewrite(
    graph: &mut Graph,
    rule: &mut dyn FnMut(&mut Graph, Op) -> Option<Vec<Tensor>>,
) -> usize {
    let mut rewriter = Rewriter {
        replaced: FxHashMap::default(),
        count: 0,
        rule,
    };
    graph.open.clear();
    rewriter.region(graph, graph.body());
    graph.open.push(graph.body());
    rewriter.count
}

struct Rewriter<'r> {
    replaced: FxHashMap<Tensor, Tensor>,
    count: usize,
    rule: &'r mut dyn FnMut(&mut Graph, Op) -> Option<Vec<Tensor>>,
}

impl Rewriter<'_> {
    fn region(&mut self, graph: &mut Graph, region: Region) {
        let ops = std::mem::take(&mut graph.regions[region].ops);
        graph.open.push(region);
        for op in ops {
            self.substitute(&mut graph.ops[op].operands);
            for inner in graph.ops[op].regions.clone() {
                self.region(graph, inner);
            }
            graph.blame = graph.ops[op].location;
            let replacement = (self.rule)(graph, op);
            graph.blame = None;
            match replacement {
                Some(tensors) => {
                    self.count += 1;
                    let results = graph.ops[op].results.iter().copied();
                    self.replaced.extend(results.zip(tensors));
                }
                None => graph.regions[region].ops.push(op),
            }
        }
        graph.open.pop();
        self.substitute(&mut graph.regions[region].results);
    }

    fn substitute(&self, tensors: &mut [Tensor]) {
        for tensor in tensors {
            // A replacement was made of operands that were replaced before, so it is not replaced itself.
            if let Some(&other) = self.replaced.get(tensor) {
                *tensor = other;
            }
        }
    }
}
