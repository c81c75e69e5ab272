//! When the buffer of a tensor is needed, and which tensors have one buffer (`share.rs`).

use super::{MemoryPlan, Place};
use crate::graph::{Def, Graph, Op, Parameter, Region, Tensor};
use crate::lower::Fusion;
use crate::opcode::Opcode;
use crate::payload::Payload;
use cranelift_entity::{EntitySet, SecondaryMap};

/// Memory for one tensor, or for all that a loop carries at one position.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) tensors: Vec<Tensor>,
    /// Whether it is a temporary of these tensors.
    pub(super) temporary: bool,
    pub(super) size: usize,
    /// The operation that writes it first, as a time.
    pub(super) birth: usize,
    /// The last operation that reads it.
    pub(super) death: usize,
    /// The parameter whose memory serves as well.
    pub(super) parameter: Option<Parameter>,
}

impl Buffer {
    /// Whether both are needed at one time. An operation reads and writes at the same time.
    pub(super) fn lives_with(&self, other: &Buffer) -> bool {
        self.birth <= other.death && other.birth <= self.death
    }

    pub(super) fn assign(&self, plan: &mut MemoryPlan, place: Place) {
        let map = match self.temporary {
            true => &mut plan.temporaries,
            false => &mut plan.places,
        };
        for &tensor in &self.tensors {
            map[tensor] = Some(place);
        }
    }
}

/// What a run does, in its order.
pub(super) struct Lifetimes {
    /// All buffers.
    pub(super) buffers: Vec<Buffer>,
    /// The buffer of each tensor.
    pub(super) buffer_of: SecondaryMap<Tensor, Option<usize>>,
    /// All updates, in order.
    pub(super) updates: Vec<Update>,
    /// All kernels, in order, with their times.
    pub(super) kernels: Vec<(Op, usize)>,
    /// When each operation begins.
    pub(super) begins: SecondaryMap<Op, usize>,
    /// When the run ends.
    pub(super) end: usize,
}

/// An update of a parameter.
#[derive(Clone, Copy)]
pub(super) struct Update {
    pub(super) parameter: Parameter,
    pub(super) at: usize,
    /// The value that the parameter gets.
    pub(super) value: Tensor,
    /// The region that holds the update.
    pub(super) region: Region,
}

/// Finds all buffers of a graph, one for each tensor or carried tensor. A read of a parameter has the parameter's memory if nothing updates it as long as the tensor is needed.
pub(super) fn find_lifetimes(graph: &Graph, fusion: &Fusion) -> Lifetimes {
    let mut times = Times {
        graph,
        fusion,
        now: 0,
        last_use: SecondaryMap::new(),
        updates: Vec::new(),
        kernels: Vec::new(),
        buffers: Vec::new(),
        begins: SecondaryMap::new(),
    };
    times.region(graph.body());
    let Times {
        last_use,
        updates,
        kernels,
        mut buffers,
        begins,
        now: end,
        ..
    } = times;
    let mut buffer_of = SecondaryMap::new();
    for (index, buffer) in buffers.iter_mut().enumerate() {
        for &tensor in buffer.tensors.iter().filter(|_| !buffer.temporary) {
            buffer.death = buffer.death.max(last_use[tensor]);
            buffer_of[tensor] = Some(index);
        }
        // An update may be the last use.
        if let Some(parameter) = buffer.parameter {
            let changed = |update: &Update| {
                update.parameter == parameter
                    && update.at > buffer.birth
                    && update.at < buffer.death
            };
            if updates.iter().any(changed) {
                buffer.parameter = None;
            }
        }
    }
    Lifetimes {
        buffers,
        buffer_of,
        updates,
        kernels,
        begins,
        end,
    }
}

/// A walk through the graph in the order in which operations run. An operation has a time; one with regions has one when it begins and one when it has ended, with those of its regions between.
struct Times<'g> {
    graph: &'g Graph,
    fusion: &'g Fusion,
    now: usize,
    last_use: SecondaryMap<Tensor, usize>,
    updates: Vec<Update>,
    kernels: Vec<(Op, usize)>,
    buffers: Vec<Buffer>,
    begins: SecondaryMap<Op, usize>,
}

impl Times<'_> {
    fn region(&mut self, region: Region) {
        for &op in &self.graph.regions[region].ops {
            self.now += 1;
            self.begins[op] = self.now;
            self.operation(op);
        }
        // What a region yields is copied at its end.
        self.now += 1;
        for &result in &self.graph.regions[region].results {
            self.use_tensor(result);
        }
    }

    fn operation(&mut self, op: Op) {
        let data = &self.graph.ops[op];
        match data.opcode {
            Opcode::For | Opcode::While | Opcode::If => {
                let begin = self.now;
                for &operand in &data.operands {
                    self.use_tensor(operand);
                }
                let first = self.buffers.len();
                let offset = usize::from(data.opcode == Opcode::For);
                for (position, &result) in data.results.iter().enumerate() {
                    let mut tensors = vec![result];
                    if data.opcode != Opcode::If {
                        for &region in &data.regions {
                            tensors.push(self.graph.regions[region].arguments[offset + position]);
                        }
                    }
                    self.new_buffer(tensors, begin);
                }
                if offset == 1 {
                    let counter = self.graph.regions[data.regions[0]].arguments[0];
                    self.new_buffer(vec![counter], begin);
                }
                let carried = first..self.buffers.len();
                for &region in &data.regions {
                    let yields = self.buffers.len();
                    self.temporaries(region);
                    self.region(region);
                    // They are needed for a moment at the end, which is the time that the region ends with.
                    for buffer in &mut self.buffers[yields..] {
                        if buffer.temporary && buffer.death == 0 {
                            (buffer.birth, buffer.death) = (self.now, self.now);
                        }
                    }
                }
                self.now += 1;
                // The loop needs them until it ends, and so it does all that it reads from outside.
                for buffer in &mut self.buffers[carried] {
                    buffer.death = self.now;
                }
                self.use_all_from_outside(op);
            }
            _ => {
                for input in self.fusion.inputs(self.graph, op) {
                    self.use_tensor(input);
                }
                if let (Opcode::Update, Payload::Parameter(parameter)) =
                    (data.opcode, &data.payload)
                {
                    self.updates.push(Update {
                        parameter: *parameter,
                        at: self.now,
                        value: data.operands[0],
                        region: data.region,
                    });
                }
                if data.opcode.row().evaluate.is_some() {
                    self.kernels.push((op, self.now));
                }
                for &member in self.fusion.members(self.graph, &op) {
                    for &result in &self.graph.ops[member].results {
                        self.new_buffer(vec![result], self.now);
                    }
                }
                if let (Opcode::Parameter, Payload::Parameter(parameter)) =
                    (data.opcode, &data.payload)
                {
                    let buffer = self.buffers.last_mut().expect("it was just made");
                    buffer.parameter = Some(*parameter);
                }
            }
        }
    }

    fn new_buffer(&mut self, tensors: Vec<Tensor>, birth: usize) {
        self.buffers.push(Buffer {
            size: self.graph.ty(tensors[0]).bytes(),
            tensors,
            temporary: false,
            birth,
            death: birth,
            parameter: None,
        });
    }

    /// Buffers for arguments of a loop that become other arguments of it.
    fn temporaries(&mut self, region: Region) {
        let data = &self.graph.regions[region];
        for (position, &result) in data.results.iter().enumerate() {
            if self.graph.is_other_argument(region, position, result) {
                self.new_buffer(vec![result], 0);
                let buffer = self.buffers.last_mut().expect("it was just made");
                buffer.temporary = true;
            }
        }
    }

    /// Marks a use now.
    fn use_tensor(&mut self, tensor: Tensor) {
        let last = &mut self.last_use[tensor];
        *last = (*last).max(self.now);
    }

    /// Marks a use of all tensors that the regions of an operation read and do not define.
    fn use_all_from_outside(&mut self, op: Op) {
        let graph = self.graph;
        let mut read = Vec::new();
        let mut inside: EntitySet<Region> = EntitySet::new();
        for &region in &graph.ops[op].regions {
            inside.insert(region);
            read.extend(&graph.regions[region].results);
            graph.for_each_op(region, &mut |_, op| {
                read.extend(self.fusion.inputs(graph, op));
                for &inner in &graph.ops[op].regions {
                    inside.insert(inner);
                    read.extend(&graph.regions[inner].results);
                }
            });
        }
        for tensor in read {
            let home = match graph.tensors[tensor].def {
                Def::Result(op, _) => graph.ops[op].region,
                Def::Argument(region, _) => region,
            };
            if !inside.contains(home) {
                self.use_tensor(tensor);
            }
        }
    }
}
