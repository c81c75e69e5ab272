//! Dropout.

use crate::initial::seed_of;
use crate::{Layer, Mode, Module, State};
use ferrozyme_graph::{FloatPredicate, Graph, INDEX, Tensor, TensorType};

/// Sets elements to zero at random in training, and scales the others so that the mean stays. In evaluation nothing changes.
///
/// The random numbers are those of a counter, which is a state of the layer and grows with each use: a run that goes on from a checkpoint drops the same elements as one that was not interrupted.
/// So it cannot stand in a loop of the graph that gradients go through, since that must not change states.
#[derive(Module)]
pub struct Dropout {
    counter: State,
    #[module(skip)]
    rate: f64,
    #[module(skip)]
    seed: u64,
}

impl Dropout {
    /// Drops this part of all elements. The counter is called `name.counter`; the name is also the seed.
    ///
    /// # Panics
    /// If nothing would be left.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, rate: f64) -> Dropout {
        assert!(
            (0.0..1.0).contains(&rate),
            "dropout of {rate}: it must be at least 0 and below 1"
        );
        let counter = format!("{name}.counter");
        Dropout {
            counter: State(g.parameter_of(&counter, TensorType::scalar(INDEX), 0.0)),
            rate,
            seed: seed_of(name),
        }
    }
}

impl Layer for Dropout {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor {
        if mode == Mode::Evaluation || self.rate == 0.0 {
            return x;
        }
        let counter = g.read(self.counter.0);
        let next = g.shift(counter, 1.0);
        g.update(self.counter.0, next);
        let units = g.random(g.ty(x).clone(), self.seed, counter);
        let rate = g.constant_like(x, self.rate);
        let is_kept = g.compare(FloatPredicate::Oge, units, rate);
        let scaled = g.scale(x, 1.0 / (1.0 - self.rate));
        let zeros = g.constant_like(x, 0.0);
        g.select(is_kept, scaled, zeros)
    }
}
