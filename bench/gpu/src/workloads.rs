//! What is timed: the seed's programs, an encoder of GPT-2's size, and single kernels, each many times in a loop of the graph.

use ferrozyme_backend::{Backend, Error, Program, compile_within};
use ferrozyme_graph::opt::lower_precision_to;
use ferrozyme_graph::{Graph, INDEX, Reduction, Scalar, Shape, Tensor, TensorType};
use ferrozyme_nn::{Layer, Linear, Module, Sequential, Sgd, Sigmoid, TransformerEncoder};
use gpt2::adamw::Settings;
use gpt2::initialise::random_parameters;
use gpt2::random::Random;
use gpt2::{Batch, Config, Parameters};
use gpt2_graph::adamw::Optimiser;
use gpt2_graph::model::Model;
use gpt2_graph::training::set_numbers;

/// With parameters and moments, what PyTorch takes for the largest workload: 15.1 GiB.
const SMALL_ARENA: usize = 14_600_000_000;

/// A graph that runs a number of equal steps.
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) steps: u32,
    /// Floating-point operations of a step; 0 if they are not counted.
    operations: f64,
    /// Bytes that a step has to move at least; 0 if they are not counted.
    bytes: f64,
    /// What a language model is trained on, if it is one.
    language: Option<Language>,
    /// The most bytes that the arena may have.
    pub(crate) budget: Option<usize>,
}

/// A language model with random parameters, on random text.
struct Language {
    model: Model,
    config: Config,
    batch: Batch,
}

impl Workload {
    /// A graph of equal steps of which nothing is counted.
    fn new(name: String, graph: Graph, steps: u32) -> Workload {
        Workload {
            name,
            graph,
            steps,
            operations: 0.0,
            bytes: 0.0,
            language: None,
            budget: None,
        }
    }

    /// Compiles the graph, and gives it numbers.
    pub(crate) fn start(&self, backend: &dyn Backend) -> Result<Program, Error> {
        let mut program = compile_within(backend, &self.graph, self.budget)?;
        if let Some(Language {
            model,
            config,
            batch,
        }) = &self.language
        {
            let parameters: Vec<f32> = random_parameters(config, &mut Random::new(1));
            set_numbers(&mut program, &model.held, &parameters)?;
            let (count, vocabulary) = (batch.tokens(), config.vocabulary as f64);
            for (seed, name) in [(1, "tokens"), (2, "targets")] {
                let mut random = Random::new(seed);
                program.feeder(name, move || {
                    let tokens = (0..count).map(|_| (random.uniform() * vocabulary) as i32);
                    tokens.collect()
                });
            }
        }
        Ok(program)
    }

    /// Time, and rates of what is counted.
    pub(crate) fn describe(&self, seconds: f64) -> String {
        let mut text = format!("{}: {:.1} µs a step", self.name, seconds * 1e6);
        if self.operations > 0.0 {
            text += &format!(", {:.2} TFLOP/s", self.operations / seconds * 1e-12);
        }
        if self.bytes > 0.0 {
            text += &format!(", {:.1} GB/s", self.bytes / seconds * 1e-9);
        }
        text
    }
}

pub(crate) fn all_workloads() -> Vec<Workload> {
    let mut all = vec![linear()];
    all.extend([1, 2, 3, 4, 6].map(|layers| encoder(layers, 2, [64, 4, 128], 500)));
    all.push(encoder(12, 256, [768, 12, 3072], 10));
    all.push(gpt2([4, 64], None, 20));
    all.push(gpt2([8, 1024], None, 2));
    let large = gpt2([32, 1024], Some(Scalar::Bf16), 2);
    let name = format!("{}, no more than {SMALL_ARENA} bytes", large.name);
    all.push(large);
    all.push(Workload {
        name,
        budget: Some(SMALL_ARENA),
        ..gpt2([32, 1024], Some(Scalar::Bf16), 2)
    });
    for [m, n, k] in [
        [256, 768, 768],
        [1024, 1024, 1024],
        [4096, 4096, 4096],
        [32768, 768, 768],
    ] {
        all.push(product(m, n, k));
    }
    all.push(elementwise());
    all.push(softmax());
    all.push(sums());
    all
}

fn linear() -> Workload {
    let mut g = Graph::new();
    let net = Sequential::new((
        Linear::new(&mut g, "first", 255, 255),
        Sigmoid,
        Linear::new(&mut g, "second", 255, 255),
    ));
    let sgd = Sgd::new(0.01);
    let steps = 1000;
    g.repeat(steps, |g, _step| {
        let x = g.constant(TensorType::new(Scalar::F32, [2, 255]), 0.2);
        let y = net.forward(g, x);
        let gradients = g.backward(y);
        sgd.step(g, &net.parameters(), &gradients);
    });
    Workload::new("the seed's linear layers".to_owned(), g, steps)
}

fn encoder(layers: usize, rows: usize, [width, heads, inner]: [usize; 3], steps: u32) -> Workload {
    let mut g = Graph::new();
    let encoder = TransformerEncoder::new(&mut g, layers, width, heads, inner);
    let sgd = Sgd::new(0.01);
    g.repeat(steps, |g, _step| {
        let x = g.constant(TensorType::new(Scalar::F32, [rows, width]), 0.3);
        let y = encoder.forward(g, x);
        let gradients = g.backward(y);
        sgd.step(g, &encoder.parameters(), &gradients);
    });
    // Products with weights, forward and twice backward; those of attention are few beside them.
    let weights = layers * (4 * width * width + 2 * width * inner);
    let name = format!("encoder, {layers} layers of width {width}, {rows} rows");
    Workload {
        operations: 6.0 * (rows * weights) as f64,
        ..Workload::new(name, g, steps)
    }
}

/// Training of GPT-2 124M with AdamW: sequences, tokens in each, and the type that factors of products are rounded to.
fn gpt2([sequences, length]: [usize; 2], factors: Option<Scalar>, steps: u32) -> Workload {
    let config = Config::named("124M").expect("it has a name");
    let batch = Batch {
        sequences,
        steps: length,
    };
    let mut g = Graph::new();
    let model = Model::new(&mut g, config);
    let optimiser = Optimiser::new(&mut g, Settings::default(), &model.parameters());
    g.repeat(steps, |g, _step| {
        let loss = model.loss(g, batch);
        g.receive("loss", &[loss]);
        let gradients = g.backward(loss);
        optimiser.step(g, &gradients);
    });
    let kind = factors.map_or("f32".to_owned(), |element| {
        lower_precision_to(&mut g, element);
        element.to_string()
    });
    // Products with weights and those of attention, forward and twice backward.
    let each = Parameters::total(&config) + 2 * config.layers * length * config.channels;
    Workload {
        operations: 6.0 * (batch.tokens() * each) as f64,
        language: Some(Language {
            model,
            config,
            batch,
        }),
        ..Workload::new(
            format!("GPT-2 124M, {sequences} sequences of {length} tokens, {kind}"),
            g,
            steps,
        )
    }
}

/// Numbers between -1 and 1, which a parameter holds.
fn filled(g: &mut Graph, name: &str, seed: u64, shape: impl Into<Shape>) -> Tensor {
    let ty = TensorType::new(Scalar::F32, shape);
    let parameter = g.parameter_of(name, ty.clone(), 0.0);
    let counter = g.constant(TensorType::scalar(INDEX), 0.0);
    let unit = g.random(ty, seed, counter);
    let wide = g.scale(unit, 2.0);
    let numbers = g.shift(wide, -1.0);
    g.update(parameter, numbers);
    g.read(parameter)
}

fn product(m: usize, n: usize, k: usize) -> Workload {
    let mut g = Graph::new();
    let a = filled(&mut g, "a", 1, [m, k]);
    let weights = g.parameter_of("b", TensorType::new(Scalar::F32, [k, n]), 0.5);
    let c = g.parameter_of("c", TensorType::new(Scalar::F32, [m, n]), 0.0);
    let steps = 20;
    g.repeat(steps, |g, _| {
        let b = g.read(weights);
        let product = g.contract("ab, bc -> ac", a, b);
        g.update(c, product);
        // So that no step is that of another one.
        let next = g.scale(b, 0.999);
        g.update(weights, next);
    });
    Workload {
        operations: 2.0 * (m * n * k) as f64,
        ..Workload::new(format!("product {m}×{n}×{k}, f32"), g, steps)
    }
}

fn elementwise() -> Workload {
    let count = 1 << 26;
    let mut g = Graph::new();
    let p = g.parameter_of("p", TensorType::new(Scalar::F32, [count]), 1.0);
    let steps = 20;
    g.repeat(steps, |g, _| {
        let old = g.read(p);
        let new = g.scale(old, 0.999);
        g.update(p, new);
    });
    Workload {
        bytes: 8.0 * count as f64,
        ..Workload::new(format!("{count} elements times a number"), g, steps)
    }
}

fn softmax() -> Workload {
    let (rows, columns) = (1 << 15, 1 << 11);
    let mut g = Graph::new();
    let p = g.parameter_of("p", TensorType::new(Scalar::F32, [rows, columns]), 1.0);
    let steps = 20;
    g.repeat(steps, |g, _| {
        let x = g.read(p);
        let largest = g.reduce(Reduction::Max, x, &[1]);
        let largest = g.broadcast(largest, &[(1, columns)]);
        let less = g.sub(x, largest);
        let powers = g.exp(less);
        let sum = g.sum(powers, &[1]);
        let sum = g.broadcast(sum, &[(1, columns)]);
        let y = g.div(powers, sum);
        g.update(p, y);
    });
    Workload {
        bytes: 8.0 * (rows * columns) as f64,
        ..Workload::new(format!("softmax of {rows} rows of {columns}"), g, steps)
    }
}

fn sums() -> Workload {
    let (rows, columns) = (1 << 15, 768);
    let mut g = Graph::new();
    let p = filled(&mut g, "p", 1, [rows, columns]);
    let sums = g.parameter_of("sums", TensorType::new(Scalar::F32, [columns]), 0.0);
    let steps = 20;
    g.repeat(steps, |g, step| {
        let number = g.cast(step, Scalar::F32);
        let number = g.broadcast_to(number, [rows, columns]);
        let terms = g.add(p, number);
        let sum = g.sum(terms, &[0]);
        g.update(sums, sum);
    });
    Workload {
        bytes: 4.0 * (rows * columns) as f64,
        ..Workload::new(format!("sums of {columns} columns of {rows}"), g, steps)
    }
}
