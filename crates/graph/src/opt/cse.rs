//! Common subexpressions: an operation that computes what another one above it computed goes away.
//!
//! Reads of a parameter are the same as long as nothing updates it in between.

use super::rewrite::rewrite;
use crate::graph::{Graph, Op, Parameter, Region, Tensor};
use crate::opcode::{Effect, Opcode};
use crate::payload::Payload;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What an operation computes: two with the same key have the same results. The number is that of the state that is read.
type Key = (Opcode, SmallVec<[Tensor; 3]>, Payload, u64);

/// See the file's head.
pub fn cse(graph: &mut Graph) -> usize {
    let states = number_states(graph);
    // What was computed, and in which region. A region whose operations are not visible here has ended.
    let mut known: FxHashMap<Key, (Vec<Tensor>, Region)> = FxHashMap::default();
    rewrite(graph, &mut |graph, op| {
        let data = &graph.ops[op];
        let state = match data.opcode.row().effect {
            Effect::Pure | Effect::Partial => 0,
            Effect::Read => states[&op],
            _ => return None,
        };
        let key = (
            data.opcode,
            data.operands.clone(),
            data.payload.clone(),
            state,
        );
        match known.get(&key) {
            Some((results, region)) if graph.open.contains(region) => Some(results.clone()),
            _ => {
                known.insert(key, (data.results.to_vec(), data.region));
                None
            }
        }
    })
}

/// For each read, the number of the state that it reads. A region may start in a state that it leaves behind itself, so what a region updates has a new state when it begins and when it ends.
fn number_states(graph: &Graph) -> FxHashMap<Op, u64> {
    let mut states = States {
        current: FxHashMap::default(),
        next: 1,
        reads: FxHashMap::default(),
    };
    states.region(graph, graph.body());
    states.reads
}

struct States {
    current: FxHashMap<Parameter, u64>,
    next: u64,
    reads: FxHashMap<Op, u64>,
}

impl States {
    fn region(&mut self, graph: &Graph, region: Region) {
        for &op in &graph.regions[region].ops {
            let data = &graph.ops[op];
            match (data.opcode, &data.payload) {
                (Opcode::Parameter, Payload::Parameter(parameter)) => {
                    let state = self.current.get(parameter).copied().unwrap_or(0);
                    self.reads.insert(op, state);
                }
                (Opcode::Update, Payload::Parameter(parameter)) => self.change(*parameter),
                _ => {}
            }
            for &inner in &data.regions {
                self.change_all(graph, op);
                self.region(graph, inner);
            }
            self.change_all(graph, op);
        }
    }

    /// All parameters that the regions of an operation update have new states.
    fn change_all(&mut self, graph: &Graph, op: Op) {
        for &inner in &graph.ops[op].regions {
            graph.for_each_op(inner, &mut |_, op| {
                if let (Opcode::Update, Payload::Parameter(parameter)) =
                    (graph.ops[op].opcode, &graph.ops[op].payload)
                {
                    self.change(*parameter);
                }
            });
        }
    }

    fn change(&mut self, parameter: Parameter) {
        self.current.insert(parameter, self.next);
        self.next += 1;
    }
}
