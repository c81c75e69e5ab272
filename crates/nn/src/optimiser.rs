//! Optimisers: they append the updates of parameters to a graph.
//!
//! `step` has the learning rate that the optimiser was made with, `step_at` one that is a tensor: that of a [`Schedule`](crate::Schedule). What an optimiser remembers are parameters of the graph,
//! so that they are saved with it. Parameters without a gradient stay as they are.

use ferrozyme_graph::{Gradients, Graph, Parameter, Scalar, Tensor, TensorType};

/// Gradient descent: `w ← w − rate·g`, if wanted with momentum: `v ← momentum·v + g`, `w ← w − rate·v`.
pub struct Sgd {
    rate: f64,
    momentum: f64,
    nesterov: bool,
    decay: f64,
    /// The velocities, if there is momentum.
    velocities: Option<Vec<(Parameter, Parameter)>>,
}

impl Sgd {
    /// With this learning rate.
    pub fn new(rate: f64) -> Sgd {
        Sgd {
            rate,
            momentum: 0.0,
            nesterov: false,
            decay: 0.0,
            velocities: None,
        }
    }

    /// With momentum, for these parameters: `v ← momentum·v + g`, `w ← w − rate·v`. The velocities are parameters `sgd.velocity.…` that start with zeros.
    #[track_caller]
    pub fn with_momentum(g: &mut Graph, rate: f64, momentum: f64, parameters: &[Parameter]) -> Sgd {
        Sgd {
            momentum,
            velocities: Some(with_states(g, "sgd.velocity", parameters)),
            ..Sgd::new(rate)
        }
    }

    /// With Nesterov's momentum: `w ← w − rate·(g + momentum·v)`, with the new `v`.
    #[must_use]
    pub fn nesterov(self) -> Sgd {
        Sgd {
            nesterov: true,
            ..self
        }
    }

    /// With weight decay: `decay·w` is added to each gradient.
    #[must_use]
    pub fn with_decay(self, decay: f64) -> Sgd {
        Sgd { decay, ..self }
    }

    /// Updates the parameters that have a gradient.
    ///
    /// # Panics
    /// If there is momentum, and it was not made for one of them.
    #[track_caller]
    pub fn step(&self, g: &mut Graph, parameters: &[Parameter], gradients: &Gradients) {
        let rate = g.constant(TensorType::scalar(Scalar::F64), self.rate);
        self.step_at(g, rate, parameters, gradients);
    }

    /// As [`step`](Self::step), with another learning rate (`f32[]`).
    #[track_caller]
    pub fn step_at(
        &self,
        g: &mut Graph,
        rate: Tensor,
        parameters: &[Parameter],
        gradients: &Gradients,
    ) {
        for &parameter in parameters {
            let Some(mut gradient) = gradients.of_parameter(parameter) else {
                continue;
            };
            let value = g.read(parameter);
            if self.decay != 0.0 {
                let decay = g.scale(value, self.decay);
                gradient = g.add(gradient, decay);
            }
            if let Some(velocities) = &self.velocities {
                gradient = self.accelerated(g, parameter, gradient, velocities);
            }
            let rate = g.cast(rate, g.ty(value).element);
            let change = g.mul(gradient, rate);
            let next = g.sub(value, change);
            g.update(parameter, next);
        }
    }

    #[track_caller]
    fn accelerated(
        &self,
        g: &mut Graph,
        parameter: Parameter,
        gradient: Tensor,
        velocities: &[(Parameter, Parameter)],
    ) -> Tensor {
        let own = velocities.iter().find(|(other, _)| *other == parameter);
        let Some(&(_, state)) = own else {
            let name = &g.parameters[parameter].name;
            panic!("the optimiser was made without momentum for \"{name}\"");
        };
        let old = g.read(state);
        let kept = g.scale(old, self.momentum);
        let velocity = g.add(kept, gradient);
        g.update(state, velocity);
        if !self.nesterov {
            return velocity;
        }
        let ahead = g.scale(velocity, self.momentum);
        g.add(gradient, ahead)
    }
}

/// The name of an optimiser of this kind, of which there may be several in a graph: the first one without a parameter `name.state`.
fn own_name(g: &Graph, kind: &str, state: &str) -> String {
    let numbered = (2..).map(|number| format!("{kind}{number}"));
    let mut names = std::iter::once(kind.to_owned()).chain(numbered);
    let is_free = |name: &String| g.parameter_named(&format!("{name}.{state}")).is_none();
    names
        .find(is_free)
        .expect("there are more names than parameters")
}

/// For each parameter another one of its type, which starts with zeros.
#[track_caller]
fn with_states(g: &mut Graph, kind: &str, parameters: &[Parameter]) -> Vec<(Parameter, Parameter)> {
    let mut states = Vec::new();
    for &parameter in parameters {
        let data = g.parameters[parameter].clone();
        assert!(
            data.ty.is_float(),
            "\"{}\" is {}, which cannot be trained",
            data.name,
            data.ty
        );
        let name = format!("{kind}.{}", data.name);
        states.push((parameter, g.parameter_of(&name, data.ty, 0.0)));
    }
    states
}

/// Adam (Kingma and Ba, 2015): moving averages of gradients and of their squares, as parameters of the graph.
pub struct Adam {
    rate: f64,
    decays: [f64; 2],
    epsilon: f64,
    /// The averages of gradients and of squares.
    averages: [Vec<(Parameter, Parameter)>; 2],
    /// The powers of the two decays.
    powers: [Parameter; 2],
}

impl Adam {
    /// With this learning rate and the usual constants (0.9, 0.999 and 1e-8), for these parameters. The averages are parameters `adam.mean.…` and `adam.variance.…`; a second optimiser of a graph has `adam2.…`.
    #[track_caller]
    pub fn new(g: &mut Graph, rate: f64, parameters: &[Parameter]) -> Adam {
        let name = own_name(g, "adam", "mean");
        let kinds = ["mean", "variance"].map(|kind| format!("{name}.{kind}"));
        // 1 − 0.999 in single precision has four digits.
        let number = TensorType::scalar(Scalar::F64);
        Adam {
            rate,
            decays: [0.9, 0.999],
            epsilon: 1e-8,
            averages: kinds
                .each_ref()
                .map(|kind| with_states(g, kind, parameters)),
            powers: kinds
                .each_ref()
                .map(|kind| g.parameter_of(kind, number.clone(), 1.0)),
        }
    }

    /// With other decays of the averages.
    #[must_use]
    pub fn with_decays(self, mean: f64, variance: f64) -> Adam {
        Adam {
            decays: [mean, variance],
            ..self
        }
    }

    /// With another number that keeps the division finite.
    #[must_use]
    pub fn with_epsilon(self, epsilon: f64) -> Adam {
        Adam { epsilon, ..self }
    }

    /// Updates the parameters that have a gradient.
    #[track_caller]
    pub fn step(&self, g: &mut Graph, gradients: &Gradients) {
        let rate = g.constant(TensorType::scalar(Scalar::F64), self.rate);
        self.step_at(g, rate, gradients);
    }

    /// As [`step`](Self::step), with another learning rate (`f32[]`).
    #[track_caller]
    pub fn step_at(&self, g: &mut Graph, rate: Tensor, gradients: &Gradients) {
        self.step_decayed(g, rate, gradients, &|_| 0.0);
    }

    /// `m ← β₁·m + (1 − β₁)·g`, `v ← β₂·v + (1 − β₂)·g²`, `w ← w·(1 − rate·decay) − rate·(m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + ε)`.
    #[track_caller]
    fn step_decayed(
        &self,
        g: &mut Graph,
        rate: Tensor,
        gradients: &Gradients,
        decay_of: &dyn Fn(Parameter) -> f64,
    ) {
        let rate = g.cast(rate, Scalar::F64);
        // 1 − βᵗ: by how much averages that began with zeros are too small.
        let [mean, variance] = [0, 1].map(|index| {
            let before = g.read(self.powers[index]);
            let now = g.scale(before, self.decays[index]);
            g.update(self.powers[index], now);
            let negative = g.neg(now);
            g.shift(negative, 1.0)
        });
        let pace = g.div(rate, mean);
        let one = g.constant_like(variance, 1.0);
        let inverse = g.div(one, variance);
        let correction = g.sqrt(inverse);
        for position in 0..self.averages[0].len() {
            let parameter = self.averages[0][position].0;
            let Some(gradient) = gradients.of_parameter(parameter) else {
                continue;
            };
            let square = g.mul(gradient, gradient);
            let [mean, variance] = [(0, gradient), (1, square)].map(|(index, new)| {
                let state = self.averages[index][position].1;
                let old = g.read(state);
                let kept = g.scale(old, self.decays[index]);
                let added = g.scale(new, 1.0 - self.decays[index]);
                let average = g.add(kept, added);
                g.update(state, average);
                average
            });
            let element = g.ty(gradient).element;
            let [pace, correction] = [pace, correction].map(|number| g.cast(number, element));
            let root = g.sqrt(variance);
            let root = g.mul(root, correction);
            let divisor = g.shift(root, self.epsilon);
            let direction = g.div(mean, divisor);
            let change = g.mul(direction, pace);
            let mut value = g.read(parameter);
            let decay = decay_of(parameter);
            if decay != 0.0 {
                let lost = g.scale(rate, -decay);
                let kept = g.shift(lost, 1.0);
                let kept = g.cast(kept, element);
                value = g.mul(value, kept);
            }
            let next = g.sub(value, change);
            g.update(parameter, next);
        }
    }
}

/// Adam with weight decay beside the gradient (Loshchilov and Hutter, 2019): each step begins with `w ← w·(1 − rate·decay)`.
pub struct AdamW {
    adam: Adam,
    decay: f64,
    undecayed: Vec<Parameter>,
}

impl AdamW {
    /// As [`Adam::new`], with this decay for all parameters.
    #[track_caller]
    pub fn new(g: &mut Graph, rate: f64, decay: f64, parameters: &[Parameter]) -> AdamW {
        AdamW::of(Adam::new(g, rate, parameters), decay)
    }

    /// Adam with this decay for all parameters.
    pub fn of(adam: Adam, decay: f64) -> AdamW {
        AdamW {
            adam,
            decay,
            undecayed: Vec::new(),
        }
    }

    /// Without decay for these parameters: biases and weights of norms, in many models.
    #[must_use]
    pub fn without_decay_for(mut self, parameters: &[Parameter]) -> AdamW {
        self.undecayed.extend_from_slice(parameters);
        self
    }

    /// Updates the parameters that have a gradient.
    #[track_caller]
    pub fn step(&self, g: &mut Graph, gradients: &Gradients) {
        let rate = g.constant(TensorType::scalar(Scalar::F64), self.adam.rate);
        self.step_at(g, rate, gradients);
    }

    /// As [`step`](Self::step), with another learning rate (`f32[]`).
    #[track_caller]
    pub fn step_at(&self, g: &mut Graph, rate: Tensor, gradients: &Gradients) {
        let decay = |parameter| match self.undecayed.contains(&parameter) {
            true => 0.0,
            false => self.decay,
        };
        self.adam.step_decayed(g, rate, gradients, &decay);
    }
}
