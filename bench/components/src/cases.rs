//! Each component with its memory, ready to be run, measured and compared.

use crate::{
    attention, cross_entropy, gelu, layer_norm, loss, matrix_product, numbers, projection,
};

/// A component with inputs, outputs, seeds and gradients.
pub trait Component {
    /// Its name and size.
    fn name(&self) -> String;
    /// Runs the forward pass.
    fn forward(&mut self);
    /// Puts the seeds into the shadows of the outputs, which derivatives consume.
    fn seed(&mut self);
    /// Runs the hand-written backward pass, after a forward pass.
    fn backward_by_hand(&mut self);
    /// Runs Ferrozyme's derivative with discarded outputs.
    fn backward(&mut self);
    /// Runs Ferrozyme's derivative with outputs.
    fn forward_and_backward(&mut self);
    /// All gradients, one after the other.
    fn gradients(&self) -> Vec<f32>;
    /// Sets all gradients to zero.
    fn clear(&mut self);
    /// The bytes that the forward pass keeps for the hand-written backward pass, inputs and outputs aside.
    fn kept_bytes(&self) -> usize;
}

/// All components at the sizes of GPT-2 with 4 sequences of 64 tokens.
pub fn all() -> Vec<Box<dyn Component>> {
    use crate::{BATCH, CHANNELS, HEADS, STEPS, VOCABULARY, WIDE};
    let tokens = BATCH * STEPS;
    vec![
        Box::new(Product::new(tokens, CHANNELS, CHANNELS, Order::Outputs)),
        Box::new(Product::new(tokens, CHANNELS, CHANNELS, Order::Inputs)),
        Box::new(Attention::new(BATCH, STEPS, CHANNELS, HEADS)),
        Box::new(LayerNorm::new(tokens, CHANNELS)),
        Box::new(Gelu::new(tokens * WIDE)),
        Box::new(CrossEntropy::new(tokens, VOCABULARY)),
        Box::new(Loss::new(tokens, VOCABULARY)),
    ]
}

/// All components at sizes that a test can afford without optimisation.
pub fn small() -> Vec<Box<dyn Component>> {
    vec![
        Box::new(Product::new(5, 19, 7, Order::Outputs)),
        Box::new(Product::new(5, 7, 19, Order::Inputs)),
        Box::new(Attention::new(2, 5, 12, 3)),
        Box::new(LayerNorm::new(4, 37)),
        Box::new(Gelu::new(33)),
        Box::new(CrossEntropy::new(3, 41)),
        Box::new(Loss::new(3, 41)),
    ]
}

/// Which index of the weights of a matrix product is the outer one.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    /// A row for each output: the forward pass is a sum of products.
    Outputs,
    /// A row for each input: the forward pass adds rows.
    Inputs,
}

/// A matrix product with bias.
pub struct Product {
    order: Order,
    channels: usize,
    input: Vec<f32>,
    dinput: Vec<f32>,
    weight: Vec<f32>,
    dweight: Vec<f32>,
    bias: Vec<f32>,
    dbias: Vec<f32>,
    output: Vec<f32>,
    doutput: Vec<f32>,
    seed: Vec<f32>,
}

impl Product {
    /// `tokens` rows of `channels` numbers, `outputs` results for each.
    pub fn new(tokens: usize, channels: usize, outputs: usize, order: Order) -> Self {
        Product {
            order,
            channels,
            input: numbers(tokens * channels, 1),
            dinput: vec![0.0; tokens * channels],
            weight: numbers(channels * outputs, 2),
            dweight: vec![0.0; channels * outputs],
            bias: numbers(outputs, 3),
            dbias: vec![0.0; outputs],
            output: vec![0.0; tokens * outputs],
            doutput: vec![0.0; tokens * outputs],
            seed: numbers(tokens * outputs, 4),
        }
    }
}

impl Component for Product {
    fn name(&self) -> String {
        let order = match self.order {
            Order::Outputs => "",
            Order::Inputs => ", transposed weights",
        };
        format!(
            "matrix product {}×{}{order}",
            self.channels,
            self.bias.len()
        )
    }

    fn forward(&mut self) {
        let forward = match self.order {
            Order::Outputs => matrix_product::forward,
            Order::Inputs => projection::forward,
        };
        forward(
            &self.input,
            &self.weight,
            &self.bias,
            self.channels,
            &mut self.output,
        );
    }

    fn seed(&mut self) {
        self.doutput.copy_from_slice(&self.seed);
    }

    fn backward_by_hand(&mut self) {
        let backward = match self.order {
            Order::Outputs => matrix_product::backward_by_hand,
            Order::Inputs => projection::backward_by_hand,
        };
        backward(
            &self.input,
            &mut self.dinput,
            &self.weight,
            &mut self.dweight,
            &mut self.dbias,
            self.channels,
            &self.doutput,
        );
    }

    fn backward(&mut self) {
        let backward = match self.order {
            Order::Outputs => matrix_product::backward,
            Order::Inputs => projection::backward,
        };
        // SAFETY: the output is not read afterwards without a forward pass.
        unsafe {
            backward(
                &self.input,
                &mut self.dinput,
                &self.weight,
                &mut self.dweight,
                &self.bias,
                &mut self.dbias,
                self.channels,
                &mut self.output,
                &mut self.doutput,
            );
        }
    }

    fn forward_and_backward(&mut self) {
        let both = match self.order {
            Order::Outputs => matrix_product::forward_and_backward,
            Order::Inputs => projection::forward_and_backward,
        };
        both(
            &self.input,
            &mut self.dinput,
            &self.weight,
            &mut self.dweight,
            &self.bias,
            &mut self.dbias,
            self.channels,
            &mut self.output,
            &mut self.doutput,
        );
    }

    fn gradients(&self) -> Vec<f32> {
        [&self.dinput[..], &self.dweight, &self.dbias].concat()
    }

    fn clear(&mut self) {
        self.dinput.fill(0.0);
        self.dweight.fill(0.0);
        self.dbias.fill(0.0);
    }

    fn kept_bytes(&self) -> usize {
        0
    }
}

/// Causal attention.
pub struct Attention {
    steps: usize,
    channels: usize,
    heads: usize,
    input: Vec<f32>,
    dinput: Vec<f32>,
    scores: Vec<f32>,
    dscores: Vec<f32>,
    weights: Vec<f32>,
    dweights: Vec<f32>,
    output: Vec<f32>,
    doutput: Vec<f32>,
    seed: Vec<f32>,
}

impl Attention {
    /// `batch` sequences of `steps` tokens with `channels` numbers each for queries, keys and values.
    pub fn new(batch: usize, steps: usize, channels: usize, heads: usize) -> Self {
        let tokens = batch * steps;
        let squares = batch * heads * steps * steps;
        Attention {
            steps,
            channels,
            heads,
            input: numbers(tokens * 3 * channels, 5),
            dinput: vec![0.0; tokens * 3 * channels],
            scores: vec![0.0; squares],
            dscores: vec![0.0; squares],
            weights: vec![0.0; squares],
            dweights: vec![0.0; squares],
            output: vec![0.0; tokens * channels],
            doutput: vec![0.0; tokens * channels],
            seed: numbers(tokens * channels, 6),
        }
    }
}

impl Component for Attention {
    fn name(&self) -> String {
        format!("attention {}, {} heads", self.channels, self.heads)
    }

    fn forward(&mut self) {
        attention::forward(
            &self.input,
            &mut self.scores,
            &mut self.weights,
            &mut self.output,
            self.steps,
            self.channels,
            self.heads,
        );
    }

    fn seed(&mut self) {
        self.doutput.copy_from_slice(&self.seed);
    }

    fn backward_by_hand(&mut self) {
        attention::backward_by_hand(
            &self.input,
            &mut self.dinput,
            &self.weights,
            &self.doutput,
            self.steps,
            self.channels,
            self.heads,
        );
    }

    fn backward(&mut self) {
        // SAFETY: the outputs are not read afterwards without a forward pass.
        unsafe {
            attention::backward(
                &self.input,
                &mut self.dinput,
                &mut self.scores,
                &mut self.dscores,
                &mut self.weights,
                &mut self.dweights,
                &mut self.output,
                &mut self.doutput,
                self.steps,
                self.channels,
                self.heads,
            );
        }
    }

    fn forward_and_backward(&mut self) {
        attention::forward_and_backward(
            &self.input,
            &mut self.dinput,
            &mut self.scores,
            &mut self.dscores,
            &mut self.weights,
            &mut self.dweights,
            &mut self.output,
            &mut self.doutput,
            self.steps,
            self.channels,
            self.heads,
        );
    }

    fn gradients(&self) -> Vec<f32> {
        self.dinput.clone()
    }

    fn clear(&mut self) {
        self.dinput.fill(0.0);
    }

    fn kept_bytes(&self) -> usize {
        size_of_val(&self.weights[..])
    }
}

/// Layer norm.
pub struct LayerNorm {
    input: Vec<f32>,
    dinput: Vec<f32>,
    weight: Vec<f32>,
    dweight: Vec<f32>,
    bias: Vec<f32>,
    dbias: Vec<f32>,
    means: Vec<f32>,
    dmeans: Vec<f32>,
    reciprocals: Vec<f32>,
    dreciprocals: Vec<f32>,
    output: Vec<f32>,
    doutput: Vec<f32>,
    seed: Vec<f32>,
}

impl LayerNorm {
    /// `tokens` rows of `channels` numbers.
    pub fn new(tokens: usize, channels: usize) -> Self {
        LayerNorm {
            input: numbers(tokens * channels, 7),
            dinput: vec![0.0; tokens * channels],
            weight: numbers(channels, 8),
            dweight: vec![0.0; channels],
            bias: numbers(channels, 9),
            dbias: vec![0.0; channels],
            means: vec![0.0; tokens],
            dmeans: vec![0.0; tokens],
            reciprocals: vec![0.0; tokens],
            dreciprocals: vec![0.0; tokens],
            output: vec![0.0; tokens * channels],
            doutput: vec![0.0; tokens * channels],
            seed: numbers(tokens * channels, 10),
        }
    }
}

impl Component for LayerNorm {
    fn name(&self) -> String {
        format!("layer norm {}", self.weight.len())
    }

    fn forward(&mut self) {
        layer_norm::forward(
            &self.input,
            &self.weight,
            &self.bias,
            &mut self.means,
            &mut self.reciprocals,
            &mut self.output,
        );
    }

    fn seed(&mut self) {
        self.doutput.copy_from_slice(&self.seed);
    }

    fn backward_by_hand(&mut self) {
        layer_norm::backward_by_hand(
            &self.input,
            &mut self.dinput,
            &self.weight,
            &mut self.dweight,
            &mut self.dbias,
            &self.means,
            &self.reciprocals,
            &self.doutput,
        );
    }

    fn backward(&mut self) {
        // SAFETY: the outputs are not read afterwards without a forward pass.
        unsafe {
            layer_norm::backward(
                &self.input,
                &mut self.dinput,
                &self.weight,
                &mut self.dweight,
                &self.bias,
                &mut self.dbias,
                &mut self.means,
                &mut self.dmeans,
                &mut self.reciprocals,
                &mut self.dreciprocals,
                &mut self.output,
                &mut self.doutput,
            );
        }
    }

    fn forward_and_backward(&mut self) {
        layer_norm::forward_and_backward(
            &self.input,
            &mut self.dinput,
            &self.weight,
            &mut self.dweight,
            &self.bias,
            &mut self.dbias,
            &mut self.means,
            &mut self.dmeans,
            &mut self.reciprocals,
            &mut self.dreciprocals,
            &mut self.output,
            &mut self.doutput,
        );
    }

    fn gradients(&self) -> Vec<f32> {
        [&self.dinput[..], &self.dweight, &self.dbias].concat()
    }

    fn clear(&mut self) {
        self.dinput.fill(0.0);
        self.dweight.fill(0.0);
        self.dbias.fill(0.0);
    }

    fn kept_bytes(&self) -> usize {
        size_of_val(&self.means[..]) + size_of_val(&self.reciprocals[..])
    }
}

/// GELU.
pub struct Gelu {
    input: Vec<f32>,
    dinput: Vec<f32>,
    output: Vec<f32>,
    doutput: Vec<f32>,
    seed: Vec<f32>,
}

impl Gelu {
    /// On `length` numbers.
    pub fn new(length: usize) -> Self {
        Gelu {
            input: numbers(length, 11),
            dinput: vec![0.0; length],
            output: vec![0.0; length],
            doutput: vec![0.0; length],
            seed: numbers(length, 12),
        }
    }
}

impl Component for Gelu {
    fn name(&self) -> String {
        format!("GELU {}", crate::WIDE.min(self.input.len()))
    }

    fn forward(&mut self) {
        gelu::forward(&self.input, &mut self.output);
    }

    fn seed(&mut self) {
        self.doutput.copy_from_slice(&self.seed);
    }

    fn backward_by_hand(&mut self) {
        gelu::backward_by_hand(&self.input, &mut self.dinput, &self.doutput);
    }

    fn backward(&mut self) {
        // SAFETY: the output is not read afterwards without a forward pass.
        unsafe {
            gelu::backward(
                &self.input,
                &mut self.dinput,
                &mut self.output,
                &mut self.doutput,
            )
        };
    }

    fn forward_and_backward(&mut self) {
        gelu::forward_and_backward(
            &self.input,
            &mut self.dinput,
            &mut self.output,
            &mut self.doutput,
        );
    }

    fn gradients(&self) -> Vec<f32> {
        self.dinput.clone()
    }

    fn clear(&mut self) {
        self.dinput.fill(0.0);
    }

    fn kept_bytes(&self) -> usize {
        0
    }
}

/// Softmax cross-entropy that keeps the probabilities.
pub struct CrossEntropy {
    logits: Vec<f32>,
    dlogits: Vec<f32>,
    targets: Vec<u32>,
    probabilities: Vec<f32>,
    dprobabilities: Vec<f32>,
    losses: Vec<f32>,
    dlosses: Vec<f32>,
    seed: Vec<f32>,
}

/// Targets that are spread over the classes.
fn targets(tokens: usize, classes: usize) -> Vec<u32> {
    (0..tokens)
        .map(|t| ((t * 7919 + 13) % classes) as u32)
        .collect()
}

impl CrossEntropy {
    /// `tokens` rows of `classes` logits.
    pub fn new(tokens: usize, classes: usize) -> Self {
        CrossEntropy {
            logits: numbers(tokens * classes, 13),
            dlogits: vec![0.0; tokens * classes],
            targets: targets(tokens, classes),
            probabilities: vec![0.0; tokens * classes],
            dprobabilities: vec![0.0; tokens * classes],
            losses: vec![0.0; tokens],
            dlosses: vec![0.0; tokens],
            seed: numbers(tokens, 14),
        }
    }
}

impl Component for CrossEntropy {
    fn name(&self) -> String {
        format!(
            "softmax cross-entropy {}",
            self.logits.len() / self.targets.len()
        )
    }

    fn forward(&mut self) {
        cross_entropy::forward(
            &self.logits,
            &self.targets,
            &mut self.probabilities,
            &mut self.losses,
        );
    }

    fn seed(&mut self) {
        self.dlosses.copy_from_slice(&self.seed);
    }

    fn backward_by_hand(&mut self) {
        cross_entropy::backward_by_hand(
            &mut self.dlogits,
            &self.targets,
            &self.probabilities,
            &self.dlosses,
        );
    }

    fn backward(&mut self) {
        // SAFETY: the outputs are not read afterwards without a forward pass.
        unsafe {
            cross_entropy::backward(
                &self.logits,
                &mut self.dlogits,
                &self.targets,
                &mut self.probabilities,
                &mut self.dprobabilities,
                &mut self.losses,
                &mut self.dlosses,
            );
        }
    }

    fn forward_and_backward(&mut self) {
        cross_entropy::forward_and_backward(
            &self.logits,
            &mut self.dlogits,
            &self.targets,
            &mut self.probabilities,
            &mut self.dprobabilities,
            &mut self.losses,
            &mut self.dlosses,
        );
    }

    fn gradients(&self) -> Vec<f32> {
        self.dlogits.clone()
    }

    fn clear(&mut self) {
        self.dlogits.fill(0.0);
    }

    fn kept_bytes(&self) -> usize {
        size_of_val(&self.probabilities[..])
    }
}

/// Softmax cross-entropy that keeps no probabilities.
pub struct Loss {
    logits: Vec<f32>,
    dlogits: Vec<f32>,
    targets: Vec<u32>,
    logarithms: Vec<f32>,
    dlogarithms: Vec<f32>,
    losses: Vec<f32>,
    dlosses: Vec<f32>,
    seed: Vec<f32>,
}

impl Loss {
    /// `tokens` rows of `classes` logits.
    pub fn new(tokens: usize, classes: usize) -> Self {
        Loss {
            logits: numbers(tokens * classes, 15),
            dlogits: vec![0.0; tokens * classes],
            targets: targets(tokens, classes),
            logarithms: vec![0.0; tokens],
            dlogarithms: vec![0.0; tokens],
            losses: vec![0.0; tokens],
            dlosses: vec![0.0; tokens],
            seed: numbers(tokens, 16),
        }
    }
}

impl Component for Loss {
    fn name(&self) -> String {
        format!(
            "the same without probabilities {}",
            self.logits.len() / self.targets.len()
        )
    }

    fn forward(&mut self) {
        loss::forward(
            &self.logits,
            &self.targets,
            &mut self.logarithms,
            &mut self.losses,
        );
    }

    fn seed(&mut self) {
        self.dlosses.copy_from_slice(&self.seed);
    }

    fn backward_by_hand(&mut self) {
        loss::backward_by_hand(
            &self.logits,
            &mut self.dlogits,
            &self.targets,
            &self.logarithms,
            &self.dlosses,
        );
    }

    fn backward(&mut self) {
        // SAFETY: the outputs are not read afterwards without a forward pass.
        unsafe {
            loss::backward(
                &self.logits,
                &mut self.dlogits,
                &self.targets,
                &mut self.logarithms,
                &mut self.dlogarithms,
                &mut self.losses,
                &mut self.dlosses,
            );
        }
    }

    fn forward_and_backward(&mut self) {
        loss::forward_and_backward(
            &self.logits,
            &mut self.dlogits,
            &self.targets,
            &mut self.logarithms,
            &mut self.dlogarithms,
            &mut self.losses,
            &mut self.dlosses,
        );
    }

    fn gradients(&self) -> Vec<f32> {
        self.dlogits.clone()
    }

    fn clear(&mut self) {
        self.dlogits.fill(0.0);
    }

    fn kept_bytes(&self) -> usize {
        size_of_val(&self.logarithms[..])
    }
}
