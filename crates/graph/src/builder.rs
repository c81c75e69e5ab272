//! Builds graphs: every method appends an operation to the region that is being built.
//!
//! Operands that do not fit are an error of the caller. The methods panic, with a message that names the operation and the types, at the line of the caller; [`Graph::insert`] returns the message instead.
//!
//! ```
//! use ferrozyme_graph::{Graph, Scalar};
//! let mut g = Graph::new();
//! let w = g.parameter("w", [3, 4], 0.5);
//! let x = g.feed("x", [2, 3]);
//! let weights = g.read(w);
//! let y = g.contract("ij,jk->ik", x, weights);
//! let y = g.tanh(y);
//! g.receive("y", &[y]);
//! assert_eq!(g.ty(y).to_string(), "f32[2, 4]");
//! ```

mod arithmetic;
mod control;

use crate::graph::{Def, Graph, Op, OpData, Parameter, ParameterData, Region, Tensor, TensorData};
use crate::infer::check_literal;
use crate::opcode::Opcode;
use crate::payload::{Literal, Padding, Payload, Stretch};
use crate::types::{Shape, TensorType};
use crate::user::UserFunction;
use ferrozyme_ir::Scalar;
use smallvec::SmallVec;
use std::ops::Range;
use std::panic::Location;

const NOT_VISIBLE: &str = "a tensor of a region that has ended cannot be used: yield it from there";

impl Graph {
    /// Appends an operation to the region that is being built, or says why it cannot be.
    #[track_caller]
    pub fn insert(
        &mut self,
        opcode: Opcode,
        operands: &[Tensor],
        payload: Payload,
        regions: &[Region],
    ) -> Result<Op, String> {
        let location = self.blame.unwrap_or(Location::caller());
        self.insert_at(Some(location), opcode, operands, payload, regions)
    }

    /// As [`insert`](Self::insert), for another line than the caller's.
    pub(crate) fn insert_at(
        &mut self,
        location: Option<&'static Location<'static>>,
        opcode: Opcode,
        operands: &[Tensor],
        payload: Payload,
        regions: &[Region],
    ) -> Result<Op, String> {
        let row = opcode.row();
        if !row.takes(operands.len())
            || row.payload != payload.kind()
            || row.regions.len() != regions.len()
        {
            return Err(format!(
                "the operation has other operands, another payload or other regions:\n{}",
                row.documentation
            ));
        }
        let region = self.current_region();
        if !operands.iter().all(|&operand| self.is_visible(operand)) {
            return Err(NOT_VISIBLE.to_owned());
        }
        let mut data = OpData {
            opcode,
            operands: SmallVec::from_slice(operands),
            payload,
            regions: SmallVec::from_slice(regions),
            results: SmallVec::new(),
            region,
            location,
        };
        let types = (row.infer)(self, &data)?;
        let op = self.ops.next_key();
        for (index, ty) in types.into_iter().enumerate() {
            let def = Def::Result(op, index);
            let name = None;
            data.results
                .push(self.tensors.push(TensorData { ty, def, name }));
        }
        self.ops.push(data);
        self.regions[region].ops.push(op);
        Ok(op)
    }

    /// Whether a tensor belongs to a region that is being built.
    pub(crate) fn is_visible(&self, tensor: Tensor) -> bool {
        let home = match self.tensors[tensor].def {
            Def::Result(op, _) => self.ops[op].region,
            Def::Argument(region, _) => region,
        };
        self.open.contains(&home)
    }

    /// The region that is being built.
    pub(crate) fn current_region(&self) -> Region {
        *self.open.last().expect("the body is always open")
    }

    /// Appends an operation without regions, for the builder's methods.
    #[track_caller]
    pub(crate) fn must(&mut self, opcode: Opcode, operands: &[Tensor], payload: Payload) -> Op {
        match self.insert(opcode, operands, payload, &[]) {
            Ok(op) => op,
            Err(message) => panic!("`{opcode}`: {message}"),
        }
    }

    /// As [`must`](Self::must), with one result.
    #[track_caller]
    fn tensor(&mut self, opcode: Opcode, operands: &[Tensor], payload: Payload) -> Tensor {
        let op = self.must(opcode, operands, payload);
        self.ops[op].results[0]
    }

    // ---- sources and sinks

    /// A parameter of `f32`, with its value before the first run.
    #[track_caller]
    pub fn parameter(
        &mut self,
        name: &str,
        shape: impl Into<Shape>,
        initial: impl Into<Literal>,
    ) -> Parameter {
        self.parameter_of(name, TensorType::new(Scalar::F32, shape), initial)
    }

    /// A parameter of any type. The numbers are rounded to its elements.
    #[track_caller]
    pub fn parameter_of(
        &mut self,
        name: &str,
        ty: TensorType,
        initial: impl Into<Literal>,
    ) -> Parameter {
        let initial = rounded(initial.into(), &ty);
        let checked = ty.check().and_then(|()| check_literal(&initial, &ty));
        if let Err(message) = checked {
            panic!("parameter \"{name}\": {message}");
        }
        assert!(
            self.parameter_named(name).is_none(),
            "there is a parameter \"{name}\" already"
        );
        self.parameters.push(ParameterData {
            name: name.into(),
            ty,
            initial,
        })
    }

    /// The value that a parameter has here.
    #[track_caller]
    pub fn read(&mut self, parameter: Parameter) -> Tensor {
        self.tensor(Opcode::Parameter, &[], Payload::Parameter(parameter))
    }

    /// Gives a parameter another value.
    #[track_caller]
    pub fn update(&mut self, parameter: Parameter, value: Tensor) {
        self.must(Opcode::Update, &[value], Payload::Parameter(parameter));
    }

    /// A constant. The numbers are rounded to its elements.
    #[track_caller]
    pub fn constant(&mut self, ty: TensorType, value: impl Into<Literal>) -> Tensor {
        let value = rounded(value.into(), &ty);
        self.tensor(Opcode::Constant, &[], Payload::Constant(value, ty))
    }

    /// A constant of the type of a tensor.
    #[track_caller]
    pub fn constant_like(&mut self, tensor: Tensor, value: impl Into<Literal>) -> Tensor {
        let ty = self.ty(tensor).clone();
        self.constant(ty, value)
    }

    /// Counts from 0 along an axis.
    #[track_caller]
    pub fn iota(&mut self, ty: TensorType, axis: usize) -> Tensor {
        self.tensor(Opcode::Iota, &[], Payload::Iota(axis, ty))
    }

    /// Uniform random numbers in [0, 1), the same for the same seed and counter.
    #[track_caller]
    pub fn random(&mut self, ty: TensorType, seed: u64, counter: Tensor) -> Tensor {
        self.tensor(Opcode::Random, &[counter], Payload::Random(seed, ty))
    }

    /// The next tensor of `f32` that the host feeds.
    #[track_caller]
    pub fn feed(&mut self, name: &str, shape: impl Into<Shape>) -> Tensor {
        self.feed_of(name, TensorType::new(Scalar::F32, shape))
    }

    /// The next tensor that the host feeds, of any type.
    #[track_caller]
    pub fn feed_of(&mut self, name: &str, ty: TensorType) -> Tensor {
        self.tensor(Opcode::Feed, &[], Payload::Feed(name.into(), ty))
    }

    /// Hands tensors to the host.
    #[track_caller]
    pub fn receive(&mut self, name: &str, tensors: &[Tensor]) {
        self.must(Opcode::Receive, tensors, Payload::Receive(name.into()));
    }

    /// The results of a Rust function, which have these shapes. See [`UserFunction`].
    ///
    /// # Panics
    /// If operands and results are not of the function's elements, or another function has its name.
    #[track_caller]
    pub fn call<const N: usize>(
        &mut self,
        function: &UserFunction,
        operands: &[Tensor],
        shapes: [impl Into<Shape>; N],
    ) -> [Tensor; N] {
        let name = function.name();
        if let Some(other) = self.function_named(name) {
            assert!(
                other.is(function),
                "`call`: another function is called \"{name}\""
            );
        }
        let elements = function.results();
        assert!(
            elements.len() == N,
            "`call`: \"{name}\" has {} results, but {N} shapes are given",
            elements.len()
        );
        self.define(function);
        let types = elements.iter().zip(shapes);
        let types = types.map(|(&element, shape)| TensorType::new(element, shape));
        let payload = Payload::Call(name.into(), types.collect());
        let op = self.must(Opcode::Call, operands, payload);
        std::array::from_fn(|index| self.ops[op].results[index])
    }

    // ---- views

    /// The same elements in another shape; the tensor itself if it has that shape.
    #[track_caller]
    pub fn reshape(&mut self, tensor: Tensor, shape: impl Into<Shape>) -> Tensor {
        let ty = self.ty(tensor).with_shape(shape);
        if ty == *self.ty(tensor) {
            return tensor;
        }
        self.tensor(Opcode::Reshape, &[tensor], Payload::Type(ty))
    }

    /// Other order of axes; the tensor itself if it is the same order.
    #[track_caller]
    pub fn permute(&mut self, tensor: Tensor, axes: &[usize]) -> Tensor {
        if axes.iter().copied().eq(0..self.ty(tensor).shape.len()) {
            return tensor;
        }
        self.tensor(
            Opcode::Permute,
            &[tensor],
            Payload::Permutation(axes.into()),
        )
    }

    /// New axes, ascending, with their positions in the result and their sizes; the tensor itself if there are none.
    #[track_caller]
    pub fn broadcast(&mut self, tensor: Tensor, axes: &[(usize, usize)]) -> Tensor {
        if axes.is_empty() {
            return tensor;
        }
        self.tensor(
            Opcode::Broadcast,
            &[tensor],
            Payload::Broadcast(axes.into()),
        )
    }

    /// A part of each axis.
    #[track_caller]
    pub fn slice(&mut self, tensor: Tensor, stretches: &[Stretch]) -> Tensor {
        self.tensor(Opcode::Slice, &[tensor], Payload::Slice(stretches.into()))
    }

    /// Zeros along each axis.
    #[track_caller]
    pub fn pad(&mut self, tensor: Tensor, paddings: &[Padding]) -> Tensor {
        self.tensor(Opcode::Pad, &[tensor], Payload::Pad(paddings.into()))
    }

    /// One after the other along an axis.
    #[track_caller]
    pub fn concat(&mut self, parts: &[Tensor], axis: usize) -> Tensor {
        self.tensor(Opcode::Concat, parts, Payload::Axis(axis))
    }

    /// The elements along an axis that indices name.
    #[track_caller]
    pub fn gather(&mut self, tensor: Tensor, indices: Tensor, axis: usize) -> Tensor {
        self.tensor(Opcode::Gather, &[tensor, indices], Payload::Axis(axis))
    }

    /// The same elements, which gradients do not go through: in derivatives they are constants.
    #[track_caller]
    pub fn detach(&mut self, tensor: Tensor) -> Tensor {
        self.tensor(Opcode::Detach, &[tensor], Payload::None)
    }

    /// A part of one axis.
    ///
    /// # Panics
    /// If the tensor has no such axis, or the axis no such part.
    #[track_caller]
    pub fn part(&mut self, tensor: Tensor, axis: usize, range: Range<usize>) -> Tensor {
        let shape = self.ty(tensor).shape.clone();
        assert!(axis < shape.len(), "{} has no axis {axis}", self.ty(tensor));
        let mut stretches: Vec<Stretch> = shape.iter().map(|&size| Stretch::all(size)).collect();
        stretches[axis] = Stretch {
            start: range.start,
            end: range.end,
            step: 1,
        };
        self.slice(tensor, &stretches)
    }

    /// A tensor with values added along an axis where indices say.
    #[track_caller]
    pub fn scatter_add(
        &mut self,
        tensor: Tensor,
        indices: Tensor,
        values: Tensor,
        axis: usize,
    ) -> Tensor {
        let operands = [tensor, indices, values];
        self.tensor(Opcode::ScatterAdd, &operands, Payload::Axis(axis))
    }
}

/// The numbers as elements of this type.
fn rounded(literal: Literal, ty: &TensorType) -> Literal {
    let round = |value: f64| crate::interpret::round_to(ty.element, value);
    match literal {
        Literal::Splat(value) => Literal::Splat(round(value)),
        Literal::Dense(values) => {
            Literal::Dense(values.iter().map(|&value| round(value)).collect())
        }
    }
}
