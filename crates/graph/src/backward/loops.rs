//! The derivatives of `if` and `for`: regions are computed again, and then gone through backwards.
//!
//! ```text
//! %r = for 3, %a (%i, %x) {       %r, %t = for 3, %a, %zeros (%i, %x, %tape) {        %ā, … = for 3, %r̄, … (%j, %x̄', …) {
//!   %y = sin %x                     %kept = scatter_add %tape, %i, %x                   %i = 2 - %j;  %x = gather %t, %i
//!   yield %y                ─▶      %y = sin %x                                         %y = sin %x
//! }                                 yield %y, %kept                                     %x̄ = %x̄'·cos %x
//!                                 }                                                     yield %x̄, …
//! ```
//!
//! Beside the carried tensors, the loop that goes backwards carries the adjoints of tensors and parameters from outside that the body reads.

use super::{BackwardError, Sweep};
use crate::graph::{Graph, Op, Parameter, Region, RegionData, Tensor};
use crate::opcode::{Effect, Opcode};
use crate::payload::Payload;
use crate::types::{CONDITION, INDEX, TensorType};
use ferrozyme_ir::Scalar;
use rustc_hash::{FxHashMap, FxHashSet};

/// What the regions of an operation do to parameters and with the host.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) read: FxHashSet<Parameter>,
    pub(super) updated: FxHashSet<Parameter>,
    feeds: bool,
}

/// What an operation, with its regions, does to parameters and with the host.
pub(super) fn changes(g: &Graph, op: Op) -> Changes {
    let mut changes = Changes::default();
    let mut visit = |op: Op| match (g.ops[op].opcode, &g.ops[op].payload) {
        (Opcode::Parameter, Payload::Parameter(parameter)) => {
            changes.read.insert(*parameter);
        }
        (Opcode::Update, Payload::Parameter(parameter)) => {
            changes.updated.insert(*parameter);
        }
        (Opcode::Feed, _) => changes.feeds = true,
        _ => {}
    };
    visit(op);
    for &region in &g.ops[op].regions {
        g.for_each_op(region, &mut |_, op| visit(op));
    }
    changes
}

/// Refuses what cannot be computed again.
pub(super) fn check(g: &Graph, op: Op, own: &Changes, sweep: &Sweep) -> Result<(), BackwardError> {
    let data = &g.ops[op];
    let refuse = |message: String| {
        Err(BackwardError {
            operation: data.label(),
            location: data.location,
            message,
        })
    };
    let name = |parameter: &Parameter| &g.parameters[*parameter].name;
    if data.opcode == Opcode::While {
        return refuse("its number of iterations is not known: use `for`".to_owned());
    }
    if own.feeds {
        return refuse("a region that is computed again must not feed: feed before it".to_owned());
    }
    if let Some(parameter) = own.updated.iter().next() {
        let name = name(parameter);
        return refuse(format!(
            "a region that is computed again must not update @{name}: carry the tensor instead"
        ));
    }
    if let (true, Some(parameter)) = (sweep.is_outside, own.read.iter().next()) {
        let name = name(parameter);
        return refuse(format!(
            "@{name} is read in it, and may have changed when the region around the gradient runs again: read it before"
        ));
    }
    if let Some(parameter) = sweep.updated.intersection(&own.read).next() {
        let name = name(parameter);
        return refuse(format!(
            "@{name} is read in it and has been updated since: read it before"
        ));
    }
    Ok(())
}

/// Goes backwards through an `if` or a `for` that was checked.
pub(super) fn backwards(sweep: &mut Sweep, g: &mut Graph, op: Op) -> Result<(), BackwardError> {
    match g.ops[op].opcode {
        Opcode::If => if_backwards(sweep, g, op),
        _ => for_backwards(sweep, g, op),
    }
}

/// What a region reads from outside and gradients are asked for.
struct Outside {
    tensors: Vec<Tensor>,
    parameters: Vec<Parameter>,
}

impl Outside {
    fn of(sweep: &mut Sweep, g: &Graph, op: Op) -> Outside {
        let data = &g.ops[op];
        let mut inside: FxHashSet<Tensor> = FxHashSet::default();
        let mut used: Vec<Tensor> = Vec::new();
        let mut parameters: Vec<Parameter> = changes(g, op).read.into_iter().collect();
        parameters.sort();
        let mut enter = |region: Region, used: &mut Vec<Tensor>| {
            inside.extend(&g.regions[region].arguments);
            used.extend(&g.regions[region].results);
        };
        let mut defined: Vec<Tensor> = Vec::new();
        for &region in &data.regions {
            enter(region, &mut used);
            g.for_each_op(region, &mut |_, op| {
                let data = &g.ops[op];
                used.extend(&data.operands);
                defined.extend(&data.results);
                for &inner in &data.regions {
                    enter(inner, &mut used);
                }
            });
        }
        inside.extend(defined);
        let mut seen = FxHashSet::default();
        used.retain(|tensor| {
            !inside.contains(tensor) && seen.insert(*tensor) && sweep.is_varied(g, *tensor)
        });
        Outside {
            tensors: used,
            parameters,
        }
    }

    fn types(&self, g: &Graph) -> Vec<TensorType> {
        let tensors = self.tensors.iter().map(|&tensor| g.ty(tensor));
        let parameters = self.parameters.iter().map(|&p| &g.parameters[p].ty);
        tensors
            .chain(parameters.filter(|ty| ty.is_float()))
            .cloned()
            .collect()
    }

    /// The adjoints in a sweep, or zeros.
    fn adjoints(&self, sweep: &Sweep, g: &mut Graph) -> Vec<Tensor> {
        let types = self.types(g);
        let tensors = self.tensors.iter().map(|&t| sweep.gradients.of(t));
        let parameters = self.float_parameters(g);
        let parameters = parameters.iter().map(|&p| sweep.gradients.of_parameter(p));
        let adjoints: Vec<Option<Tensor>> = tensors.chain(parameters).collect();
        let adjoints = adjoints.into_iter().zip(types);
        adjoints
            .map(|(adjoint, ty)| adjoint.unwrap_or_else(|| g.constant(ty, 0.0)))
            .collect()
    }

    /// Adds adjoints in the order of [`types`](Self::types) to a sweep.
    fn add(&self, sweep: &mut Sweep, g: &mut Graph, adjoints: &[Tensor]) {
        let (tensors, parameters) = adjoints.split_at(self.tensors.len());
        for (&tensor, &adjoint) in self.tensors.iter().zip(tensors) {
            sweep.add(g, tensor, adjoint);
        }
        for (parameter, &adjoint) in self.float_parameters(g).into_iter().zip(parameters) {
            sweep.add_to_parameter(g, parameter, adjoint);
        }
    }

    fn float_parameters(&self, g: &Graph) -> Vec<Parameter> {
        let is_float = |parameter: &Parameter| g.parameters[*parameter].ty.is_float();
        self.parameters.iter().copied().filter(is_float).collect()
    }
}

/// The adjoint of a tensor in a sweep, or zeros.
fn adjoint_or_zeros(sweep: &Sweep, g: &mut Graph, tensor: Tensor) -> Tensor {
    let adjoint = sweep.gradients.of(tensor);
    adjoint.unwrap_or_else(|| g.constant_like(tensor, 0.0))
}

/// Computes a region again in the one that is being built, and goes backwards through it.
fn again_and_backwards(
    g: &mut Graph,
    region: &RegionData,
    arguments: &[Tensor],
    seeds: &[Option<Tensor>],
) -> Result<Sweep, BackwardError> {
    let start = g.regions[g.current_region()].ops.len();
    let results = g.copy_region(region, arguments);
    let mut sweep = Sweep::new();
    for (&result, &seed) in results.iter().zip(seeds) {
        if let Some(seed) = seed {
            sweep.add(g, result, seed);
        }
    }
    let ops = g.regions[g.current_region()].ops[start..].to_vec();
    sweep.backwards(g, &ops)?;
    Ok(sweep)
}

fn if_backwards(sweep: &mut Sweep, g: &mut Graph, op: Op) -> Result<(), BackwardError> {
    let data = g.ops[op].clone();
    let outside = Outside::of(sweep, g, op);
    let seeds: Vec<Option<Tensor>> = data
        .results
        .iter()
        .map(|&r| sweep.gradients.of(r))
        .collect();
    let mut problem = None;
    let regions = [0, 1].map(|index| {
        g.build_region(&[], |g, _| {
            let region = g.regions[data.regions[index]].clone();
            match again_and_backwards(g, &region, &[], &seeds) {
                Ok(inner) => outside.adjoints(&inner, g),
                Err(error) => {
                    problem = Some(error);
                    Vec::new()
                }
            }
        })
    });
    if let Some(error) = problem {
        return Err(error);
    }
    let adjoints = g.structured(Opcode::If, &data.operands, &regions);
    outside.add(sweep, g, &adjoints);
    Ok(())
}

fn for_backwards(sweep: &mut Sweep, g: &mut Graph, op: Op) -> Result<(), BackwardError> {
    let data = g.ops[op].clone();
    let count = g.splat_of(data.operands[0]);
    let Some(count) = count.map(|count| (count as usize).max(1)) else {
        return Err(BackwardError {
            operation: data.label(),
            location: data.location,
            message: "its trip count must be a constant".to_owned(),
        });
    };
    // As it is before it keeps anything.
    let body = g.regions[data.regions[0]].clone();
    let carried = body.arguments[1..].to_vec();
    let outside = Outside::of(sweep, g, op);
    let tapes = keep_carried(g, op, count);
    let is_float = |g: &Graph, tensor: Tensor| g.ty(tensor).is_float();
    let floats: Vec<usize> = (0..carried.len())
        .filter(|&index| is_float(g, carried[index]))
        .collect();
    let mut initial = vec![data.operands[0]];
    for &index in &floats {
        initial.push(adjoint_or_zeros(sweep, g, data.results[index]));
    }
    for ty in outside.types(g) {
        initial.push(g.constant(ty, 0.0));
    }
    let mut types = vec![TensorType::scalar(INDEX)];
    types.extend(initial[1..].iter().map(|&tensor| g.ty(tensor).clone()));
    let mut problem = None;
    let region = g.build_region(&types, |g, arguments| {
        let last = g.constant(TensorType::scalar(INDEX), (count - 1) as f64);
        let iteration = g.sub(last, arguments[0]);
        let mut again = vec![iteration];
        for (&tape, &argument) in tapes.iter().zip(&carried) {
            let element = g.ty(argument).element;
            let value = g.gather(tape, iteration, 0);
            again.push(g.cast(value, element));
        }
        let (adjoints, sums) = arguments[1..].split_at(floats.len());
        let mut seeds = vec![None; carried.len()];
        for (&index, &adjoint) in floats.iter().zip(adjoints) {
            seeds[index] = Some(adjoint);
        }
        match again_and_backwards(g, &body, &again, &seeds) {
            Ok(inner) => {
                let mut results = Vec::new();
                for &index in &floats {
                    results.push(adjoint_or_zeros(&inner, g, again[index + 1]));
                }
                for (&sum, adjoint) in sums.iter().zip(outside.adjoints(&inner, g)) {
                    results.push(g.add(sum, adjoint));
                }
                results
            }
            Err(error) => {
                problem = Some(error);
                Vec::new()
            }
        }
    });
    if let Some(error) = problem {
        return Err(error);
    }
    let results = g.structured(Opcode::For, &initial, &[region]);
    let (adjoints, sums) = results.split_at(floats.len());
    for (&index, &adjoint) in floats.iter().zip(adjoints) {
        sweep.add(g, data.operands[index + 1], adjoint);
    }
    outside.add(sweep, g, sums);
    Ok(())
}

/// Has a loop keep the carried tensors that each iteration starts with, as floats; returns them, with a first axis for iterations.
fn keep_carried(g: &mut Graph, op: Op, count: usize) -> Vec<Tensor> {
    let body = g.ops[op].regions[0];
    let arguments = g.regions[body].arguments.clone();
    let mut tapes = Vec::new();
    for &argument in &arguments[1..] {
        let mut sizes = vec![count];
        sizes.extend_from_slice(&g.ty(argument).shape);
        let element = match g.ty(argument).element {
            // Doubles represent integers exactly, and can be added to memory.
            INDEX | CONDITION => Scalar::F64,
            float => float,
        };
        let ty = TensorType::new(element, &sizes[..]);
        let (iteration, value) = (arguments[0], argument);
        tapes.push(g.carry(op, ty, |g, tape| {
            let value = g.cast(value, element);
            g.scatter_add(tape, iteration, value, 0)
        }));
    }
    tapes
}

impl Graph {
    /// Appends copies of a region's operations to the region that is being built, with other arguments; returns what the copy yields. What is received is not received again.
    fn copy_region(&mut self, region: &RegionData, arguments: &[Tensor]) -> Vec<Tensor> {
        let own = region.arguments.iter().copied();
        let mut copies = own.zip(arguments.iter().copied()).collect();
        self.copy_operations(region, &mut copies)
    }

    fn copy_operations(
        &mut self,
        region: &RegionData,
        copies: &mut FxHashMap<Tensor, Tensor>,
    ) -> Vec<Tensor> {
        let copy_of = |copies: &FxHashMap<Tensor, Tensor>, tensors: &[Tensor]| -> Vec<Tensor> {
            let copy = |tensor| copies.get(tensor).unwrap_or(tensor);
            tensors.iter().map(copy).copied().collect()
        };
        for &op in &region.ops {
            let data = self.ops[op].clone();
            if data.opcode.row().effect == Effect::Exchange {
                continue;
            }
            let mut regions = Vec::new();
            for &inner in &data.regions {
                let inner = self.regions[inner].clone();
                let types = inner.arguments.iter().map(|&old| self.ty(old).clone());
                let types: Vec<TensorType> = types.collect();
                regions.push(self.build_region(&types, |g, new| {
                    let own = inner.arguments.iter().copied();
                    copies.extend(own.zip(new.iter().copied()));
                    g.copy_operations(&inner, copies)
                }));
            }
            let operands = copy_of(copies, &data.operands);
            let copy = self
                .insert_at(
                    data.location,
                    data.opcode,
                    &operands,
                    data.payload,
                    &regions,
                )
                .expect("the copy of a verified operation has operands of the same types");
            let results = self.ops[copy].results.iter().copied();
            copies.extend(data.results.into_iter().zip(results));
        }
        copy_of(copies, &region.results)
    }
}
