//! Gradients of graphs against finite differences.

use crate::gradcheck::{Differences, Verdict};
use ferrozyme_graph::interpret::{Array, Machine};
use ferrozyme_graph::{Graph, Parameter, Tensor, verify};

/// The name under which [`add_gradients`] has the tensor received.
const VALUE: &str = "value";
/// The step of finite differences and their relative tolerance, for doubles.
const PRECISION: (f64, f64) = (1e-3, 1e-6);

/// Appends the gradients of a tensor by all parameters that it depends on, each received as `gradient of @w`.
pub fn add_gradients(graph: &mut Graph, tensor: Tensor) -> Result<(), String> {
    let seed = graph.constant_like(tensor, 1.0);
    let gradients = graph
        .try_backward(&[(tensor, seed)])
        .map_err(|error| error.to_string())?;
    let parameters: Vec<Parameter> = graph.parameters.keys().collect();
    for parameter in parameters {
        if let Some(gradient) = gradients.of_parameter(parameter) {
            graph.receive(&gradient_of(graph, parameter), &[gradient]);
        }
    }
    Ok(())
}

/// The name under which a gradient is received.
pub(super) fn gradient_of(graph: &Graph, parameter: Parameter) -> String {
    format!("gradient of @{}", graph.parameters[parameter].name)
}

/// Compares the gradients of the sum of a tensor by all parameters with finite differences. Where the function is not smooth, nothing can be said.
pub fn gradcheck(graph: &Graph, tensor: Tensor, feeds: &[(String, Array)]) -> Result<(), String> {
    let mut primal = graph.clone();
    let sum = primal.sum_all(tensor);
    primal.receive(VALUE, &[sum]);
    let mut derivative = graph.clone();
    add_gradients(&mut derivative, tensor)?;
    verify(&derivative).map_err(|error| format!("the derivative is not well formed: {error}"))?;
    let mut machine = Machine::new(&derivative);
    feed(&mut machine, feeds);
    machine
        .run()
        .map_err(|fault| format!("derivative: {fault}"))?;
    let mut direction = Direction::new();
    for (parameter, data) in &graph.parameters {
        if !data.ty.is_float() {
            continue;
        }
        let start = Array::from_literal(&data.ty, &data.initial);
        let direction: Vec<f64> = start.elements.iter().map(|_| direction.next()).collect();
        let gradient = machine.received(&gradient_of(graph, parameter));
        let slope = gradient.map_or(0.0, |gradient| {
            let terms = gradient[0].elements.iter().zip(&direction);
            terms.map(|(gradient, along)| gradient * along).sum()
        });
        let run = |step: f64| -> Result<Vec<f64>, String> {
            let mut machine = Machine::new(&primal);
            feed(&mut machine, feeds);
            let moved = start.elements.iter().zip(&direction);
            let moved = moved.map(|(value, along)| value + step * along).collect();
            machine.set_parameter(parameter, Array::new(data.ty.clone(), moved));
            machine.run().map_err(|fault| fault.to_string())?;
            let value = machine.received(VALUE);
            Ok(value.map_or(Vec::new(), |value| value[0].elements.to_vec()))
        };
        let mut differences = Differences::new(run(0.0)?, run);
        if let Verdict::Differs(estimate) = differences.compare(&[slope], PRECISION)? {
            return Err(format!(
                "the gradient by @{} along a direction is {slope}, but finite differences give {:?}",
                data.name, estimate.slope
            ));
        }
    }
    Ok(())
}

fn feed(machine: &mut Machine<'_>, feeds: &[(String, Array)]) {
    for (name, value) in feeds {
        let value = value.clone();
        machine.feed(name, move || value.clone());
    }
}

/// Numbers of which none is zero and no two are alike.
pub(super) struct Direction {
    state: u32,
}

impl Direction {
    pub(super) fn new() -> Direction {
        Direction { state: 1 }
    }

    pub(super) fn next(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        let unit = f64::from(self.state >> 8) / f64::from(1u32 << 24);
        if self.state & 1 == 0 {
            0.5 + unit
        } else {
            -0.5 - unit
        }
    }
}
