//! Checks that a graph is well formed. The invariants:
//!
//! 1. Names of parameters differ, and initial values have the parameters' types.
//! 2. An operation has the number of operands, the kind of payload and the number of regions that its row says.
//! 3. Its results have the types that its row infers; that rule checks operands, payload and regions.
//! 4. A tensor is used in the region that defines it or in one nested there, after its definition. What a region yields is visible at its end.
//! 5. Each operation stands in one region, once, and knows which; each region is held by one operation. The body has neither arguments nor results.

use crate::graph::{Def, Graph, Op, Region, Tensor};
use crate::infer::check_literal;
use crate::print::print_op;
use cranelift_entity::EntitySet;
use rustc_hash::FxHashSet;
use std::fmt;

/// Why a graph is not well formed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    /// The operation, as text.
    pub op: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.op {
            Some(op) => write!(f, "{}\n  in `{op}`", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for VerifyError {}

/// Checks all invariants; the first that is violated is the error.
pub fn verify(graph: &Graph) -> Result<(), VerifyError> {
    let mut verifier = Verifier {
        graph,
        visible: EntitySet::new(),
        seen: EntitySet::new(),
        seen_regions: EntitySet::new(),
    };
    let outside = |message: String| VerifyError { op: None, message };
    let mut names = FxHashSet::default();
    for data in graph.parameters.values() {
        let checked = data.ty.check();
        checked
            .and_then(|()| check_literal(&data.initial, &data.ty))
            .map_err(|message| outside(format!("parameter @{}: {message}", data.name)))?;
        if !names.insert(&data.name) {
            return Err(outside(format!("two parameters are called @{}", data.name)));
        }
    }
    let body = &graph.regions[graph.body()];
    if !body.arguments.is_empty() || !body.results.is_empty() {
        return Err(outside("the body has arguments or results".to_owned()));
    }
    verifier.region(graph.body(), None)
}

struct Verifier<'g> {
    graph: &'g Graph,
    visible: EntitySet<Tensor>,
    seen: EntitySet<Op>,
    seen_regions: EntitySet<Region>,
}

impl Verifier<'_> {
    fn region(&mut self, region: Region, holder: Option<Op>) -> Result<(), VerifyError> {
        let graph = self.graph;
        let data = &graph.regions[region];
        let error = |op: Option<Op>, message: &str| VerifyError {
            op: op.map(|op| print_op(graph, op)),
            message: message.to_owned(),
        };
        if !self.seen_regions.insert(region) {
            return Err(error(holder, "two operations hold one region"));
        }
        for (index, &argument) in data.arguments.iter().enumerate() {
            if graph.tensors[argument].def != Def::Argument(region, index) {
                return Err(error(holder, "an argument belongs to another region"));
            }
            self.visible.insert(argument);
        }
        for &op in &data.ops {
            if !self.seen.insert(op) || graph.ops[op].region != region {
                return Err(error(
                    Some(op),
                    "the operation stands in two places, or in another region than it says",
                ));
            }
            self.operation(op)?;
        }
        if !data
            .results
            .iter()
            .all(|&result| self.visible.contains(result))
        {
            return Err(error(
                holder,
                "a tensor that is yielded is not defined there",
            ));
        }
        for &op in &data.ops {
            for &result in &graph.ops[op].results {
                self.visible.remove(result);
            }
        }
        for &argument in &data.arguments {
            self.visible.remove(argument);
        }
        Ok(())
    }

    fn operation(&mut self, op: Op) -> Result<(), VerifyError> {
        let graph = self.graph;
        let data = &graph.ops[op];
        let row = data.opcode.row();
        let error = |message: String| VerifyError {
            op: Some(print_op(graph, op)),
            message,
        };
        if !row.takes(data.operands.len())
            || row.payload != data.payload.kind()
            || row.regions.len() != data.regions.len()
        {
            let message = "the operation has other operands, another payload or other regions";
            return Err(error(message.to_owned()));
        }
        let mut operands = data.operands.iter();
        if !operands.all(|&operand| self.visible.contains(operand)) {
            return Err(error("an operand is not defined here".to_owned()));
        }
        for &region in &data.regions {
            self.region(region, Some(op))?;
        }
        let types = (row.infer)(graph, data).map_err(error)?;
        let has = data.results.iter().map(|&result| graph.ty(result));
        if !types.iter().eq(has) {
            return Err(error(format!("the results must have the types {types:?}")));
        }
        for (index, &result) in data.results.iter().enumerate() {
            if graph.tensors[result].def != Def::Result(op, index) {
                return Err(error("a result belongs to another operation".to_owned()));
            }
            self.visible.insert(result);
        }
        Ok(())
    }
}
