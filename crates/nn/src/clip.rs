//! Limits on gradients.

use ferrozyme_graph::{Gradients, Graph, Parameter, Tensor};

/// Scales the gradients by these parameters so that their common norm is at most `largest`, and returns the norm that they had.
///
/// As in PyTorch, the factor is `largest / (norm + 1e-6)` where that is below 1.
///
/// # Panics
/// If none of the parameters has a gradient.
#[track_caller]
pub fn clip_by_norm(
    g: &mut Graph,
    gradients: &mut Gradients,
    parameters: &[Parameter],
    largest: f64,
) -> Tensor {
    let mut total: Option<Tensor> = None;
    for &parameter in parameters {
        if let Some(gradient) = gradients.of_parameter(parameter) {
            let square = g.mul(gradient, gradient);
            let sum = g.sum_all(square);
            total = Some(match total {
                Some(total) => {
                    let sum = g.cast(sum, g.ty(total).element);
                    g.add(total, sum)
                }
                None => sum,
            });
        }
    }
    let total = total.expect("none of these parameters has a gradient");
    let norm = g.sqrt(total);
    let divisor = g.shift(norm, 1e-6);
    let largest = g.constant_like(norm, largest);
    let factor = g.div(largest, divisor);
    let one = g.constant_like(norm, 1.0);
    let factor = g.minimum(factor, one);
    for &parameter in parameters {
        if let Some(gradient) = gradients.of_parameter(parameter) {
            let factor = g.cast(factor, g.ty(gradient).element);
            let clipped = g.mul(gradient, factor);
            gradients.set_parameter(parameter, clipped);
        }
    }
    norm
}

/// Brings each element of the gradients by these parameters between `−largest` and `largest`.
#[track_caller]
pub fn clip_by_value(
    g: &mut Graph,
    gradients: &mut Gradients,
    parameters: &[Parameter],
    largest: f64,
) {
    for &parameter in parameters {
        if let Some(gradient) = gradients.of_parameter(parameter) {
            let upper = g.constant_like(gradient, largest);
            let lower = g.constant_like(gradient, -largest);
            let clipped = g.minimum(gradient, upper);
            let clipped = g.maximum(clipped, lower);
            gradients.set_parameter(parameter, clipped);
        }
    }
}
