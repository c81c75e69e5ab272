//! Layers, losses, optimisers and schedules give what PyTorch's give: `figures.json`, which `bench/peers/layers_torch.py` makes.
//!
//! Values and gradients in single precision, interpreted and compiled; gradients also against finite differences, in double precision.

use ferrozyme_cpu::compile;
use ferrozyme_filetest::graph::gradcheck;
use ferrozyme_graph::interpret::{Array, Machine};
use ferrozyme_graph::{
    Gradients, Graph, INDEX, Literal, Parameter, Scalar, Tensor, TensorType, parse, print,
};
use ferrozyme_nn::loss::{self, CrossEntropy};
use ferrozyme_nn::{
    Adam, AdamW, AvgPool1d, AvgPool2d, BatchNorm, Conv1d, Conv2d, Embedding, Gelu, GeluTanh, Gru,
    Layer, LayerNorm, Linear, LogSoftmax, Lstm, MaxPool1d, MaxPool2d, Mode, MultiHeadAttention,
    Relu, RmsNorm, Schedule, Sgd, Sigmoid, Silu, Softmax, Tanh, TransformerEncoderLayer, Window,
    clip_by_norm, clip_by_value,
};
use serde_json::Value;

/// How far values may be from PyTorch's, relative to those that are larger than 1.
const TOLERANCE: f64 = 1e-5;

fn lines(kind: &str) -> Vec<Value> {
    let text = include_str!("figures.json");
    let all = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    match kind {
        "case" => all.filter(|line| !line["result"].is_null()).collect(),
        kind => all
            .map(|line| line[kind].clone())
            .filter(|line| !line.is_null())
            .collect(),
    }
}

fn array(value: &Value) -> Array {
    let shape = value["shape"].as_array().unwrap().iter();
    let shape: Vec<usize> = shape.map(|size| size.as_u64().unwrap() as usize).collect();
    let numbers = |key: &str| -> Option<Vec<f64>> {
        let numbers = value[key].as_array()?.iter();
        Some(numbers.map(|number| number.as_f64().unwrap()).collect())
    };
    match numbers("integers") {
        Some(integers) => Array::new(TensorType::new(INDEX, &shape[..]), integers),
        None => Array {
            // Not rounded: those that go in need not be, and those that come out must not.
            ty: TensorType::new(Scalar::F32, &shape[..]),
            elements: numbers("values").unwrap().into(),
        },
    }
}

fn arrays(value: &Value) -> Vec<(String, Array)> {
    let all = value.as_object().unwrap().iter();
    all.map(|(name, value)| (name.clone(), array(value)))
        .collect()
}

/// A line of the table, while its graph is built.
struct Case<'g> {
    g: &'g mut Graph,
    name: String,
    tensors: Vec<(String, Array)>,
    /// The parameters that stand for its tensors.
    parameters: Vec<(String, Parameter)>,
}

impl Case<'_> {
    /// One of its tensors, which is a parameter if it is made of floats.
    fn tensor(&mut self, name: &str) -> Tensor {
        let (_, value) = self.tensors.iter().find(|(own, _)| own == name).unwrap();
        let elements = value.elements.to_vec();
        if !value.ty.is_float() {
            return self.g.constant(value.ty.clone(), elements);
        }
        let own = format!("{}.{name}", self.name);
        let parameter = self.g.parameter_of(&own, value.ty.clone(), elements);
        self.parameters.push((name.to_owned(), parameter));
        self.g.read(parameter)
    }

    /// A layer with the parameters of the case, applied to its `x`.
    fn layer<L: Layer>(&mut self, make: impl FnOnce(&mut Graph, &str) -> L) -> Tensor {
        self.layer_for(Mode::Training, make)
    }

    fn layer_for<L: Layer>(
        &mut self,
        mode: Mode,
        make: impl FnOnce(&mut Graph, &str) -> L,
    ) -> Tensor {
        let x = self.tensor("x");
        let layer = make(self.g, &self.name);
        let entries = layer.entries();
        assert_eq!(
            entries.len() + 1,
            self.tensors.len(),
            "{}: {entries:?}",
            self.name
        );
        for entry in entries {
            let own = self.tensors.iter().find(|(name, _)| *name == entry.name);
            let (_, value) = own.unwrap_or_else(|| panic!("{}: {}", self.name, entry.name));
            let data = &mut self.g.parameters[entry.parameter];
            assert_eq!(data.ty, value.ty, "{}: {}", self.name, entry.name);
            data.initial = Literal::from(value.elements.to_vec());
            self.parameters.push((entry.name, entry.parameter));
        }
        layer.apply(self.g, x, mode)
    }

    fn loss(&mut self, loss: impl FnOnce(&mut Graph, Tensor, Tensor) -> Tensor) -> Tensor {
        let second = self.tensors.iter().find(|(name, _)| name != "x").unwrap();
        let second = second.0.clone();
        let (x, second) = (self.tensor("x"), self.tensor(&second));
        loss(self.g, x, second)
    }

    fn build(&mut self) -> Tensor {
        let name = self.name.clone();
        match &name[..] {
            "relu" => self.layer(|_, _| Relu),
            "sigmoid" => self.layer(|_, _| Sigmoid),
            "tanh" => self.layer(|_, _| Tanh),
            "silu" => self.layer(|_, _| Silu),
            "gelu" => self.layer(|_, _| Gelu),
            "gelu_tanh" => self.layer(|_, _| GeluTanh),
            "softmax" => self.layer(|_, _| Softmax),
            "log_softmax" => self.layer(|_, _| LogSoftmax),
            "linear" => self.layer(|g, name| Linear::new(g, name, 4, 5)),
            "embedding" => self.layer(|g, name| Embedding::new(g, name, 5, 3)),
            "layer_norm" => self.layer(|g, name| LayerNorm::new(g, name, 6)),
            "rms_norm" => self.layer(|g, name| RmsNorm::new(g, name, 6)),
            "batch_norm" | "batch_norm_images" => self.layer(|g, name| BatchNorm::new(g, name, 3)),
            "batch_norm_evaluated" => {
                self.layer_for(Mode::Evaluation, |g, name| BatchNorm::new(g, name, 3))
            }
            "conv1d" => self.layer(|g, name| Conv1d::new(g, name, 3, 4, Window::of(3))),
            "conv1d_strided" => self.layer(|g, name| {
                let window = Window::of(3)
                    .with_stride(2)
                    .with_padding(1)
                    .with_dilation(2);
                Conv1d::new(g, name, 3, 4, window)
            }),
            "conv2d" => {
                self.layer(|g, name| Conv2d::new(g, name, 2, 3, [Window::of(3), Window::of(2)]))
            }
            "conv2d_strided" => self.layer(|g, name| {
                Conv2d::new(g, name, 2, 3, Window::of(3).with_stride(2).with_padding(1))
            }),
            "max_pool1d" => self.layer(|_, _| MaxPool1d::of([2])),
            "max_pool2d" => self.layer(|_, _| MaxPool2d::of([2, 2])),
            "max_pool2d_padded" => {
                self.layer(|_, _| MaxPool2d::new(Window::of(3).with_stride(2).with_padding(1)))
            }
            "avg_pool1d" => self.layer(|_, _| AvgPool1d::of([2])),
            "avg_pool2d_padded" => {
                self.layer(|_, _| AvgPool2d::new(Window::of(3).with_stride(2).with_padding(1)))
            }
            "attention" => self.layer(|g, name| MultiHeadAttention::new(g, name, 4, 2)),
            "attention_causal" => {
                self.layer(|g, name| MultiHeadAttention::new(g, name, 4, 2).causal())
            }
            "encoder_layer" => {
                self.layer(|g, name| TransformerEncoderLayer::standard(g, name, 4, 2, 6))
            }
            "encoder_layer_norm_first" => self.layer(|g, name| {
                TransformerEncoderLayer::standard(g, name, 4, 2, 6)
                    .with_activation(Gelu)
                    .norm_first()
            }),
            "gru" => self.layer(|g, name| Gru::new(g, name, 3, 4)),
            "lstm" => self.layer(|g, name| Lstm::new(g, name, 3, 4)),
            "mean_squared_error" => self.loss(loss::mean_squared_error),
            "mean_absolute_error" => self.loss(loss::mean_absolute_error),
            "kl_divergence" => self.loss(loss::kl_divergence),
            "binary_cross_entropy" => self.loss(loss::binary_cross_entropy),
            "cross_entropy" => self.loss(loss::cross_entropy),
            "cross_entropy_smoothed" => self.loss(|g, x, classes| {
                let loss = CrossEntropy {
                    smoothing: 0.1,
                    ..CrossEntropy::default()
                };
                loss.of_logits(g, x, classes)
            }),
            "cross_entropy_ignored" => self.loss(|g, x, classes| {
                let loss = CrossEntropy {
                    smoothing: 0.1,
                    ignored: Some(-100),
                };
                loss.of_logits(g, x, classes)
            }),
            "negative_log_likelihood" => self.loss(loss::negative_log_likelihood),
            other => panic!("the table has a case that is not tested: {other}"),
        }
    }
}

/// Builds a line of the table; returns the sum that is differentiated, the result, and the parameters.
fn build(g: &mut Graph, line: &Value) -> (Tensor, Tensor, Vec<(String, Parameter)>) {
    let mut case = Case {
        g,
        name: line["name"].as_str().unwrap().to_owned(),
        tensors: arrays(&line["tensors"]),
        parameters: Vec::new(),
    };
    let result = case.build();
    let parameters = case.parameters;
    let seed = array(&line["seed"]);
    let seed = g.constant(seed.ty, seed.elements.to_vec());
    let product = g.mul(result, seed);
    (g.sum_all(product), result, parameters)
}

fn assert_close(what: &str, actual: &Array, expected: &Array) {
    assert_eq!(actual.ty, expected.ty, "{what}");
    for (own, other) in actual.elements.iter().zip(&*expected.elements) {
        assert!(
            (own - other).abs() <= TOLERANCE * other.abs().max(1.0),
            "{what}: {own} is not {other}\n{actual}\n{expected}"
        );
    }
}

/// Runs a graph in the interpreter and compiled, and calls `check` with what was received under each name, in order.
fn run_both(g: &Graph, mut check: impl FnMut(&str, Vec<(String, Vec<Array>)>)) {
    let mut machine = Machine::new(g);
    machine.run().unwrap();
    let received = machine.all_received().iter();
    let received = received.map(|(name, tensors)| (name.to_string(), tensors.clone()));
    let received: Vec<_> = received.collect();
    let mut program = compile(g).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut names: Vec<String> = received.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let sender = sender.clone();
        program.receiver(&name.clone(), move |tensors| {
            sender.send((name.clone(), tensors)).unwrap();
        });
    }
    check("interpreted", received);
    program.run().unwrap();
    drop(program);
    drop(sender);
    check("compiled", receiver.into_iter().collect());
}

#[test]
fn values_and_gradients_are_pytorchs() {
    let mut g = Graph::new();
    let mut expected = Vec::new();
    for line in lines("case") {
        let (sum, result, parameters) = build(&mut g, &line);
        let name = line["name"].as_str().unwrap();
        let mut receive = |g: &mut Graph, what: &str, tensor: Tensor, figure: &Value| {
            let name = format!("{name}: {what}");
            g.receive(&name, &[tensor]);
            expected.push((name, array(figure)));
        };
        receive(&mut g, "result", result, &line["result"]);
        let gradients = g.backward(sum);
        for (what, figure) in line["gradients"].as_object().unwrap() {
            let (_, parameter) = parameters.iter().find(|(own, _)| own == what).unwrap();
            let gradient = gradients.of_parameter(*parameter);
            let gradient = gradient.unwrap_or_else(|| panic!("{name}: {what} has no gradient"));
            receive(&mut g, &format!("gradient by {what}"), gradient, figure);
        }
        for (what, figure) in line["states"].as_object().unwrap() {
            let (_, parameter) = parameters.iter().find(|(own, _)| own == what).unwrap();
            let state = g.read(*parameter);
            receive(&mut g, &format!("{what} afterwards"), state, figure);
        }
    }
    run_both(&g, |how, received| {
        for (name, figure) in &expected {
            let (_, tensors) = received.iter().find(|(own, _)| own == name).unwrap();
            assert_close(&format!("{name}, {how}"), &tensors[0], figure);
        }
    });
}

#[test]
fn gradients_agree_with_finite_differences() {
    for line in lines("case") {
        let name = line["name"].as_str().unwrap();
        let mut g = Graph::new();
        let (sum, ..) = build(&mut g, &line);
        g.receive("sum", &[sum]);
        let text = print::print(&g).replace("f32", "f64");
        let g = parse(&text).unwrap();
        let body = &g.regions[g.body()].ops;
        let sum = g.ops[body[body.len() - 1]].operands[0];
        gradcheck(&g, sum, &[]).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
}

type Step = Box<dyn Fn(&mut Graph, &mut Gradients)>;

#[test]
fn optimisers_take_pytorchs_steps() {
    let mut g = Graph::new();
    let all = lines("optimiser");
    let mut made = Vec::new();
    for line in &all {
        let name = line["name"].as_str().unwrap();
        let start = array(&line["start"]);
        let w = g.parameter_of(name, start.ty, start.elements.to_vec());
        let own = [w];
        let step: Step = match name {
            "adam" => {
                let adam = Adam::new(&mut g, 0.1, &own);
                Box::new(move |g, gradients| adam.step(g, gradients))
            }
            "adamw" => {
                let adam = AdamW::new(&mut g, 0.1, 0.1, &own);
                Box::new(move |g, gradients| adam.step(g, gradients))
            }
            name => {
                let sgd = match name {
                    "sgd_decay" => Sgd::new(0.1).with_decay(0.1),
                    "sgd_momentum" => Sgd::with_momentum(&mut g, 0.1, 0.9, &own),
                    "sgd_nesterov" => Sgd::with_momentum(&mut g, 0.1, 0.9, &own).nesterov(),
                    _ => Sgd::new(0.1),
                };
                let name = name.to_owned();
                Box::new(move |g, gradients| {
                    match &name[..] {
                        "clip_by_norm" => {
                            clip_by_norm(g, gradients, &own, 0.5);
                        }
                        "clip_by_value" => clip_by_value(g, gradients, &own, 0.25),
                        _ => {}
                    }
                    sgd.step(g, &own, gradients);
                })
            }
        };
        made.push((name.to_owned(), w, array(&line["factors"]), step));
    }
    g.repeat(5, |g, _| {
        for (name, w, factors, step) in &made {
            let value = g.read(*w);
            let bent = g.sin(value);
            let factors = g.constant(factors.ty.clone(), factors.elements.to_vec());
            let product = g.mul(bent, factors);
            let mut gradients = g.backward(product);
            step(g, &mut gradients);
            let next = g.read(*w);
            g.receive(name, &[next]);
        }
    });
    run_both(&g, |how, received| {
        for line in &all {
            let name = line["name"].as_str().unwrap();
            let figures = array(&line["steps"]);
            let own = received.iter().filter(|(own, _)| own == name);
            let own: Vec<f64> = own
                .flat_map(|(_, tensors)| tensors[0].elements.to_vec())
                .collect();
            let own = Array::new(figures.ty.clone(), own);
            assert_close(&format!("{name}, {how}"), &own, &figures);
        }
    });
}

#[test]
fn schedules_have_pytorchs_rates() {
    for line in lines("schedule") {
        let name = line["name"].as_str().unwrap();
        let schedule = match name {
            "linear" => Schedule::linear(0.2, 0.02, 8),
            "cosine" => Schedule::cosine(0.2, 0.02, 12),
            "exponential" => Schedule::exponential(0.2, 0.9),
            "stairs" => Schedule::stairs(0.2, 0.5, 3),
            "warmup" => Schedule::exponential(0.2, 0.9).after_warmup(3),
            other => panic!("the table has a schedule that is not tested: {other}"),
        };
        let mut g = Graph::new();
        g.repeat(12, |g, step| {
            let rate = schedule.rate(g, step);
            g.receive("rate", &[rate]);
        });
        let mut machine = Machine::new(&g);
        machine.run().unwrap();
        let rates = machine.all_received().iter();
        for ((_, rate), figure) in rates.zip(line["rates"].as_array().unwrap()) {
            let (rate, figure) = (rate[0].scalar(), figure.as_f64().unwrap());
            assert!(
                (rate - figure).abs() < 1e-7,
                "{name}: {rate} is not {figure}"
            );
        }
    }
}
