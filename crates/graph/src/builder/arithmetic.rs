//! Elementwise operations, reductions and contractions.
//!
//! Operands of different shapes are broadcast as NumPy does: shapes are aligned at their last axes, and an axis that is missing or has one element repeats.

use crate::graph::{Graph, Tensor};
use crate::opcode::Opcode;
use crate::payload::{Function, Indices, Payload, Reduction};
use crate::types::{INDEX, Shape};
use ferrozyme_ir::{FloatPredicate, IntPredicate, Opcode as Loop, Scalar};

/// Methods for functions of the Loop IR, with their documentation.
macro_rules! functions {
    ($($name:ident $opcode:ident ($($operand:ident),+) $doc:literal;)*) => {
        impl Graph {
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $name(&mut self, $($operand: Tensor),+) -> Tensor {
                    self.apply(Loop::$opcode, &[$($operand),+])
                }
            )*
        }
    };
}

functions! {
    div Fdiv (a, b) "The quotients.";
    neg Fneg (a) "With the other sign.";
    pow Pow (a, b) "The powers.";
    exp Exp (a) "`e^a`.";
    log Log (a) "The natural logarithms.";
    sqrt Sqrt (a) "The square roots.";
    tanh Tanh (a) "The hyperbolic tangents.";
    sin Sin (a) "The sines.";
    cos Cos (a) "The cosines.";
    erf Erf (a) "The error function.";
    abs Fabs (a) "The absolute values.";
    select Select (condition, a, b) "`a` where the condition holds, else `b`.";
    and And (a, b) "Where both conditions hold; of integers, the bits that both have.";
    or Or (a, b) "Where one of two conditions holds; of integers, the bits that one has.";
}

/// Methods for functions that floats and integers have.
macro_rules! of_numbers {
    ($($name:ident $float:ident $integer:ident $doc:literal;)*) => {
        impl Graph {
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $name(&mut self, a: Tensor, b: Tensor) -> Tensor {
                    let function = match self.ty(a).element {
                        INDEX => Loop::$integer,
                        _ => Loop::$float,
                    };
                    self.apply(function, &[a, b])
                }
            )*
        }
    };
}

of_numbers! {
    add Fadd Add "The sums.";
    sub Fsub Sub "The differences.";
    mul Fmul Mul "The products.";
    maximum Fmaximum Smax "The larger ones; NaN where one is NaN.";
    minimum Fminimum Smin "The smaller ones; NaN where one is NaN.";
}

impl Graph {
    /// A function of the Loop IR, element by element.
    #[track_caller]
    pub fn apply(&mut self, opcode: Loop, operands: &[Tensor]) -> Tensor {
        match Function::from_opcode(opcode) {
            Some(function) => self.elementwise(function, operands),
            None => panic!("`{opcode}` is not applied element by element"),
        }
    }

    /// A comparison of floats.
    #[track_caller]
    pub fn compare(&mut self, predicate: FloatPredicate, a: Tensor, b: Tensor) -> Tensor {
        self.elementwise(Function::FloatCompare(predicate), &[a, b])
    }

    /// A comparison of integers.
    #[track_caller]
    pub fn compare_integers(&mut self, predicate: IntPredicate, a: Tensor, b: Tensor) -> Tensor {
        self.elementwise(Function::IntCompare(predicate), &[a, b])
    }

    /// A function of the Loop IR or a comparison, element by element.
    #[track_caller]
    pub fn elementwise(&mut self, function: Function, operands: &[Tensor]) -> Tensor {
        let Some(shape) = self.common_shape(operands) else {
            let types: Vec<String> = operands
                .iter()
                .map(|&operand| self.ty(operand).to_string())
                .collect();
            panic!(
                "`{function}`: the shapes do not fit: {}",
                types.join(" and ")
            );
        };
        let mut fitted = Vec::with_capacity(operands.len());
        for &operand in operands {
            fitted.push(self.broadcast_to(operand, shape.clone()));
        }
        match self.insert(
            Opcode::Elementwise,
            &fitted,
            Payload::Function(function),
            &[],
        ) {
            Ok(op) => self.ops[op].results[0],
            Err(message) => panic!("{message}"),
        }
    }

    /// The shape that tensors are broadcast to, if there is one.
    fn common_shape(&self, tensors: &[Tensor]) -> Option<Shape> {
        let shapes = tensors.iter().map(|&tensor| &self.ty(tensor).shape);
        let rank = shapes.clone().map(|shape| shape.len()).max().unwrap_or(0);
        let mut common = vec![1; rank];
        for shape in shapes {
            for (size, &own) in common.iter_mut().rev().zip(shape.iter().rev()) {
                match (*size, own) {
                    (_, 1) => {}
                    (1, own) => *size = own,
                    (size, own) if size == own => {}
                    _ => return None,
                }
            }
        }
        Some(Shape::from(&common[..]))
    }

    /// The tensor in this shape: aligned at the last axes, axes that are missing or have one element repeat.
    #[track_caller]
    pub fn broadcast_to(&mut self, tensor: Tensor, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        let own = self.ty(tensor).shape.clone();
        let fits = own.len() <= shape.len()
            && (own.iter().rev().zip(shape.iter().rev()))
                .all(|(&own, &size)| own == 1 || own == size);
        assert!(fits, "{} cannot be broadcast to {shape}", self.ty(tensor));
        let missing = shape.len() - own.len();
        let repeats = |axis: usize| axis < missing || own[axis - missing] != shape[axis];
        let kept: Shape = (missing..shape.len())
            .filter(|&axis| !repeats(axis))
            .map(|axis| shape[axis])
            .collect();
        let new: Vec<(usize, usize)> = (0..shape.len())
            .filter(|&axis| repeats(axis))
            .map(|axis| (axis, shape[axis]))
            .collect();
        let squeezed = self.reshape(tensor, kept);
        self.broadcast(squeezed, &new)
    }

    /// Every element times a number.
    #[track_caller]
    pub fn scale(&mut self, tensor: Tensor, factor: f64) -> Tensor {
        let factor = self.constant_like(tensor, factor);
        self.mul(tensor, factor)
    }

    /// Every element plus a number.
    #[track_caller]
    pub fn shift(&mut self, tensor: Tensor, by: f64) -> Tensor {
        let by = self.constant_like(tensor, by);
        self.add(tensor, by)
    }

    /// The same numbers as other elements; the tensor itself if it has these.
    #[track_caller]
    pub fn cast(&mut self, tensor: Tensor, element: Scalar) -> Tensor {
        let ty = self.ty(tensor).with_element(element);
        if ty == *self.ty(tensor) {
            return tensor;
        }
        self.tensor(Opcode::Cast, &[tensor], Payload::Type(ty))
    }

    /// A reduction over axes, in ascending order, which go away; the tensor itself if there are none.
    #[track_caller]
    pub fn reduce(&mut self, reduction: Reduction, tensor: Tensor, axes: &[usize]) -> Tensor {
        if axes.is_empty() && reduction != Reduction::Argmax {
            return tensor;
        }
        let payload = Payload::Reduce(reduction, axes.into());
        self.tensor(Opcode::Reduce, &[tensor], payload)
    }

    /// The sums over axes.
    #[track_caller]
    pub fn sum(&mut self, tensor: Tensor, axes: &[usize]) -> Tensor {
        self.reduce(Reduction::Sum, tensor, axes)
    }

    /// The sum of all elements.
    #[track_caller]
    pub fn sum_all(&mut self, tensor: Tensor) -> Tensor {
        let axes: Vec<usize> = (0..self.ty(tensor).shape.len()).collect();
        self.sum(tensor, &axes)
    }

    /// Products of elements, summed up: `g.contract("ij,jk->ik", a, b)` is the matrix product.
    #[track_caller]
    pub fn contract(&mut self, indices: &str, left: Tensor, right: Tensor) -> Tensor {
        match Indices::parse(indices) {
            Ok(indices) => self.contract_by(indices, left, right),
            Err(message) => panic!("`contract`: {message}"),
        }
    }

    /// As [`contract`](Self::contract), with indices from elsewhere.
    #[track_caller]
    pub fn contract_by(&mut self, indices: Indices, left: Tensor, right: Tensor) -> Tensor {
        self.tensor(Opcode::Contract, &[left, right], Payload::Contract(indices))
    }
}
