//! What is timed: the seed's programs, an encoder of GPT-2's size, and single kernels, each many times in a loop of the graph.

use ferrozyme_graph::{Graph, INDEX, Reduction, Scalar, Shape, Tensor, TensorType};
use ferrozyme_nn::{Layer, Linear, Module, Sequential, Sgd, Sigmoid, TransformerEncoder};

/// A graph that runs a number of equal steps.
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) steps: u32,
    /// Floating-point operations of a step; 0 if they are not counted.
    operations: f64,
    /// Bytes that a step has to move at least; 0 if they are not counted.
    bytes: f64,
}

impl Workload {
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
    all.extend([1, 2, 4, 6].map(|layers| encoder(layers, 2, [64, 4, 128], 500)));
    all.push(encoder(12, 256, [768, 12, 3072], 10));
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
    Workload {
        name: "the seed's linear layers".to_owned(),
        graph: g,
        steps,
        operations: 0.0,
        bytes: 0.0,
    }
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
    Workload {
        name: format!("encoder, {layers} layers of width {width}, {rows} rows"),
        graph: g,
        steps,
        operations: 6.0 * (rows * weights) as f64,
        bytes: 0.0,
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

/// A step that gives a parameter another value, a number of times.
fn repeated(name: String, g: Graph, steps: u32, [operations, bytes]: [f64; 2]) -> Workload {
    Workload {
        name,
        graph: g,
        steps,
        operations,
        bytes,
    }
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
    let operations = 2.0 * (m * n * k) as f64;
    repeated(
        format!("product {m}×{n}×{k}, f32"),
        g,
        steps,
        [operations, 0.0],
    )
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
    repeated(
        format!("{count} elements times a number"),
        g,
        steps,
        [0.0, 8.0 * count as f64],
    )
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
    let bytes = 8.0 * (rows * columns) as f64;
    repeated(
        format!("softmax of {rows} rows of {columns}"),
        g,
        steps,
        [0.0, bytes],
    )
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
    let bytes = 4.0 * (rows * columns) as f64;
    repeated(
        format!("sums of {columns} columns of {rows}"),
        g,
        steps,
        [0.0, bytes],
    )
}
