//! Optimisers: they append the updates of parameters to a graph.

use ferrozyme_graph::{Gradients, Graph, Parameter};

/// Gradient descent: `w ← w − rate·g`.
pub struct Sgd {
    rate: f64,
}

impl Sgd {
    /// With this learning rate.
    pub fn new(rate: f64) -> Sgd {
        Sgd { rate }
    }

    /// Updates the parameters that have a gradient.
    #[track_caller]
    pub fn step(&self, g: &mut Graph, parameters: &[Parameter], gradients: &Gradients) {
        for &parameter in parameters {
            if let Some(gradient) = gradients.of_parameter(parameter) {
                let value = g.read(parameter);
                let change = g.scale(gradient, self.rate);
                let next = g.sub(value, change);
                g.update(parameter, next);
            }
        }
    }
}

/// Adam (Kingma and Ba, 2015): moving averages of gradients and of their squares, as parameters of the graph.
pub struct Adam {
    rate: f64,
    decay: [f64; 2],
    epsilon: f64,
    /// For each parameter, the two averages.
    states: Vec<(Parameter, [Parameter; 2])>,
    /// The powers of the two decays.
    powers: [Parameter; 2],
}

impl Adam {
    /// With this learning rate and the usual constants, for these parameters.
    #[track_caller]
    pub fn new(g: &mut Graph, rate: f64, parameters: &[Parameter]) -> Adam {
        let mut state = |&parameter: &Parameter| {
            let data = g.parameters[parameter].clone();
            let states = ["mean", "variance"].map(|average| {
                let name = format!("adam.{average}.{}", data.name);
                g.parameter_of(&name, data.ty.clone(), 0.0)
            });
            (parameter, states)
        };
        let states = parameters.iter().map(&mut state).collect();
        Adam {
            rate,
            decay: [0.9, 0.999],
            epsilon: 1e-8,
            states,
            powers: ["mean", "variance"]
                .map(|average| g.parameter(&format!("adam.{average}"), [], 1.0)),
        }
    }

    /// Updates the parameters that have a gradient.
    #[track_caller]
    pub fn step(&self, g: &mut Graph, gradients: &Gradients) {
        // 1 − βᵗ: by how much averages that began with zeros are too small.
        let mut corrections = Vec::new();
        for (&power, &decay) in self.powers.iter().zip(&self.decay) {
            let before = g.read(power);
            let now = g.scale(before, decay);
            g.update(power, now);
            let negative = g.neg(now);
            corrections.push(g.shift(negative, 1.0));
        }
        for &(parameter, states) in &self.states {
            let Some(gradient) = gradients.of_parameter(parameter) else {
                continue;
            };
            let square = g.mul(gradient, gradient);
            let mut averages = Vec::new();
            for (index, (state, new)) in states.into_iter().zip([gradient, square]).enumerate() {
                let old = g.read(state);
                let kept = g.scale(old, self.decay[index]);
                let added = g.scale(new, 1.0 - self.decay[index]);
                let average = g.add(kept, added);
                g.update(state, average);
                averages.push(g.div(average, corrections[index]));
            }
            let root = g.sqrt(averages[1]);
            let divisor = g.shift(root, self.epsilon);
            let direction = g.div(averages[0], divisor);
            let change = g.scale(direction, self.rate);
            let value = g.read(parameter);
            let next = g.sub(value, change);
            g.update(parameter, next);
        }
    }
}
