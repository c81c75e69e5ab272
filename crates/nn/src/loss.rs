//! Losses: how far results are from what they should be, as a tensor without axes.
//!
//! Means are over all elements, or over all rows where a row is about classes: the classes are the last axis. Classes are given as indices (`i32`), one per row.
//!
//! ```
//! use ferrozyme_graph::{Graph, Scalar, TensorType, INDEX};
//! use ferrozyme_nn::loss::cross_entropy;
//! let mut g = Graph::new();
//! let logits = g.feed("logits", [4, 10]);
//! let classes = g.feed_of("classes", TensorType::new(INDEX, [4]));
//! let loss = cross_entropy(&mut g, logits, classes);
//! assert_eq!(g.ty(loss).to_string(), "f32[]");
//! ```

use crate::activation::{along_last, log_softmax};
use ferrozyme_graph::{FloatPredicate, Graph, INDEX, IntPredicate, Tensor};

/// The mean of `(y − target)²`.
#[track_caller]
pub fn mean_squared_error(g: &mut Graph, y: Tensor, target: Tensor) -> Tensor {
    let error = difference(g, y, target);
    let square = g.mul(error, error);
    mean(g, square)
}

/// The mean of `|y − target|`. Where both are equal, the derivative is 0.
#[track_caller]
pub fn mean_absolute_error(g: &mut Graph, y: Tensor, target: Tensor) -> Tensor {
    let error = difference(g, y, target);
    let distance = g.abs(error);
    mean(g, distance)
}

/// The divergence of Kullback and Leibler from a distribution to the one whose logarithms are given: the sum of `target·(log target − logarithm)` over the last axis, and its mean over all rows.
/// Where `target` is 0, the product is 0.
#[track_caller]
pub fn kl_divergence(g: &mut Graph, logarithms: Tensor, target: Tensor) -> Tensor {
    check_same(g, logarithms, target);
    let rows = rows(g, target);
    let zero = g.constant_like(target, 0.0);
    let one = g.constant_like(target, 1.0);
    let is_positive = g.compare(FloatPredicate::Ogt, target, zero);
    // The logarithm of 1 in place of that of 0, so that neither values nor derivatives are infinite.
    let positive = g.select(is_positive, target, one);
    let logarithm = g.log(positive);
    let difference = g.sub(logarithm, logarithms);
    let product = g.mul(target, difference);
    let product = g.select(is_positive, product, zero);
    let sum = g.sum_all(product);
    g.scale(sum, 1.0 / rows)
}

/// The mean cross-entropy of probabilities, given as logits (`log p/(1 − p)`), to targets between 0 and 1, element by element.
#[track_caller]
pub fn binary_cross_entropy(g: &mut Graph, logits: Tensor, target: Tensor) -> Tensor {
    check_same(g, logits, target);
    // log(1 + e^x) = m + log(e^−m + e^(x − m)) for any m; with max(x, 0) nothing overflows.
    let zero = g.constant_like(logits, 0.0);
    let largest = g.maximum(logits, zero);
    let largest = g.detach(largest);
    let negative = g.neg(largest);
    let first = g.exp(negative);
    let shifted = g.sub(logits, largest);
    let second = g.exp(shifted);
    let sum = g.add(first, second);
    let logarithm = g.log(sum);
    let total = g.add(largest, logarithm);
    let product = g.mul(logits, target);
    let loss = g.sub(total, product);
    mean(g, loss)
}

/// The mean of `−log p` of the right classes, where `p` is the [softmax](crate::softmax) of logits. [`CrossEntropy`] has options.
#[track_caller]
pub fn cross_entropy(g: &mut Graph, logits: Tensor, classes: Tensor) -> Tensor {
    CrossEntropy::default().of_logits(g, logits, classes)
}

/// The mean of `−log p` of the right classes, where the logarithms are given.
#[track_caller]
pub fn negative_log_likelihood(g: &mut Graph, logarithms: Tensor, classes: Tensor) -> Tensor {
    CrossEntropy::default().of_logarithms(g, logarithms, classes)
}

/// The cross-entropy of classes, with options.
///
/// An index that is no class, and not the ignored one, makes the loss and its gradient NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct CrossEntropy {
    /// Rows with this index instead of a class count nothing. If all rows have it, the mean is NaN.
    pub ignored: Option<i32>,
    /// How much of a class goes in equal parts to all classes: the target is `(1 − smoothing)·class + smoothing/classes`.
    pub smoothing: f64,
}

impl CrossEntropy {
    /// The mean over the rows that are not ignored, where `p` is the softmax of logits.
    #[track_caller]
    pub fn of_logits(&self, g: &mut Graph, logits: Tensor, classes: Tensor) -> Tensor {
        check_classes(g, logits, classes);
        let logarithms = log_softmax(g, logits);
        self.of_logarithms(g, logarithms, classes)
    }

    /// The mean over the rows that are not ignored, where the logarithms of the probabilities are given.
    #[track_caller]
    pub fn of_logarithms(&self, g: &mut Graph, logarithms: Tensor, classes: Tensor) -> Tensor {
        let rows = self.rows(g, logarithms, classes);
        let sum = g.sum_all(rows);
        match self.ignored(g, classes) {
            None => {
                let count = g.ty(rows).shape.count();
                g.scale(sum, 1.0 / count as f64)
            }
            Some(ignored) => {
                let (one, zero) = (g.constant_like(rows, 1.0), g.constant_like(rows, 0.0));
                let counted = g.select(ignored, zero, one);
                let count = g.sum_all(counted);
                g.div(sum, count)
            }
        }
    }

    /// The loss of each row, where the logarithms of the probabilities are given; 0 for those that are ignored.
    #[track_caller]
    pub fn rows(&self, g: &mut Graph, logarithms: Tensor, classes: Tensor) -> Tensor {
        check_classes(g, logarithms, classes);
        let shape = g.ty(logarithms).shape.clone();
        let last = shape.len() - 1;
        let count = shape[last];
        let ignored = self.ignored(g, classes);
        let is_unknown = self.is_unknown(g, classes, count);
        // Of each row, the element of its class: compared and summed up, so that both directions stay element by element. Of a row with an unknown class all of them, so that the whole gradient is NaN.
        let number = g.ty(logarithms).with_element(INDEX);
        let numbers = g.iota(number, last);
        let class = along_last(g, classes, logarithms);
        let is_class = g.compare_integers(IntPredicate::Eq, numbers, class);
        let is_all = along_last(g, is_unknown, logarithms);
        let is_picked = g.or(is_class, is_all);
        let zeros = g.constant_like(logarithms, 0.0);
        let of_class = g.select(is_picked, logarithms, zeros);
        let picked = g.sum(of_class, &[last]);
        let mut rows = g.scale(picked, self.smoothing - 1.0);
        if self.smoothing != 0.0 {
            let sum = g.sum(logarithms, &[last]);
            let share = g.scale(sum, -self.smoothing / count as f64);
            rows = g.add(rows, share);
        }
        let (one, nan) = (g.constant_like(rows, 1.0), g.constant_like(rows, f64::NAN));
        let factor = g.select(is_unknown, nan, one);
        let rows = g.mul(rows, factor);
        match ignored {
            Some(ignored) => {
                let zeros = g.constant_like(rows, 0.0);
                g.select(ignored, zeros, rows)
            }
            None => rows,
        }
    }

    /// Where an index is no class, and is not ignored.
    fn is_unknown(&self, g: &mut Graph, classes: Tensor, count: usize) -> Tensor {
        let first = g.constant_like(classes, 0.0);
        let end = g.constant_like(classes, count as f64);
        let is_below = g.compare_integers(IntPredicate::Slt, classes, first);
        let is_beyond = g.compare_integers(IntPredicate::Sge, classes, end);
        let is_outside = g.or(is_below, is_beyond);
        match self.ignored(g, classes) {
            Some(ignored) => {
                let no = g.constant_like(is_outside, 0.0);
                g.select(ignored, no, is_outside)
            }
            None => is_outside,
        }
    }

    fn ignored(&self, g: &mut Graph, classes: Tensor) -> Option<Tensor> {
        let index = g.constant_like(classes, f64::from(self.ignored?));
        Some(g.compare_integers(IntPredicate::Eq, classes, index))
    }
}

/// The mean of all elements.
fn mean(g: &mut Graph, tensor: Tensor) -> Tensor {
    let share = 1.0 / g.ty(tensor).shape.count() as f64;
    let sum = g.sum_all(tensor);
    g.scale(sum, share)
}

#[track_caller]
fn difference(g: &mut Graph, y: Tensor, target: Tensor) -> Tensor {
    check_same(g, y, target);
    g.sub(y, target)
}

/// Operands that are broadcast are a mistake here more often than not, so they are an error.
#[track_caller]
fn check_same(g: &Graph, y: Tensor, target: Tensor) {
    let (y, target) = (g.ty(y), g.ty(target));
    assert_eq!(
        y, target,
        "a loss of {y} needs a target of the same type, not {target}"
    );
}

#[track_caller]
fn check_classes(g: &Graph, values: Tensor, classes: Tensor) {
    let (values, classes) = (g.ty(values), g.ty(classes));
    let fits = match values.shape.split_last() {
        Some((_, rows)) => classes.element == INDEX && classes.shape[..] == *rows,
        None => false,
    };
    assert!(
        fits,
        "a loss of {values} needs an index of a class (i32) for each row, not {classes}"
    );
}

/// The number of rows.
fn rows(g: &Graph, tensor: Tensor) -> f64 {
    let shape = &g.ty(tensor).shape;
    let (_, rows) = shape.split_last().expect("a distribution needs an axis");
    rows.iter().product::<usize>() as f64
}
