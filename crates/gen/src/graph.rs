//! Random tensor graphs.
//!
//! A graph computes with `f64` and has parameters, whose gradients are interesting; its last tensor is received as `y`. Values stay moderate: functions are applied
//! where the table of mathematical functions says that they are smooth, and what grows is brought back by a sine.

mod control;
mod views;

use crate::random::Random;
use ferrozyme_graph::{
    FloatPredicate, Function, Graph, Indices, Parameter, Reduction, Scalar, Shape, Tensor,
    TensorType, UserFunction,
};
use ferrozyme_ir::{Interval, MathFunction, MathValue, Opcode};

/// The most elements of a tensor.
const LARGEST: usize = 48;

/// What a random graph may have.
#[derive(Clone, Copy, Debug)]
pub struct GraphProfile {
    /// The number of operations that are chosen; each may be made of several.
    pub size: usize,
    /// Whether it has loops and branches.
    pub control: bool,
    /// Whether parameters are updated.
    pub updates: bool,
    /// Whether Rust functions are called.
    pub calls: bool,
}

/// A Rust function that makes of two tensors of one size a third one, each element of which depends on its neighbours, with its derivative.
pub fn mixture() -> UserFunction {
    UserFunction::new("mixture", mix).with_derivative(d_mix)
}

fn mix(x: &[f64], by: &[f64], y: &mut [f64]) {
    for at in 0..x.len() {
        let next = x[(at + 1) % x.len()];
        y[at] = x[at].sin() * by[at] + 0.5 * next.cos();
    }
}

fn d_mix(x: &[f64], dx: &mut [f64], by: &[f64], dby: &mut [f64], y: &mut [f64], dy: &mut [f64]) {
    mix(x, by, y);
    for at in 0..x.len() {
        let next = (at + 1) % x.len();
        dx[at] += dy[at] * x[at].cos() * by[at];
        dby[at] += dy[at] * x[at].sin();
        dx[next] -= dy[at] * 0.5 * x[next].sin();
    }
    dy.fill(0.0);
}

/// A random graph, and the tensor whose gradient is interesting.
pub fn random_graph(seed: u64, profile: GraphProfile) -> (Graph, Tensor) {
    let mut graph = Graph::new();
    let tensor = append_random_graph(&mut graph, "", seed, profile);
    (graph, tensor)
}

/// Appends the random graph of a seed to another one, of which it uses nothing: so many graphs are compiled at once. All its names begin as `prefix` says. Returns the tensor whose gradient is interesting.
pub fn append_random_graph(
    graph: &mut Graph,
    prefix: &str,
    seed: u64,
    profile: GraphProfile,
) -> Tensor {
    let mut maker = Maker {
        random: Random::new(seed),
        g: std::mem::replace(graph, Graph::new()),
        own: Vec::new(),
        pool: Vec::new(),
        profile,
        depth: 0,
    };
    let parameters = 1 + maker.random.below(3);
    for number in 0..parameters {
        let shape = maker.shape();
        let values = (0..shape.count()).map(|_| maker.random.float(-1.5, 1.5));
        let values: Vec<f64> = values.collect();
        let ty = TensorType::new(Scalar::F64, shape);
        let name = format!("{prefix}p{number}");
        let parameter = maker.g.parameter_of(&name, ty, values);
        maker.own.push(parameter);
        let read = maker.g.read(parameter);
        maker.pool.push(read);
    }
    for _ in 0..profile.size {
        maker.step();
    }
    // All that was made has an influence.
    let mut sum = maker.g.constant(TensorType::scalar(Scalar::F64), 0.0);
    for tensor in maker.pool.clone() {
        let tame = maker.g.sin(tensor);
        let total = maker.g.sum_all(tame);
        sum = maker.g.add(sum, total);
    }
    maker.g.receive(&format!("{prefix}y"), &[sum]);
    *graph = maker.g;
    sum
}

struct Maker {
    random: Random,
    g: Graph,
    /// Its parameters.
    own: Vec<Parameter>,
    /// Tensors of `f64` that are visible.
    pool: Vec<Tensor>,
    profile: GraphProfile,
    /// How many regions are being built.
    depth: usize,
}

impl Maker {
    fn shape(&mut self) -> Shape {
        let rank = self.random.below(4);
        (0..rank).map(|_| 1 + self.random.below(3)).collect()
    }

    fn pick(&mut self) -> Tensor {
        self.random.pick(&self.pool)
    }

    fn shape_of(&self, tensor: Tensor) -> Shape {
        self.g.ty(tensor).shape.clone()
    }

    /// Makes a tensor and adds it to the pool, if it is not too large.
    fn step(&mut self) {
        let made = match self.random.below(12) {
            0..=2 => Some(self.function()),
            3 | 4 => Some(self.arithmetic()),
            5 | 6 => self.view(),
            7 if self.profile.calls && self.random.percent(60) => Some(self.call()),
            7 => Some(self.reduction()),
            8 | 9 => self.contraction(),
            10 => Some(self.choice()),
            _ if self.profile.control && self.depth < 2 => Some(self.region()),
            _ => self.update(),
        };
        if let Some(tensor) = made {
            // What is a sum of many, or a product, may grow.
            let tensor = match self.random.percent(30) {
                true => self.g.sin(tensor),
                false => tensor,
            };
            self.pool.push(tensor);
        }
    }

    /// A function of the table, where it is smooth.
    fn function(&mut self) -> Tensor {
        let is_usable = |row: &&MathFunction| {
            let form = matches!(
                row.value,
                MathValue::FloatUnary(_) | MathValue::FloatBinary(_)
            );
            form && !row.domain.is_empty()
        };
        let rows: Vec<&MathFunction> = MathFunction::all().filter(is_usable).collect();
        let row = self.random.pick(&rows);
        let tensor = self.pick();
        let mut operands = vec![self.within(tensor, row.domain[0])];
        if matches!(row.value, MathValue::FloatBinary(_)) {
            let other = self.like(tensor);
            let domain = row.domain.last().copied().unwrap_or(row.domain[0]);
            operands.push(self.within(other, domain));
        }
        self.g.apply(row.opcode, &operands)
    }

    /// A tensor of the same shape: one of the pool if there is another, or a function of this one.
    fn like(&mut self, tensor: Tensor) -> Tensor {
        let shape = self.shape_of(tensor);
        let same: Vec<Tensor> = self
            .pool
            .iter()
            .copied()
            .filter(|&other| self.g.ty(other).shape == shape)
            .collect();
        match same.is_empty() {
            true => self.g.cos(tensor),
            false => self.random.pick(&same),
        }
    }

    /// Brings values into the middle of an interval, smoothly.
    fn within(&mut self, tensor: Tensor, (low, high): Interval) -> Tensor {
        let bounded = self.g.sin(tensor);
        let (middle, half) = match (low.is_finite(), high.is_finite()) {
            (true, true) => ((low + high) / 2.0, (high - low) / 2.5),
            (true, false) => (low + 1.0, 0.9),
            (false, true) => (high - 1.0, 0.9),
            (false, false) => (0.0, 1.0),
        };
        let scaled = self.g.scale(bounded, half);
        self.g.shift(scaled, middle)
    }

    fn arithmetic(&mut self) -> Tensor {
        let a = self.pick();
        let b = self.like(a);
        match self.random.below(5) {
            0 => self.g.add(a, b),
            1 => self.g.sub(a, b),
            2 => self.g.mul(a, b),
            3 => {
                let divisor = self.within(b, (1.0, f64::INFINITY));
                self.g.div(a, divisor)
            }
            _ => self.g.neg(a),
        }
    }

    /// A call of a Rust function.
    fn call(&mut self) -> Tensor {
        let a = self.pick();
        let b = self.like(a);
        let shape = self.shape_of(a);
        let [mixed] = self.g.call(&mixture(), &[a, b], [shape]);
        mixed
    }

    fn reduction(&mut self) -> Tensor {
        let tensor = self.pick();
        let rank = self.shape_of(tensor).len();
        let axes: Vec<usize> = (0..rank).filter(|_| self.random.percent(50)).collect();
        let reduction = self.random.pick(&[
            Reduction::Sum,
            Reduction::Sum,
            Reduction::Max,
            Reduction::Min,
        ]);
        self.g.reduce(reduction, tensor, &axes)
    }

    /// A contraction in which axes of equal sizes may share an index.
    fn contraction(&mut self) -> Option<Tensor> {
        let (left, right) = (self.pick(), self.pick());
        let (a, b) = (self.shape_of(left), self.shape_of(right));
        let left_indices: Vec<usize> = (0..a.len()).collect();
        let mut result = left_indices.clone();
        let mut right_indices: Vec<usize> = Vec::new();
        for (axis, &size) in b.iter().enumerate() {
            let free = |index: &usize| a[*index] == size && !right_indices.contains(index);
            let partners: Vec<usize> = left_indices.iter().copied().filter(free).collect();
            if !partners.is_empty() && self.random.percent(70) {
                let partner = self.random.pick(&partners);
                right_indices.push(partner);
                if self.random.percent(70) {
                    result.retain(|&index| index != partner);
                }
            } else {
                right_indices.push(a.len() + axis);
                result.push(a.len() + axis);
            }
        }
        for at in (1..result.len()).rev() {
            let other = self.random.below(at + 1);
            result.swap(at, other);
        }
        let size = |index: &usize| match *index < a.len() {
            true => a[*index],
            false => b[*index - a.len()],
        };
        if result.iter().map(size).product::<usize>() > LARGEST {
            return None;
        }
        let indices = Indices::new(&left_indices, &right_indices, &result);
        let indices = indices.expect("indices that are not summed are in the result");
        Some(self.g.contract_by(indices, left, right))
    }

    /// The larger of two, in one of several ways.
    fn choice(&mut self) -> Tensor {
        let a = self.pick();
        let b = self.like(a);
        match self.random.below(3) {
            0 => self.g.maximum(a, b),
            1 => self.g.apply(Opcode::Fmin, &[a, b]),
            _ => {
                let function = Function::FloatCompare(FloatPredicate::Olt);
                let condition = self.g.elementwise(function, &[a, b]);
                self.g.select(condition, a, b)
            }
        }
    }

    /// Updates a parameter with a tensor of its type, and reads it.
    fn update(&mut self) -> Option<Tensor> {
        if !self.profile.updates || self.depth > 0 {
            return None;
        }
        let parameter = self.random.pick(&self.own);
        let ty = self.g.parameters[parameter].ty.clone();
        let same: Vec<Tensor> = self
            .pool
            .iter()
            .copied()
            .filter(|&tensor| *self.g.ty(tensor) == ty)
            .collect();
        if same.is_empty() {
            return None;
        }
        let value = self.random.pick(&same);
        self.g.update(parameter, value);
        Some(self.g.read(parameter))
    }
}
