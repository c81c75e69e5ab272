//! When the buffer of a tensor is needed.

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
    temporary: bool,
    pub(super) size: usize,
    /// The operation that writes it first, as a time.
    pub(super) birth: usize,
    /// The last operation that reads it.
    death: usize,
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

/// All buffers of a graph.
pub(super) fn find_buffers(graph: &Graph, fusion: &Fusion) -> Vec<Buffer> {
    let mut times = Times {
        graph,
        fusion,
        now: 0,
        last_use: SecondaryMap::new(),
        updates: Vec::new(),
        buffers: Vec::new(),
    };
    times.region(graph.body());
    let Times {
        last_use,
        updates,
        mut buffers,
        ..
    } = times;
    for buffer in &mut buffers {
        for &tensor in buffer.tensors.iter().filter(|_| !buffer.temporary) {
            buffer.death = buffer.death.max(last_use[tensor]);
        }
        // The state that was read is still there at the last use: nothing updates it before. An update may be that use.
        if let Some(parameter) = buffer.parameter {
            let changed = |&(updated, at): &(Parameter, usize)| {
                updated == parameter && at > buffer.birth && at < buffer.death
            };
            if updates.iter().any(changed) {
                buffer.parameter = None;
            }
        }
    }
    buffers
}

/// A walk through the graph in the order in which operations run. An operation has a time; one with regions has one when it begins and one when it has ended, with those of its regions between.
struct Times<'g> {
    graph: &'g Graph,
    fusion: &'g Fusion,
    now: usize,
    last_use: SecondaryMap<Tensor, usize>,
    /// Which parameters are updated when.
    updates: Vec<(Parameter, usize)>,
    buffers: Vec<Buffer>,
}

impl Times<'_> {
    fn region(&mut self, region: Region) {
        for &op in &self.graph.regions[region].ops {
            self.now += 1;
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
                let mut inputs = Vec::new();
                self.inputs(op, &mut inputs);
                for input in inputs {
                    self.use_tensor(input);
                }
                if let (Opcode::Update, Payload::Parameter(parameter)) =
                    (data.opcode, &data.payload)
                {
                    self.updates.push((*parameter, self.now));
                }
                for &result in &data.results {
                    if !self.fusion.inlined.contains(result) {
                        self.new_buffer(vec![result], self.now);
                        let buffer = self.buffers.last_mut().expect("it was just made");
                        if let (Opcode::Parameter, Payload::Parameter(parameter)) =
                            (data.opcode, &data.payload)
                        {
                            buffer.parameter = Some(*parameter);
                        }
                    }
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

    /// The tensors with buffers that an operation without regions reads.
    fn inputs(&self, op: Op, inputs: &mut Vec<Tensor>) {
        for &operand in &self.graph.ops[op].operands {
            match self.graph.def_op(operand) {
                Some(inner) if self.fusion.inlined.contains(operand) => self.inputs(inner, inputs),
                _ => inputs.push(operand),
            }
        }
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
                self.inputs(op, &mut read);
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
