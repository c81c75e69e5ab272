//! The functions that the model is made of, from operations of the graph.

use ferrozyme_graph::{Graph, INDEX, IntPredicate, Reduction, Tensor, TensorType};

/// √(2/π).
const TANH_SCALE: f64 = 0.797_884_560_802_865_4;
const TANH_CUBE: f64 = 0.044715;

/// `½x (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
#[track_caller]
pub fn gelu(g: &mut Graph, x: Tensor) -> Tensor {
    let square = g.mul(x, x);
    let inner = g.scale(square, TANH_SCALE * TANH_CUBE);
    let inner = g.shift(inner, TANH_SCALE);
    let inner = g.mul(x, inner);
    let tanh = g.tanh(inner);
    let sum = g.shift(tanh, 1.0);
    let half = g.scale(x, 0.5);
    g.mul(half, sum)
}

/// Logits of `[rows, padded classes]` of which only so many classes have any probability.
#[track_caller]
pub fn with_classes(g: &mut Graph, logits: Tensor, classes: usize) -> Tensor {
    let shape = g.ty(logits).shape.clone();
    if shape[1] == classes {
        return logits;
    }
    let class = g.iota(TensorType::new(INDEX, shape.clone()), 1);
    let end = g.constant(TensorType::new(INDEX, shape), classes as f64);
    let is_class = g.compare_integers(IntPredicate::Slt, class, end);
    let none = g.constant_like(logits, f64::NEG_INFINITY);
    g.select(is_class, logits, none)
}

/// The mean over rows of `−log softmax(logits)[target]`, for logits of `[rows, classes]` and targets of `[rows]`.
#[track_caller]
pub fn cross_entropy(g: &mut Graph, logits: Tensor, targets: Tensor) -> Tensor {
    let shape = g.ty(logits).shape.clone();
    let (rows, classes) = (shape[0], shape[1]);
    let largest = g.reduce(Reduction::Max, logits, &[1]);
    // Whatever is subtracted makes no difference, so it is no part of the gradient.
    let largest = g.detach(largest);
    let spread = g.broadcast(largest, &[(1, classes)]);
    let shifted = g.sub(logits, spread);
    let powers = g.exp(shifted);
    let sums = g.sum(powers, &[1]);
    let logs = g.log(sums);
    let class = g.iota(TensorType::new(INDEX, shape), 1);
    let target = g.broadcast(targets, &[(1, classes)]);
    let is_target = g.compare_integers(IntPredicate::Eq, class, target);
    let zeros = g.constant_like(shifted, 0.0);
    let chosen = g.select(is_target, shifted, zeros);
    let chosen = g.sum(chosen, &[1]);
    let losses = g.sub(logs, chosen);
    let sum = g.sum_all(losses);
    g.scale(sum, 1.0 / rows as f64)
}
