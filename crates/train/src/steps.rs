//! The loop of a graph that trains.

use ferrozyme_graph::{Graph, INDEX, Parameter, Tensor, TensorType};

/// Under this name the graph gives the number of each step and its loss.
pub(crate) const LOSS: &str = "training.loss";

/// The states of a loop that trains.
#[derive(Clone, Copy, Debug)]
pub struct TrainingLoop {
    /// How many steps are done.
    pub(crate) step: Parameter,
    /// How many steps the next run does.
    pub(crate) count: Parameter,
}

/// Appends a loop whose body is a step: it gets the number of the step (`i32[]`) and returns the loss, a tensor without axes.
///
/// The number is a parameter, `training.step`, so that it counts on from run to run; [`Trainer`](crate::Trainer) decides how many steps a run has.
///
/// # Panics
/// If the loss is no tensor of one float.
#[track_caller]
pub fn training_loop(
    g: &mut Graph,
    body: impl FnOnce(&mut Graph, Tensor) -> Tensor,
) -> TrainingLoop {
    let number = TensorType::scalar(INDEX);
    let step = g.parameter_of("training.step", number.clone(), 0.0);
    let count = g.parameter_of("training.count", number, 0.0);
    let times = g.read(count);
    g.for_loop(times, &[], |g, _, _| {
        let number = g.read(step);
        let loss = body(g, number);
        let ty = g.ty(loss);
        assert!(
            ty.is_float() && ty.shape.is_empty(),
            "a loss is one number, not {ty}"
        );
        let next = g.shift(number, 1.0);
        g.update(step, next);
        g.receive(LOSS, &[number, loss]);
        Vec::new()
    });
    TrainingLoop { step, count }
}
