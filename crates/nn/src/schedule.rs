//! Learning rates that depend on the step.

use ferrozyme_graph::{Graph, INDEX, Scalar, Tensor, TensorType};
use std::f64::consts::PI;

/// A learning rate as a function of the number of the step, which is a tensor: the rate is a part of the graph.
///
/// ```
/// use ferrozyme_graph::Graph;
/// use ferrozyme_nn::{Layer, Linear, Module, Schedule, Sgd};
/// let mut g = Graph::new();
/// let layer = Linear::new(&mut g, "layer", 2, 1);
/// let schedule = Schedule::cosine(0.1, 0.001, 900).after_warmup(100);
/// g.repeat(1000, |g, step| {
///     let x = g.feed("x", [4, 2]);
///     let y = layer.forward(g, x);
///     let gradients = g.backward(y);
///     let rate = schedule.rate(g, step);
///     Sgd::new(0.0).step_at(g, rate, &layer.parameters(), &gradients);
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Schedule(Curve);

#[derive(Clone, Debug)]
enum Curve {
    Constant(f64),
    /// From one rate to another in so many steps.
    Linear(f64, f64, u32),
    /// The same along half a cosine.
    Cosine(f64, f64, u32),
    /// Times a factor after each so many steps, all at once or bit by bit.
    Exponential {
        rate: f64,
        factor: f64,
        every: u32,
        at_once: bool,
    },
    /// From 0, in so many steps, to where the other one starts.
    Warmup(u32, Box<Curve>),
}

impl Schedule {
    /// Always the same.
    pub fn constant(rate: f64) -> Schedule {
        Schedule(Curve::Constant(rate))
    }

    /// From `first` in a line to `last` in so many steps, and `last` from then on.
    pub fn linear(first: f64, last: f64, steps: u32) -> Schedule {
        Schedule(Curve::Linear(first, last, steps.max(1)))
    }

    /// From `first` along half a cosine to `last` in so many steps, and `last` from then on.
    pub fn cosine(first: f64, last: f64, steps: u32) -> Schedule {
        Schedule(Curve::Cosine(first, last, steps.max(1)))
    }

    /// `rate·factorˢ` in step `s`.
    pub fn exponential(rate: f64, factor: f64) -> Schedule {
        Schedule(Curve::Exponential {
            rate,
            factor,
            every: 1,
            at_once: false,
        })
    }

    /// `rate`, and times `factor` after each so many steps.
    pub fn stairs(rate: f64, factor: f64, every: u32) -> Schedule {
        Schedule(Curve::Exponential {
            rate,
            factor,
            every: every.max(1),
            at_once: true,
        })
    }

    /// Before it, so many steps in a line to where it starts: step `s` has `(s + 1)/(steps + 1)` of that.
    #[must_use]
    pub fn after_warmup(self, steps: u32) -> Schedule {
        match steps {
            0 => self,
            _ => Schedule(Curve::Warmup(steps, Box::new(self.0))),
        }
    }

    /// The rate (`f32[]`) in a step (`i32[]`), of which the first is 0.
    ///
    /// # Panics
    /// If the step has another type.
    #[track_caller]
    pub fn rate(&self, g: &mut Graph, step: Tensor) -> Tensor {
        assert_eq!(
            *g.ty(step),
            TensorType::scalar(INDEX),
            "a step is a tensor of one i32"
        );
        // In double precision: a power of many steps would not be exact otherwise, and one number costs nothing.
        let step = g.cast(step, Scalar::F64);
        let rate = self.0.at(g, step);
        g.cast(rate, Scalar::F32)
    }
}

impl Curve {
    /// The rate in a step, both as doubles.
    fn at(&self, g: &mut Graph, step: Tensor) -> Tensor {
        match self {
            Curve::Constant(rate) => g.constant_like(step, *rate),
            Curve::Linear(first, last, steps) => {
                let part = part_of(g, step, *steps);
                let change = g.scale(part, last - first);
                g.shift(change, *first)
            }
            Curve::Cosine(first, last, steps) => {
                let part = part_of(g, step, *steps);
                let angle = g.scale(part, PI);
                let cosine = g.cos(angle);
                let change = g.scale(cosine, (first - last) / 2.0);
                g.shift(change, (first + last) / 2.0)
            }
            Curve::Exponential {
                rate,
                factor,
                every,
                at_once,
            } => {
                let mut exponent = g.scale(step, 1.0 / f64::from(*every));
                if *at_once {
                    // Towards zero, which is down here. A half more, so that a quotient that is rounded down does not lose a step.
                    let middle = g.shift(step, 0.5);
                    let times = g.scale(middle, 1.0 / f64::from(*every));
                    let times = g.cast(times, INDEX);
                    exponent = g.cast(times, Scalar::F64);
                }
                let base = g.constant_like(step, *factor);
                let power = g.pow(base, exponent);
                g.scale(power, *rate)
            }
            Curve::Warmup(steps, then) => {
                let steps = f64::from(*steps);
                let zero = g.constant_like(step, 0.0);
                let behind = g.shift(step, -steps);
                let behind = g.maximum(behind, zero);
                let rate = then.at(g, behind);
                let next = g.shift(step, 1.0);
                let part = g.scale(next, 1.0 / (steps + 1.0));
                let one = g.constant_like(step, 1.0);
                let part = g.minimum(part, one);
                g.mul(rate, part)
            }
        }
    }
}

/// Which part of so many steps is over, at most all.
fn part_of(g: &mut Graph, step: Tensor, steps: u32) -> Tensor {
    let part = g.scale(step, 1.0 / f64::from(steps));
    let one = g.constant_like(step, 1.0);
    g.minimum(part, one)
}
