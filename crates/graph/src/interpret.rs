//! Runs graphs: the meaning of every operation, computed the simplest way.
//!
//! Elements are kept as doubles, which represent those of all types exactly, and results are rounded to their type once per operation; sums are added up in double
//! precision. Elementwise functions are evaluated by the interpreter of the Loop IR.
//!
//! ```
//! use ferrozyme_graph::interpret::{Array, Machine};
//! let graph = ferrozyme_graph::parse(r#"graph {
//!   %x = feed "x" : f64[2]
//!   %y = fmul %x, %x : f64[2]
//!   receive "y" %y
//! }"#)?;
//! let mut machine = Machine::new(&graph);
//! machine.feed("x", || Array::f64s([2], &[3.0, 4.0]));
//! machine.run()?;
//! assert_eq!(machine.received("y"), Some(&[Array::f64s([2], &[9.0, 16.0])][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod call;
pub(crate) mod source;
pub(crate) mod view;

pub use array::Array;
pub(crate) use array::{from_bits, round_to, to_bits};
pub use call::call;

use crate::graph::{Graph, Op, OpData, Parameter, Region, Tensor};
use crate::opcode::Opcode;
use crate::payload::{Payload, Reduction};
use crate::types::{INDEX, Shape, TensorType};
use crate::user;
use cranelift_entity::SecondaryMap;
use ferrozyme_ir::interpret::Bits;
use ferrozyme_ir::{Flags, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;

/// Why a run ended early.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The operation.
    pub opcode: Opcode,
    /// The line of the program that made it.
    pub location: Option<&'static Location<'static>>,
    /// What went wrong.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.opcode)?;
        if let Some(location) = self.location {
            write!(f, " ({location})")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Fault {}

/// What the host feeds under one name.
type Feeder<'g> = Box<dyn FnMut() -> Array + 'g>;

/// Runs a graph that verifies. The state of parameters stays from run to run.
pub struct Machine<'g> {
    graph: &'g Graph,
    parameters: SecondaryMap<Parameter, Option<Array>>,
    feeders: FxHashMap<String, Feeder<'g>>,
    received: Vec<(Box<str>, Vec<Array>)>,
    tensors: SecondaryMap<Tensor, Option<Array>>,
    steps: u64,
    step_limit: u64,
}

impl<'g> Machine<'g> {
    /// With the initial values of parameters.
    pub fn new(graph: &'g Graph) -> Machine<'g> {
        let mut parameters = SecondaryMap::new();
        for (parameter, data) in &graph.parameters {
            parameters[parameter] = Some(Array::from_literal(&data.ty, &data.initial));
        }
        Machine {
            graph,
            parameters,
            feeders: FxHashMap::default(),
            received: Vec::new(),
            tensors: SecondaryMap::new(),
            steps: 0,
            step_limit: u64::MAX,
        }
    }

    /// What `feed` gives under this name, each time it runs.
    pub fn feed(&mut self, name: &str, feeder: impl FnMut() -> Array + 'g) {
        self.feeders.insert(name.to_owned(), Box::new(feeder));
    }

    /// Limits the number of operations of all runs.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = steps;
    }

    /// The value of a parameter.
    pub fn parameter(&self, parameter: Parameter) -> &Array {
        let value = self.parameters[parameter].as_ref();
        value.expect("all parameters have values from the start")
    }

    /// Gives a parameter another value.
    ///
    /// # Panics
    /// If the value has another type.
    pub fn set_parameter(&mut self, parameter: Parameter, value: Array) {
        assert_eq!(self.graph.parameters[parameter].ty, value.ty);
        self.parameters[parameter] = Some(value);
    }

    /// All that was received so far, in order.
    pub fn all_received(&self) -> &[(Box<str>, Vec<Array>)] {
        &self.received
    }

    /// What was received last under this name.
    pub fn received(&self, name: &str) -> Option<&[Array]> {
        let mut latest = self.received.iter().rev();
        latest
            .find(|(other, _)| &**other == name)
            .map(|(_, tensors)| &tensors[..])
    }

    /// Runs the graph once.
    pub fn run(&mut self) -> Result<(), Fault> {
        self.region(self.graph.body(), Vec::new()).map(|_| ())
    }

    fn region(&mut self, region: Region, arguments: Vec<Array>) -> Result<Vec<Array>, Fault> {
        let data = &self.graph.regions[region];
        for (&argument, value) in data.arguments.iter().zip(arguments) {
            self.tensors[argument] = Some(value);
        }
        for &op in &data.ops {
            self.operation(op)?;
        }
        Ok(data
            .results
            .iter()
            .map(|&result| self.value(result).clone())
            .collect())
    }

    fn value(&self, tensor: Tensor) -> &Array {
        let value = self.tensors[tensor].as_ref();
        value.expect("a verified graph defines tensors before it uses them")
    }

    fn operation(&mut self, op: Op) -> Result<(), Fault> {
        let data = &self.graph.ops[op];
        let fault = |message: String| Fault {
            opcode: data.opcode,
            location: data.location,
            message,
        };
        self.steps += 1;
        if self.steps > self.step_limit {
            return Err(fault(format!("more than {} operations", self.step_limit)));
        }
        let results = match data.opcode.row().evaluate {
            Some(evaluate) => {
                let operands: SmallVec<[&Array; 3]> = data
                    .operands
                    .iter()
                    .map(|&operand| self.value(operand))
                    .collect();
                let ty = self.graph.ty(data.results[0]);
                let elements = evaluate(data, &operands, ty).map_err(fault)?;
                vec![Array::new(ty.clone(), elements)]
            }
            None => self.effect(data).map_err(|problem| match problem {
                Problem::Here(message) => fault(message),
                Problem::Inside(fault) => fault,
            })?,
        };
        for (&result, value) in data.results.iter().zip(results) {
            self.tensors[result] = Some(value);
        }
        Ok(())
    }

    /// Carries out an operation that does more than to compute its results.
    fn effect(&mut self, data: &OpData) -> Result<Vec<Array>, Problem> {
        let values = |machine: &Self, tensors: &[Tensor]| -> Vec<Array> {
            let value = |&tensor: &Tensor| machine.value(tensor).clone();
            tensors.iter().map(value).collect()
        };
        match (data.opcode, &data.payload) {
            (Opcode::Parameter, Payload::Parameter(parameter)) => {
                Ok(vec![self.parameter(*parameter).clone()])
            }
            (Opcode::Update, Payload::Parameter(parameter)) => {
                self.parameters[*parameter] = Some(self.value(data.operands[0]).clone());
                Ok(Vec::new())
            }
            (Opcode::Feed, Payload::Feed(name, ty)) => {
                let feeder = self.feeders.get_mut(&**name);
                let value = feeder.map(|feeder| feeder());
                match value {
                    Some(value) if value.ty == *ty => Ok(vec![value]),
                    Some(value) => Err(Problem::Here(format!(
                        "\"{name}\" must be {ty}, but {} was fed",
                        value.ty
                    ))),
                    None => Err(Problem::Here(format!("nothing feeds \"{name}\""))),
                }
            }
            (Opcode::Receive, Payload::Receive(name)) => {
                let tensors = values(self, &data.operands);
                self.received.push((name.clone(), tensors));
                Ok(Vec::new())
            }
            (Opcode::Call | Opcode::CallVjp, Payload::Call(name, types)) => {
                let operands = values(self, &data.operands);
                let derivative = data.opcode == Opcode::CallVjp;
                let function = self.graph.function_named(name);
                let function = function.ok_or_else(|| user::not_known(name));
                let results =
                    function.and_then(|function| call(function, derivative, &operands, types));
                results.map_err(Problem::Here)
            }
            (Opcode::For, _) => {
                let count = self.value(data.operands[0]).scalar() as i64;
                let mut carried = values(self, &data.operands[1..]);
                for iteration in 0..count {
                    let mut arguments = vec![Array::splat(INDEX, iteration as f64)];
                    arguments.append(&mut carried);
                    carried = self.region(data.regions[0], arguments)?;
                }
                Ok(carried)
            }
            (Opcode::While, _) => {
                let mut carried = values(self, &data.operands);
                while self.region(data.regions[0], carried.clone())?[0].scalar() != 0.0 {
                    carried = self.region(data.regions[1], carried)?;
                }
                Ok(carried)
            }
            (Opcode::If, _) => {
                let holds = self.value(data.operands[0]).scalar() != 0.0;
                let region = data.regions[if holds { 0 } else { 1 }];
                Ok(self.region(region, Vec::new())?)
            }
            _ => Err(Problem::Here("the operation does not verify".into())),
        }
    }
}

/// Why an operation was not carried out.
enum Problem {
    /// It failed itself.
    Here(String),
    /// An operation of one of its regions failed.
    Inside(Fault),
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        Problem::Inside(fault)
    }
}

// ---- arithmetic

pub(crate) fn elementwise(
    data: &OpData,
    operands: &[&Array],
    ty: &TensorType,
) -> Result<Vec<f64>, String> {
    let Payload::Function(function) = data.payload else {
        return Err("the operation does not verify".into());
    };
    let types: SmallVec<[Type; 3]> = operands
        .iter()
        .map(|operand| Type::scalar_of(operand.ty.element))
        .collect();
    let (opcode, payload) = (function.opcode(), function.payload());
    let element = |position: usize| {
        let bits: SmallVec<[Bits; 3]> = operands
            .iter()
            .map(|operand| Bits::Scalar(to_bits(operand.ty.element, operand.elements[position])))
            .collect();
        let bits: SmallVec<[&Bits; 3]> = bits.iter().collect();
        let result = [Type::scalar_of(ty.element)];
        let values = ferrozyme_ir::interpret::evaluate(
            opcode,
            &payload,
            Flags::NONE,
            &types,
            &bits,
            &result,
        );
        match values.as_deref() {
            Ok([Bits::Scalar(raw)]) => Ok(from_bits(ty.element, *raw)),
            _ => Err(format!("`{function}` is not defined here")),
        }
    };
    (0..ty.shape.count()).map(element).collect()
}

pub(crate) fn cast(_: &OpData, operands: &[&Array], ty: &TensorType) -> Result<Vec<f64>, String> {
    let rounded = |&value: &f64| round_to(ty.element, value);
    Ok(operands[0].elements.iter().map(rounded).collect())
}

pub(crate) fn reduce(
    data: &OpData,
    operands: &[&Array],
    ty: &TensorType,
) -> Result<Vec<f64>, String> {
    let Payload::Reduce(reduction, axes) = &data.payload else {
        return Err("the operation does not verify".into());
    };
    let from = operands[0];
    let reduced: Shape = axes.iter().map(|&axis| from.ty.shape[axis]).collect();
    let kept: Vec<usize> = (0..from.ty.shape.len())
        .filter(|axis| !axes.contains(axis))
        .collect();
    let mut results = Vec::with_capacity(ty.shape.count());
    for outer in ty.shape.indices() {
        let mut best = f64::NAN;
        let mut best_at = 0;
        let mut sum = 0.0;
        for (position, inner) in reduced.indices().enumerate() {
            let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, from.ty.shape.len());
            for (&axis, &at) in kept.iter().zip(&outer) {
                index[axis] = at;
            }
            for (&axis, &at) in axes.iter().zip(&inner) {
                index[axis] = at;
            }
            let value = from.at(&index);
            let better = match reduction {
                Reduction::Min => value < best || value.is_nan(),
                _ => value > best || value.is_nan(),
            };
            if position == 0 || better && !best.is_nan() {
                (best, best_at) = (value, position);
            }
            sum += value;
        }
        results.push(match reduction {
            Reduction::Sum if ty.element == INDEX => f64::from(sum as i64 as i32),
            Reduction::Sum => round_to(ty.element, sum),
            Reduction::Max | Reduction::Min => best,
            Reduction::Argmax => best_at as f64,
        });
    }
    Ok(results)
}

pub(crate) fn contract(
    data: &OpData,
    operands: &[&Array],
    ty: &TensorType,
) -> Result<Vec<f64>, String> {
    let Payload::Contract(indices) = &data.payload else {
        return Err("the operation does not verify".into());
    };
    let mut sizes = vec![1; usize::from(indices.count())];
    for (axes, shape) in [
        (&indices.left, &operands[0].ty.shape),
        (&indices.right, &operands[1].ty.shape),
    ] {
        for (&index, &size) in axes.iter().zip(shape.iter()) {
            sizes[usize::from(index)] = size;
        }
    }
    let mut sums = vec![0.0; ty.shape.count()];
    let position = |axes: &[u8], shape: &Shape, all: &[usize]| -> usize {
        let strides = shape.strides();
        let along = axes.iter().zip(&strides);
        along
            .map(|(&index, stride)| all[usize::from(index)] * stride)
            .sum()
    };
    for all in Shape::from(&sizes[..]).indices() {
        let left = position(&indices.left, &operands[0].ty.shape, &all);
        let right = position(&indices.right, &operands[1].ty.shape, &all);
        let product = operands[0].elements[left] * operands[1].elements[right];
        sums[position(&indices.result, &ty.shape, &all)] += product;
    }
    Ok(sums
        .into_iter()
        .map(|sum| round_to(ty.element, sum))
        .collect())
}
