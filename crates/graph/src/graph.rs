//! A graph: its parameters, tensors, operations and regions.
//!
//! A region is a list of operations in the order in which they take effect, with arguments and results; operations may hold regions. A tensor is visible in the region
//! that defines it, after its definition, and in all regions nested there. Tensors never change. What changes is the state of parameters: `parameter`
//! gives the value that a parameter has at this point, and `update` gives it another.

use crate::opcode::Opcode;
use crate::payload::{Literal, Payload};
use crate::types::TensorType;
use crate::user::UserFunction;
use cranelift_entity::{PrimaryMap, entity_impl};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::panic::Location;

/// A tensor: the result of an operation or an argument of a region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tensor(u32);
entity_impl!(Tensor, "t");

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(u32);
entity_impl!(Op, "op");

/// A region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(u32);
entity_impl!(Region, "region");

/// A parameter: a tensor that outlives the run of a graph, and that the graph may update.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameter(u32);
entity_impl!(Parameter, "parameter");

/// The data of a tensor.
#[derive(Clone, Debug)]
pub struct TensorData {
    /// Its type.
    pub ty: TensorType,
    /// Its definition.
    pub def: Def,
    /// Its name in the text form; tensors without one are numbered.
    pub name: Option<Box<str>>,
}

/// The definition of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    /// Result `index` of an operation.
    Result(Op, usize),
    /// Argument `index` of a region.
    Argument(Region, usize),
}

/// The data of an operation.
#[derive(Clone, Debug)]
pub struct OpData {
    /// The kind of operation.
    pub opcode: Opcode,
    /// The operands.
    pub operands: SmallVec<[Tensor; 3]>,
    /// The rest of its definition.
    pub payload: Payload,
    /// The regions it holds.
    pub regions: SmallVec<[Region; 2]>,
    /// The results.
    pub results: SmallVec<[Tensor; 1]>,
    /// The region that holds it.
    pub region: Region,
    /// The line of the program that made it.
    pub location: Option<&'static Location<'static>>,
}

/// The data of a region.
#[derive(Clone, Debug, Default)]
pub struct RegionData {
    /// The counter and carried tensors of loops.
    pub arguments: SmallVec<[Tensor; 2]>,
    /// The operations, in the order in which they take effect.
    pub ops: Vec<Op>,
    /// What it yields to the operation that holds it.
    pub results: SmallVec<[Tensor; 2]>,
}

/// The data of a parameter.
#[derive(Clone, Debug)]
pub struct ParameterData {
    /// Its name, which no other parameter has.
    pub name: Box<str>,
    /// Its type.
    pub ty: TensorType,
    /// Its value before the first run.
    pub initial: Literal,
}

/// A graph of tensor operations, and the region that is being built (`builder.rs`).
#[derive(Clone, Debug)]
pub struct Graph {
    /// All parameters.
    pub parameters: PrimaryMap<Parameter, ParameterData>,
    /// All tensors, including those of removed operations.
    pub tensors: PrimaryMap<Tensor, TensorData>,
    /// All operations, including removed ones.
    pub ops: PrimaryMap<Op, OpData>,
    /// All regions, including removed ones.
    pub regions: PrimaryMap<Region, RegionData>,
    /// The functions that `call` names, by name, as far as they are known: those of a graph that was read from text are not.
    pub(crate) functions: BTreeMap<Box<str>, UserFunction>,
    body: Region,
    /// The regions that are being built, from the outermost on.
    pub(crate) open: Vec<Region>,
    /// The line that new operations are of, if it is not the caller's.
    pub(crate) blame: Option<&'static Location<'static>>,
}

impl Default for Graph {
    fn default() -> Graph {
        Graph::new()
    }
}

impl Graph {
    /// Without operations.
    pub fn new() -> Graph {
        let mut regions = PrimaryMap::new();
        let body = regions.push(RegionData::default());
        Graph {
            parameters: PrimaryMap::new(),
            tensors: PrimaryMap::new(),
            ops: PrimaryMap::new(),
            regions,
            functions: BTreeMap::new(),
            body,
            open: vec![body],
            blame: None,
        }
    }

    /// The outermost region.
    pub fn body(&self) -> Region {
        self.body
    }

    /// The type of a tensor.
    pub fn ty(&self, tensor: Tensor) -> &TensorType {
        &self.tensors[tensor].ty
    }

    /// The Rust function of this name.
    pub fn function_named(&self, name: &str) -> Option<&UserFunction> {
        self.functions.get(name)
    }

    /// Says which Rust function a name stands for: for a graph that was read from text. It replaces the one that the name stood for; [`verify`](crate::verify()) says whether its calls fit.
    pub fn define(&mut self, function: &UserFunction) {
        self.functions
            .insert(function.name().into(), function.clone());
    }

    /// The operation that a tensor is a result of, if any.
    pub fn def_op(&self, tensor: Tensor) -> Option<Op> {
        match self.tensors[tensor].def {
            Def::Result(op, _) => Some(op),
            Def::Argument(..) => None,
        }
    }

    /// The constant that a tensor is, if it is one.
    pub fn constant_of(&self, tensor: Tensor) -> Option<&Literal> {
        match &self.ops[self.def_op(tensor)?].payload {
            Payload::Constant(literal, _) => Some(literal),
            _ => None,
        }
    }

    /// The number that all elements of a tensor are, if it is such a constant.
    pub fn splat_of(&self, tensor: Tensor) -> Option<f64> {
        match self.constant_of(tensor)? {
            Literal::Splat(value) => Some(*value),
            Literal::Dense(_) => None,
        }
    }

    /// The parameter of this name.
    pub fn parameter_named(&self, name: &str) -> Option<Parameter> {
        let mut all = self.parameters.iter();
        all.find(|(_, data)| &*data.name == name)
            .map(|(parameter, _)| parameter)
    }

    /// The tensor that has this name in the text form.
    pub fn tensor_named(&self, name: &str) -> Option<Tensor> {
        let mut all = self.tensors.iter();
        all.find(|(_, data)| data.name.as_deref() == Some(name))
            .map(|(tensor, _)| tensor)
    }

    /// A region with arguments of these types.
    pub fn new_region(&mut self, arguments: &[TensorType]) -> Region {
        let region = self.regions.push(RegionData::default());
        for (index, ty) in arguments.iter().enumerate() {
            let argument = self.tensors.push(TensorData {
                ty: ty.clone(),
                def: Def::Argument(region, index),
                name: None,
            });
            self.regions[region].arguments.push(argument);
        }
        region
    }

    /// Whether what a loop's body yields at a position is another argument of it than the one that it becomes: the two change places.
    pub(crate) fn is_other_argument(&self, body: Region, position: usize, tensor: Tensor) -> bool {
        let data = &self.regions[body];
        let offset = data.arguments.len().saturating_sub(data.results.len());
        match self.tensors[tensor].def {
            Def::Argument(home, index) => home == body && index != position + offset,
            Def::Result(..) => false,
        }
    }

    /// Calls `visit` for each operation of a region and of the regions in it, in their order, outer ones first.
    pub fn for_each_op(&self, region: Region, visit: &mut impl FnMut(Region, Op)) {
        for &op in &self.regions[region].ops {
            visit(region, op);
            for &inner in &self.ops[op].regions {
                self.for_each_op(inner, visit);
            }
        }
    }
}
