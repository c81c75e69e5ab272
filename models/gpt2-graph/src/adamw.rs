//! AdamW as operations of a graph, with its state as parameters: the steps of [`gpt2::adamw`].

use ferrozyme_graph::{Gradients, Graph, INDEX, Parameter, Scalar, TensorType};
use gpt2::adamw::Settings;

/// The optimiser's state, for each parameter in their order.
#[derive(Clone, Debug)]
pub struct Optimiser {
    settings: Settings,
    /// Steps taken.
    pub steps: Parameter,
    /// For each parameter, the running means of gradients and of their squares.
    pub states: Vec<(Parameter, [Parameter; 2])>,
}

impl Optimiser {
    /// Adds the state to a graph.
    #[track_caller]
    pub fn new(g: &mut Graph, settings: Settings, parameters: &[Parameter]) -> Optimiser {
        let state = |&parameter: &Parameter| {
            let data = g.parameters[parameter].clone();
            let states = ["mean", "square"].map(|state| {
                g.parameter_of(&format!("{state}.{}", data.name), data.ty.clone(), 0.0)
            });
            (parameter, states)
        };
        let states = parameters.iter().map(state).collect();
        Optimiser {
            settings,
            steps: g.parameter_of("steps", TensorType::scalar(INDEX), 0.0),
            states,
        }
    }

    /// Takes a step.
    #[track_caller]
    pub fn step(&self, g: &mut Graph, gradients: &Gradients) {
        let Settings {
            rate,
            beta1,
            beta2,
            epsilon,
            decay,
        } = self.settings;
        let before = g.read(self.steps);
        let one = g.constant_like(before, 1.0);
        let steps = g.add(before, one);
        g.update(self.steps, steps);
        let exponent = g.cast(steps, Scalar::F32);
        // Running means start at zero; these factors take that out.
        let corrections = [beta1, beta2].map(|beta| {
            let base = g.constant_like(exponent, f64::from(beta));
            let power = g.pow(base, exponent);
            let one = g.constant_like(exponent, 1.0);
            let missing = g.sub(one, power);
            g.div(one, missing)
        });
        for &(parameter, [mean, square]) in &self.states {
            let Some(gradient) = gradients.of_parameter(parameter) else {
                continue;
            };
            let gradient_square = g.mul(gradient, gradient);
            let averages = [(mean, gradient, beta1), (square, gradient_square, beta2)].map(
                |(state, new, beta)| {
                    let old = g.read(state);
                    let kept = g.scale(old, f64::from(beta));
                    let added = g.scale(new, f64::from(1.0 - beta));
                    let average = g.add(kept, added);
                    g.update(state, average);
                    average
                },
            );
            let direction = g.mul(averages[0], corrections[0]);
            let scale = g.mul(averages[1], corrections[1]);
            let root = g.sqrt(scale);
            let divisor = g.shift(root, f64::from(epsilon));
            let direction = g.div(direction, divisor);
            let value = g.read(parameter);
            let shrinking = g.scale(value, f64::from(decay));
            let direction = g.add(direction, shrinking);
            let change = g.scale(direction, f64::from(rate));
            let next = g.sub(value, change);
            g.update(parameter, next);
        }
    }
}
