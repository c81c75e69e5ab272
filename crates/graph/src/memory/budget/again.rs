//! Which values could be computed again behind a time, and how the graph changes then.

use super::super::lifetimes::{Buffer, Lifetimes};
use super::work;
use crate::graph::{Def, Graph, Op, OpData, Region, Tensor, TensorData};
use crate::lower::Fusion;
use crate::opcode::Opcode;
use crate::payload::Payload;
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A value that waits at a time when much memory is needed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    tensor: Tensor,
    /// What reads it later: operations, each in its region.
    readers: Vec<Op>,
    /// The operation of its region that it is computed before.
    before: Op,
    /// The tensors that are computed again for it, itself included, in any order.
    again: Vec<Tensor>,
    /// What these are computed from.
    inputs: Vec<Tensor>,
    /// Whether nobody reads it before, so that it is computed later and not twice.
    pub(super) is_only_later: bool,
    /// How many bytes are free then.
    pub(super) bytes: usize,
    /// What that costs.
    cost: f64,
}

impl Candidate {
    /// Whether it computes again what another one is, or computes with it.
    pub(super) fn touches(&self, other: &Candidate) -> bool {
        self.again.contains(&other.tensor) || self.inputs.contains(&other.tensor)
    }
}

/// How many values are computed again one for the other, at most.
pub(super) const DEEPEST: usize = 8;

/// The values that wait at a time, those first that cost least per byte. For each, others are computed again to a depth of `deepest`.
pub(super) fn candidates(
    graph: &Graph,
    fusion: &Fusion,
    lifetimes: &Lifetimes,
    time: usize,
    deepest: usize,
) -> Vec<Candidate> {
    let finder = Finder {
        graph,
        fusion,
        lifetimes,
        places: places(graph),
        readers: readers(graph, fusion),
        time,
        deepest,
    };
    let waiting = lifetimes
        .buffers
        .iter()
        .filter(|buffer| buffer.parameter.is_none() && buffer.birth < time && time < buffer.death);
    let mut all: Vec<Candidate> = waiting
        .filter_map(|buffer| finder.candidate(buffer))
        .collect();
    let price = |candidate: &Candidate| candidate.cost / candidate.bytes as f64;
    all.sort_by(|a, b| {
        let order = price(a).total_cmp(&price(b));
        order
            .then(b.bytes.cmp(&a.bytes))
            .then(a.tensor.cmp(&b.tensor))
    });
    all
}

/// Where an operation stands: its region and its position there, and the operation that holds the region.
#[derive(Clone, Copy, Default)]
struct Place {
    position: usize,
    holder: Option<Op>,
}

fn places(graph: &Graph) -> SecondaryMap<Op, Place> {
    fn walk(
        graph: &Graph,
        region: Region,
        holder: Option<Op>,
        places: &mut SecondaryMap<Op, Place>,
    ) {
        for (position, &op) in graph.regions[region].ops.iter().enumerate() {
            places[op] = Place { position, holder };
            for &inner in &graph.ops[op].regions {
                walk(graph, inner, Some(op), places);
            }
        }
    }
    let mut places = SecondaryMap::new();
    walk(graph, graph.body(), None, &mut places);
    places
}

/// Who reads a tensor from memory: the operation that does, through inlined ones or by itself, and the one where its kernel runs. None where a region yields it.
#[derive(Clone, Default)]
struct Readers {
    ops: Vec<(Op, Op)>,
    is_yielded: bool,
}

fn readers(graph: &Graph, fusion: &Fusion) -> SecondaryMap<Tensor, Readers> {
    let mut readers: SecondaryMap<Tensor, Readers> = SecondaryMap::new();
    graph.for_each_op(graph.body(), &mut |_, op| {
        let members = fusion.members(graph, &op);
        for &member in members {
            for input in inputs(graph, fusion, member) {
                readers[input].ops.push((member, op));
            }
        }
        for &inner in &graph.ops[op].regions {
            for &result in &graph.regions[inner].results {
                readers[result].is_yielded = true;
            }
        }
    });
    readers
}

/// The tensors with buffers that one operation reads, by itself or through inlined ones.
fn inputs(graph: &Graph, fusion: &Fusion, op: Op) -> Vec<Tensor> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut waiting: Vec<Tensor> = graph.ops[op].operands.to_vec();
    while let Some(tensor) = waiting.pop() {
        if seen.contains(&tensor) {
            continue;
        }
        seen.push(tensor);
        match graph.def_op(tensor) {
            Some(inner) if fusion.inlined.contains(tensor) => {
                waiting.extend(&graph.ops[inner].operands);
            }
            _ => found.push(tensor),
        }
    }
    found
}

struct Finder<'f> {
    graph: &'f Graph,
    fusion: &'f Fusion,
    lifetimes: &'f Lifetimes,
    places: SecondaryMap<Op, Place>,
    readers: SecondaryMap<Tensor, Readers>,
    time: usize,
    deepest: usize,
}

impl Finder<'_> {
    fn buffer(&self, tensor: Tensor) -> Option<&Buffer> {
        Some(&self.lifetimes.buffers[self.lifetimes.buffer_of[tensor]?])
    }

    /// The position in a region of the operation that is another one or holds it.
    fn position_in(&self, region: Region, mut op: Op) -> Option<usize> {
        loop {
            if self.graph.ops[op].region == region {
                return Some(self.places[op].position);
            }
            op = self.places[op].holder?;
        }
    }

    fn candidate(&self, buffer: &Buffer) -> Option<Candidate> {
        let &[tensor] = &buffer.tensors[..] else {
            return None;
        };
        let op = self.graph.def_op(tensor)?;
        let data = &self.graph.ops[op];
        if buffer.temporary || data.opcode.row().evaluate.is_none() {
            return None;
        }
        let region = data.region;
        let ops = &self.graph.regions[region].ops;
        // The operation of the region that runs at the time.
        let busy = ops.partition_point(|&op| self.lifetimes.begins[op] <= self.time);
        let busy = busy.checked_sub(1)?;
        let all = &self.readers[tensor];
        if all.is_yielded {
            return None;
        }
        let mut readers = Vec::new();
        let mut first = usize::MAX;
        for &(reader, kernel) in &all.ops {
            let runs = self.position_in(region, kernel)?;
            if runs < busy {
                continue;
            }
            let stands = self.position_in(region, reader)?;
            // What runs now needs it; what stands before but runs later would have to move.
            if runs == busy || stands <= busy {
                return None;
            }
            first = first.min(stands);
            readers.push(reader);
        }
        let &before = ops.get(first)?;
        let mut again = Vec::new();
        let mut kept = 0;
        self.needed(
            tensor,
            buffer.size,
            before,
            region,
            &mut again,
            &mut kept,
            0,
        )?;
        let bytes = buffer.size.checked_sub(kept).filter(|&bytes| bytes > 0)?;
        let cost = again.iter().map(|&tensor| self.cost(tensor)).sum();
        Some(Candidate {
            tensor,
            is_only_later: again.len() == 1 && readers.len() == all.ops.len(),
            readers,
            before,
            inputs: self.inputs_of(&again),
            again,
            bytes,
            cost,
        })
    }

    /// What tensors are computed from that are computed again.
    fn inputs_of(&self, again: &[Tensor]) -> Vec<Tensor> {
        let ops = again.iter().filter_map(|&tensor| self.graph.def_op(tensor));
        ops.flat_map(|op| inputs(self.graph, self.fusion, op))
            .collect()
    }

    /// Finds what must be computed again to have a tensor before an operation. Counts the bytes of inputs that are kept for it and would be free at the time otherwise.
    #[allow(clippy::too_many_arguments, reason = "a walk with what it finds")]
    fn needed(
        &self,
        tensor: Tensor,
        worth: usize,
        before: Op,
        region: Region,
        again: &mut Vec<Tensor>,
        kept: &mut usize,
        depth: usize,
    ) -> Option<()> {
        if again.contains(&tensor) {
            return Some(());
        }
        again.push(tensor);
        for input in inputs(self.graph, self.fusion, self.graph.def_op(tensor)?) {
            if self.is_there(input, before, region) {
                continue;
            }
            let size = self.graph.ty(input).bytes();
            let op = self.graph.def_op(input)?;
            let data = &self.graph.ops[op];
            let is_kernel = data.opcode.row().evaluate.is_some() && data.region == region;
            if is_kernel && depth < self.deepest && 2 * size >= worth {
                self.needed(input, worth, before, region, again, kept, depth + 1)?;
                continue;
            }
            // It is kept longer.
            *kept += size;
        }
        Some(())
    }

    /// Whether a tensor is in memory before an operation in any case.
    fn is_there(&self, tensor: Tensor, before: Op, region: Region) -> bool {
        let graph = self.graph;
        let Def::Result(op, _) = graph.tensors[tensor].def else {
            return true;
        };
        let data = &graph.ops[op];
        if data.region != region {
            return true;
        }
        let now = self.lifetimes.begins[before];
        if let (Opcode::Parameter, Payload::Parameter(parameter)) = (data.opcode, &data.payload) {
            let start = self.lifetimes.begins[op];
            let mut updates = self.lifetimes.updates.iter();
            return !updates.any(|update| {
                update.parameter == *parameter && update.at > start && update.at < now
            });
        }
        self.buffer(tensor)
            .is_some_and(|buffer| buffer.death >= now)
    }

    /// What it costs to compute a tensor, with what is inlined into it.
    fn cost(&self, tensor: Tensor) -> f64 {
        let Some(op) = self.graph.def_op(tensor) else {
            return 0.0;
        };
        let inlined = self.graph.ops[op].operands.iter().copied();
        let inlined = inlined.filter(|&operand| self.fusion.inlined.contains(operand));
        work(self.graph, op) + inlined.map(|operand| self.cost(operand)).sum::<f64>()
    }
}

/// Changes a graph so that a value is computed again for those who read it late. Returns how many values are.
pub(super) fn compute_again(graph: &mut Graph, fusion: &Fusion, candidate: &Candidate) -> usize {
    let mut copier = Copier {
        graph,
        fusion,
        again: &candidate.again,
        before: candidate.before,
        copies: FxHashMap::default(),
    };
    let new = copier.copy(candidate.tensor);
    for &reader in &candidate.readers {
        copier.before = reader;
        // Inlined operations between both are part of the reader's kernel.
        copier.copies = FxHashMap::from_iter([(candidate.tensor, new)]);
        let operands = copier.graph.ops[reader].operands.clone();
        let operands = operands
            .into_iter()
            .map(|operand| copier.redirected(operand));
        let operands: SmallVec<[Tensor; 3]> = operands.collect();
        copier.graph.ops[reader].operands = operands;
    }
    candidate.again.len()
}

struct Copier<'g> {
    graph: &'g mut Graph,
    fusion: &'g Fusion,
    again: &'g [Tensor],
    /// Copies stand before this operation.
    before: Op,
    copies: FxHashMap<Tensor, Tensor>,
}

impl Copier<'_> {
    /// A tensor, or a copy if it is to be computed again, with copies of what is inlined.
    fn copy(&mut self, tensor: Tensor) -> Tensor {
        if let Some(&known) = self.copies.get(&tensor) {
            return known;
        }
        let Some(op) = self.graph.def_op(tensor) else {
            return tensor;
        };
        if !self.again.contains(&tensor) && !self.fusion.inlined.contains(tensor) {
            return tensor;
        }
        let operands = self.graph.ops[op].operands.clone();
        let operands = operands
            .into_iter()
            .map(|operand| self.copy(operand))
            .collect();
        self.insert(op, operands, tensor)
    }

    /// A tensor or its copy; if one with a copy is read for it through what is inlined, a copy that reads that.
    fn redirected(&mut self, tensor: Tensor) -> Tensor {
        if let Some(&known) = self.copies.get(&tensor) {
            return known;
        }
        let Some(op) = self
            .graph
            .def_op(tensor)
            .filter(|_| self.fusion.inlined.contains(tensor))
        else {
            return tensor;
        };
        let operands = self.graph.ops[op].operands.clone();
        let redirected = operands.iter().map(|&operand| self.redirected(operand));
        let redirected: SmallVec<[Tensor; 3]> = redirected.collect();
        match redirected == operands {
            true => tensor,
            false => self.insert(op, redirected, tensor),
        }
    }

    /// A copy of an operation with other operands.
    fn insert(&mut self, op: Op, operands: SmallVec<[Tensor; 3]>, tensor: Tensor) -> Tensor {
        let region = self.graph.ops[self.before].region;
        let copy = self.graph.ops.next_key();
        let ty = self.graph.ty(tensor).clone();
        let result = self.graph.tensors.push(TensorData {
            ty,
            def: Def::Result(copy, 0),
            name: None,
        });
        let data = &self.graph.ops[op];
        let data = OpData {
            operands,
            results: SmallVec::from_slice(&[result]),
            region,
            ..data.clone()
        };
        self.graph.ops.push(data);
        let ops = &mut self.graph.regions[region].ops;
        let at = ops.iter().position(|&other| other == self.before);
        ops.insert(at.expect("the operation stands in its region"), copy);
        self.copies.insert(tensor, result);
        result
    }
}
