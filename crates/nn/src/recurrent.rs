//! Recurrent layers: a loop of the graph over the positions of a sequence.
//!
//! A sequence is `[positions, batch, size]`. The products of weights and inputs do not depend on states, so that one product of matrices before the loop computes all of them.

use crate::activation::sigmoid;
use crate::initial::uniform;
use crate::linear::limit;
use crate::{Layer, Mode, Module, Visitor};
use ferrozyme_graph::{Graph, INDEX, Parameter, Tensor, TensorType};

/// The weights of a recurrent layer, for all its gates side by side.
#[derive(Module)]
struct Gates {
    weight_input: Parameter,
    weight_hidden: Parameter,
    bias_input: Parameter,
    bias_hidden: Parameter,
}

impl Gates {
    #[track_caller]
    fn new(g: &mut Graph, name: &str, inputs: usize, size: usize, gates: usize) -> Gates {
        let mut parameter = |part: &str, shape: &[usize]| {
            let name = format!("{name}.{part}");
            g.parameter(&name, shape, uniform(&name, shape, limit(size)))
        };
        Gates {
            weight_input: parameter("weight_input", &[inputs, gates * size]),
            weight_hidden: parameter("weight_hidden", &[size, gates * size]),
            bias_input: parameter("bias_input", &[gates * size]),
            bias_hidden: parameter("bias_hidden", &[gates * size]),
        }
    }

    /// Runs a loop over the positions. The step gets the part of the gates that the input decides, that of the hidden state, and the states, of which the first is the hidden one.
    /// Returns the hidden states of all positions, and the last states.
    #[track_caller]
    fn run(
        &self,
        g: &mut Graph,
        x: Tensor,
        states: &[Tensor],
        step: impl FnOnce(&mut Graph, [Tensor; 2], &[Tensor]) -> Vec<Tensor>,
    ) -> (Tensor, Vec<Tensor>) {
        let shape = g.ty(x).shape.clone();
        let weight = g.read(self.weight_input);
        let inputs = g.ty(weight).shape[0];
        assert!(
            shape.len() == 3 && shape[2] == inputs,
            "a recurrent layer needs [positions, batch, {inputs}], but it was given {}",
            g.ty(x)
        );
        let (positions, batch) = (shape[0], shape[1]);
        let flat = g.reshape(x, [positions * batch, inputs]);
        let product = g.contract("ij,jk->ik", flat, weight);
        let bias = g.read(self.bias_input);
        let sum = g.add(product, bias);
        let gates = g.ty(sum).shape[1];
        let of_inputs = g.reshape(sum, [positions, batch, gates]);
        // Read before the loop, in which gradients go through no reading.
        let (weight, bias) = (g.read(self.weight_hidden), g.read(self.bias_hidden));
        let mut all = vec![positions];
        all.extend_from_slice(&g.ty(states[0]).shape);
        let element = g.ty(x).element;
        let mut carried = states.to_vec();
        carried.push(g.constant(TensorType::new(element, &all[..]), 0.0));
        let count = g.constant(TensorType::scalar(INDEX), positions as f64);
        let mut results = g.for_loop(count, &carried, |g, position, carried| {
            let (outputs, states) = carried.split_last().expect("the outputs are carried");
            let of_input = g.gather(of_inputs, position, 0);
            let product = g.contract("ij,jk->ik", states[0], weight);
            let of_hidden = g.add(product, bias);
            let mut next = step(g, [of_input, of_hidden], states);
            next.push(g.scatter_add(*outputs, position, next[0], 0));
            next
        });
        let outputs = results.pop().expect("the outputs are carried");
        (outputs, results)
    }

    /// A state of zeros for a sequence.
    #[track_caller]
    fn zeros(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let size = g.parameters[self.weight_hidden].ty.shape[0];
        let shape = &g.ty(x).shape;
        assert!(
            shape.len() == 3,
            "a sequence is [positions, batch, size], not {}",
            g.ty(x)
        );
        let ty = TensorType::new(g.ty(x).element, [shape[1], size]);
        g.constant(ty, 0.0)
    }
}

/// One of the gates, which are side by side.
#[track_caller]
fn gate(g: &mut Graph, gates: Tensor, number: usize, count: usize) -> Tensor {
    let size = g.ty(gates).shape[1] / count;
    g.part(gates, 1, number * size..(number + 1) * size)
}

/// A gated recurrent unit (Cho et al., 2014), with gates in PyTorch's order: reset, update, new.
///
/// `h ← (1 − z)·n + z·h` with `r, z = σ(W·x + b + V·h + c)` and `n = tanh(W·x + b + r·(V·h + c))`.
pub struct Gru {
    gates: Gates,
}

impl Gru {
    /// For inputs and states of these sizes. The parameters are called `name.weight_input`, `name.weight_hidden`, `name.bias_input` and `name.bias_hidden`, and begin uniform between ±1/√size.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, inputs: usize, size: usize) -> Gru {
        Gru {
            gates: Gates::new(g, name, inputs, size, 3),
        }
    }

    /// The states at all positions, and the last one, from a state `[batch, size]`; from zeros if there is none.
    #[track_caller]
    pub fn run(&self, g: &mut Graph, x: Tensor, state: Option<Tensor>) -> (Tensor, Tensor) {
        let state = state.unwrap_or_else(|| self.gates.zeros(g, x));
        let (outputs, states) = self.gates.run(g, x, &[state], |g, gates, states| {
            let [reset, update] = [0, 1].map(|number| {
                let [input, hidden] = gates.map(|gates| gate(g, gates, number, 3));
                let sum = g.add(input, hidden);
                sigmoid(g, sum)
            });
            let [input, hidden] = gates.map(|gates| gate(g, gates, 2, 3));
            let kept = g.mul(reset, hidden);
            let sum = g.add(input, kept);
            let new = g.tanh(sum);
            // (1 − z)·n + z·h
            let change = g.sub(states[0], new);
            let change = g.mul(update, change);
            vec![g.add(new, change)]
        });
        (outputs, states[0])
    }
}

impl Module for Gru {
    fn visit(&self, visitor: &mut Visitor) {
        self.gates.visit(visitor);
    }
}

impl Layer for Gru {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        self.run(g, x, None).0
    }
}

/// Long short-term memory (Hochreiter and Schmidhuber, 1997), with gates in PyTorch's order: input, forget, cell, output.
///
/// `c ← f·c + i·tanh(…)`, `h ← o·tanh(c)`.
pub struct Lstm {
    gates: Gates,
}

impl Lstm {
    /// For inputs and states of these sizes. The parameters are those of [`Gru::new`].
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, inputs: usize, size: usize) -> Lstm {
        Lstm {
            gates: Gates::new(g, name, inputs, size, 4),
        }
    }

    /// The hidden states at all positions, and the last hidden state and cell, from two of shape `[batch, size]`; from zeros if there are none.
    #[track_caller]
    pub fn run(
        &self,
        g: &mut Graph,
        x: Tensor,
        states: Option<[Tensor; 2]>,
    ) -> (Tensor, [Tensor; 2]) {
        let states = states.unwrap_or_else(|| [self.gates.zeros(g, x); 2]);
        let (outputs, states) = self.gates.run(g, x, &states, |g, [input, hidden], states| {
            let gates = g.add(input, hidden);
            let [input, forget, new, output] = [0, 1, 2, 3].map(|number| gate(g, gates, number, 4));
            let [input, forget, output] = [input, forget, output].map(|gate| sigmoid(g, gate));
            let new = g.tanh(new);
            let kept = g.mul(forget, states[1]);
            let added = g.mul(input, new);
            let cell = g.add(kept, added);
            let bent = g.tanh(cell);
            vec![g.mul(output, bent), cell]
        });
        (outputs, [states[0], states[1]])
    }
}

impl Module for Lstm {
    fn visit(&self, visitor: &mut Visitor) {
        self.gates.visit(visitor);
    }
}

impl Layer for Lstm {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        self.run(g, x, None).0
    }
}
