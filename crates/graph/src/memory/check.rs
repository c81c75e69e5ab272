//! Checks a plan by following the run: who wrote a byte last must be the tensor that is read.

use super::{MemoryPlan, Place};
use crate::graph::{Graph, Op, Parameter, Region, Tensor};
use crate::lower::Fusion;
use crate::opcode::Opcode;
use crate::payload::Payload;
use cranelift_entity::SecondaryMap;

/// Follows the run of a graph, with two iterations of each loop and both branches; the error names a tensor that is overwritten while it is needed.
pub fn check_memory(graph: &Graph, fusion: &Fusion, plan: &MemoryPlan) -> Result<(), String> {
    let mut checker = Checker {
        graph,
        fusion,
        plan,
        owners: Vec::new(),
        carried: SecondaryMap::new(),
        states: SecondaryMap::new(),
        pending: SecondaryMap::new(),
        read_states: SecondaryMap::new(),
    };
    checker.region(graph.body())
}

/// Who wrote some bytes of the arena.
struct Owner {
    start: usize,
    end: usize,
    tensor: Tensor,
    temporary: bool,
}

struct Checker<'g> {
    graph: &'g Graph,
    fusion: &'g Fusion,
    plan: &'g MemoryPlan,
    owners: Vec<Owner>,
    /// For arguments of loops, the result that they share memory with.
    carried: SecondaryMap<Tensor, Option<Tensor>>,
    /// How often parameters were updated.
    states: SecondaryMap<Parameter, u32>,
    /// The value that a parameter will be updated with, if it is in its memory already.
    pending: SecondaryMap<Parameter, Option<Tensor>>,
    /// The state that a tensor in a parameter's memory was read in.
    read_states: SecondaryMap<Tensor, u32>,
}

impl Checker<'_> {
    fn owner_of(&self, tensor: Tensor) -> Tensor {
        self.carried[tensor].unwrap_or(tensor)
    }

    fn write(&mut self, tensor: Tensor, temporary: bool) -> Result<(), String> {
        let places = if temporary {
            &self.plan.temporaries
        } else {
            &self.plan.places
        };
        let size = self.graph.ty(tensor).bytes();
        match places[tensor] {
            Some(Place::Arena(start)) => {
                let end = start + size;
                if end > self.plan.arena {
                    return Err(format!("{tensor} lies outside of the arena"));
                }
                self.owners
                    .retain(|owner| owner.end <= start || owner.start >= end);
                let tensor = self.owner_of(tensor);
                self.owners.push(Owner {
                    start,
                    end,
                    tensor,
                    temporary,
                });
                Ok(())
            }
            Some(Place::Parameter(parameter)) => {
                self.read_states[tensor] = self.states[parameter];
                Ok(())
            }
            None => Err(format!("{tensor} has no place")),
        }
    }

    fn read(&self, tensor: Tensor, temporary: bool) -> Result<(), String> {
        let places = if temporary {
            &self.plan.temporaries
        } else {
            &self.plan.places
        };
        let owner = self.owner_of(tensor);
        let is_there = match places[tensor] {
            Some(Place::Arena(start)) => self.owners.iter().any(|other| {
                other.start == start && other.tensor == owner && other.temporary == temporary
            }),
            Some(Place::Parameter(parameter)) => self.read_states[tensor] == self.states[parameter],
            None => false,
        };
        match is_there {
            true => Ok(()),
            false => Err(format!("{tensor} is overwritten before it is read")),
        }
    }

    /// The kernel reads all inputs, then writes all results, then reads again what is not overwritten in place.
    fn compute(&mut self, op: Op) -> Result<(), String> {
        let (graph, fusion) = (self.graph, self.fusion);
        let inputs = fusion.inputs(graph, op);
        for &input in &inputs {
            self.read(input, false)?;
        }
        let members = fusion.members(graph, &op);
        let results: Vec<Tensor> = members
            .iter()
            .flat_map(|&member| graph.ops[member].results.iter().copied())
            .collect();
        for &result in &results {
            if let (Some(Place::Parameter(parameter)), Some(_)) = (
                self.plan.places[result],
                graph.ops[op].opcode.row().evaluate,
            ) {
                if self.pending[parameter].is_some() {
                    return Err(format!("{result} overwrites what a parameter is to become"));
                }
                self.pending[parameter] = Some(result);
                self.states[parameter] += 1;
            }
            self.write(result, false)?;
        }
        for &input in &inputs {
            let in_place = |&result: &Tensor| {
                self.plan.places[result] == self.plan.places[input]
                    && fusion.may_share(graph, op, input, result)
            };
            if !results.iter().any(in_place) {
                self.read(input, false)?;
            }
        }
        results
            .iter()
            .try_for_each(|&result| self.read(result, false))
    }

    /// The parameter has the value afterwards.
    fn update(&mut self, op: Op, parameter: Parameter) -> Result<(), String> {
        let value = self.graph.ops[op].operands[0];
        self.read(value, false)?;
        match self.pending[parameter].take() {
            Some(pending) if pending == value => Ok(()),
            Some(pending) => Err(format!("{pending} is overwritten before it is the state")),
            None => {
                self.states[parameter] += 1;
                Ok(())
            }
        }
    }

    fn copy(&mut self, from: &[Tensor], to: &[Tensor]) -> Result<(), String> {
        for (&from, &to) in from.iter().zip(to) {
            self.read(from, false)?;
            self.write(to, false)?;
        }
        Ok(())
    }

    fn region(&mut self, region: Region) -> Result<(), String> {
        for &op in &self.graph.regions[region].ops {
            let data = &self.graph.ops[op];
            match (data.opcode, &data.payload) {
                (Opcode::For | Opcode::While, _) => self.follow_loop(op)?,
                (Opcode::If, _) => {
                    self.read(data.operands[0], false)?;
                    for &inner in &data.regions {
                        self.region(inner)?;
                        let yielded = &self.graph.regions[inner].results;
                        self.copy(yielded, &data.results)?;
                    }
                }
                (Opcode::Update, Payload::Parameter(parameter)) => self.update(op, *parameter)?,
                (Opcode::Parameter, Payload::Parameter(parameter)) => {
                    if self.pending[*parameter].is_some() {
                        return Err(format!("{op} reads a state that is overwritten already"));
                    }
                    self.compute(op)?;
                }
                _ => self.compute(op)?,
            }
        }
        Ok(())
    }

    fn follow_loop(&mut self, op: Op) -> Result<(), String> {
        let data = &self.graph.ops[op];
        let offset = usize::from(data.opcode == Opcode::For);
        for &region in &data.regions {
            let arguments = &self.graph.regions[region].arguments[offset..];
            for (&argument, &result) in arguments.iter().zip(&data.results) {
                self.carried[argument] = Some(result);
            }
        }
        for &operand in &data.operands[..offset] {
            self.read(operand, false)?;
        }
        self.copy(&data.operands[offset..], &data.results)?;
        for _ in 0..2 {
            if offset == 1 {
                self.write(self.graph.regions[data.regions[0]].arguments[0], false)?;
            } else {
                self.region(data.regions[0])?;
                self.read(self.graph.regions[data.regions[0]].results[0], false)?;
            }
            let body = data.regions[data.regions.len() - 1];
            self.region(body)?;
            let yielded = &self.graph.regions[body].results;
            let others: Vec<bool> = (0..yielded.len())
                .map(|position| {
                    self.graph
                        .is_other_argument(body, position, yielded[position])
                })
                .collect();
            for (&tensor, _) in yielded.iter().zip(&others).filter(|&(_, &other)| other) {
                self.read(tensor, false)?;
                self.write(tensor, true)?;
            }
            for ((&tensor, &other), &result) in yielded.iter().zip(&others).zip(&data.results) {
                self.read(tensor, other)?;
                self.write(result, false)?;
            }
        }
        Ok(())
    }
}
