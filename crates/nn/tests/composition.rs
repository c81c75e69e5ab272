//! What layers do together: masks, states that are handed on, dropout in an encoder, and the messages for shapes that do not fit.

use ferrozyme_cpu::compile;
use ferrozyme_graph::interpret::{Array, Machine};
use ferrozyme_graph::{Graph, INDEX, IntPredicate, Scalar, Tensor, TensorType};
use ferrozyme_nn::{
    AdamW, BatchNorm, Conv2d, Dropout, Embedding, Flatten, Gru, Layer, Linear, Lstm, Mask,
    MaxPool2d, Mode, Module, MultiHeadAttention, Relu, Sequential, TransformerEncoder,
    TransformerEncoderLayer, Window, attention, loss,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

/// Numbers between −1 and 1.
fn numbers(g: &mut Graph, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let value = |index: usize| ((index * 37 + 11) % 101) as f64 / 50.0 - 1.0;
    let values: Vec<f64> = (0..count).map(value).collect();
    g.constant(TensorType::new(Scalar::F32, shape), values)
}

fn assert_close(a: &Array, b: &Array) {
    assert_eq!(a.ty, b.ty);
    for (a, b) in a.elements.iter().zip(&*b.elements) {
        assert!((a - b).abs() < 1e-6 * a.abs().max(1.0), "{a} is not {b}");
    }
}

/// Receives two tensors, interpreted and compiled, which must be the same.
fn assert_same(g: &mut Graph, a: Tensor, b: Tensor) {
    g.receive("both", &[a, b]);
    let mut machine = Machine::new(g);
    machine.run().unwrap();
    let interpreted = machine.received("both").unwrap().to_vec();
    let mut program = compile(g).unwrap();
    let (sender, receiver) = mpsc::channel();
    program.receiver("both", move |tensors| sender.send(tensors).unwrap());
    program.run().unwrap();
    let compiled = receiver.recv().unwrap();
    for both in [&interpreted, &compiled] {
        assert_close(&both[0], &both[1]);
    }
    assert_close(&interpreted[0], &compiled[0]);
}

#[test]
fn a_causal_mask_is_one_that_looks_back() {
    let mut g = Graph::new();
    let layer = MultiHeadAttention::new(&mut g, "attention", 4, 2);
    let x = numbers(&mut g, &[2, 3, 4]);
    let ty = TensorType::new(INDEX, [3, 3]);
    let (row, column) = (g.iota(ty.clone(), 0), g.iota(ty, 1));
    let mask = g.compare_integers(IntPredicate::Sge, row, column);
    let by_tensor = layer.attend(&mut g, [x; 3], Mask::Tensor(mask), Mode::Evaluation);
    let causal = layer.causal().evaluate(&mut g, x);
    assert_same(&mut g, causal, by_tensor);
}

/// Queries in blocks, of which the last is shorter, attend to the same keys as all at once.
#[test]
fn many_positions_look_back_as_few_do() {
    const POSITIONS: usize = 600;
    let mut g = Graph::new();
    let parameters = [1, 3, 7].map(|factor| {
        let values = (0..POSITIONS * 4).map(|index| (f64::from(factor) * index as f64).sin());
        let ty = TensorType::new(Scalar::F32, [1, POSITIONS, 2, 2]);
        g.parameter_of(&factor.to_string(), ty, values.collect::<Vec<f64>>())
    });
    let ty = TensorType::new(INDEX, [POSITIONS, POSITIONS]);
    let (row, column) = (g.iota(ty.clone(), 0), g.iota(ty, 1));
    let mask = g.compare_integers(IntPredicate::Sge, row, column);
    let [blocks, whole] = [Mask::Causal, Mask::Tensor(mask)].map(|mask| {
        let given = parameters.map(|parameter| g.read(parameter));
        let attended = attention(&mut g, given, mask);
        let squares = g.mul(attended, attended);
        let sum = g.sum_all(squares);
        let gradients = g.backward(sum);
        let mut all = vec![attended];
        all.extend(parameters.map(|parameter| gradients.of_parameter(parameter).unwrap()));
        let all: Vec<Tensor> = all
            .into_iter()
            .map(|tensor| g.reshape(tensor, [POSITIONS * 4]))
            .collect();
        g.concat(&all, 0)
    });
    assert_same(&mut g, blocks, whole);
}

#[test]
fn queries_may_be_fewer_than_keys() {
    let mut g = Graph::new();
    let layer = MultiHeadAttention::new(&mut g, "attention", 4, 2);
    let x = numbers(&mut g, &[2, 3, 4]);
    let all = layer.evaluate(&mut g, x);
    let first = g.part(all, 1, 0..1);
    let query = g.part(x, 1, 0..1);
    let only = layer.attend(&mut g, [query, x, x], Mask::None, Mode::Evaluation);
    assert_same(&mut g, first, only);
}

#[test]
fn a_sequence_may_be_read_in_parts() {
    let mut g = Graph::new();
    let gru = Gru::new(&mut g, "gru", 3, 4);
    let lstm = Lstm::new(&mut g, "lstm", 3, 4);
    let x = numbers(&mut g, &[5, 2, 3]);
    let (begin, end) = (g.part(x, 0, 0..2), g.part(x, 0, 2..5));
    let (whole, last) = gru.run(&mut g, x, None);
    let (first, state) = gru.run(&mut g, begin, None);
    let (second, end_state) = gru.run(&mut g, end, Some(state));
    let parts = g.concat(&[first, second], 0);
    let (whole_lstm, cells) = lstm.run(&mut g, x, None);
    let (first, state) = lstm.run(&mut g, begin, None);
    let (second, end_cells) = lstm.run(&mut g, end, Some(state));
    let parts_lstm = g.concat(&[first, second], 0);
    let flat = |g: &mut Graph, tensors: &[Tensor]| {
        let mut flat = Vec::new();
        for &tensor in tensors {
            let count = g.ty(tensor).shape.count();
            flat.push(g.reshape(tensor, [count]));
        }
        g.concat(&flat, 0)
    };
    let a = flat(&mut g, &[whole, last, whole_lstm, cells[0], cells[1]]);
    let b = flat(
        &mut g,
        &[parts, end_state, parts_lstm, end_cells[0], end_cells[1]],
    );
    assert_same(&mut g, a, b);
}

#[test]
fn dropout_is_the_same_interpreted_and_compiled() {
    let mut g = Graph::new();
    let layer = Dropout::new(&mut g, "dropout", 0.5);
    let x = numbers(&mut g, &[10, 10]);
    let first = layer.forward(&mut g, x);
    let second = layer.forward(&mut g, x);
    let changed = g.sub(first, second);
    assert_same(&mut g, changed, changed);
}

#[test]
fn an_encoder_with_dropout_trains_and_is_evaluated_without() {
    let mut g = Graph::new();
    let layer = |g: &mut Graph, number: usize| {
        let name = format!("layers.{number}");
        TransformerEncoderLayer::standard(g, &name, 4, 2, 8)
            .norm_first()
            .with_dropout(g, &name, 0.1)
    };
    let encoder = TransformerEncoder::of((0..2).map(|number| layer(&mut g, number)).collect());
    let words = Embedding::new(&mut g, "words", 6, 4);
    let names: Vec<String> = encoder
        .entries()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert!(
        names.contains(&"layers.1.attention.query.weight".to_owned()),
        "{names:?}"
    );
    assert!(
        names.contains(&"layers.0.dropouts.2.counter".to_owned()),
        "{names:?}"
    );
    let mut parameters = encoder.parameters();
    parameters.extend(words.parameters());
    let adam = AdamW::new(&mut g, 0.01, 0.1, &parameters).without_decay_for(&parameters[..4]);
    g.repeat(60, |g, _| {
        let ty = TensorType::new(INDEX, [1, 6]);
        let numbers = g.iota(ty, 1);
        let x = words.forward(g, numbers);
        let y = encoder.forward(g, x);
        let weight = g.read(words.weight());
        let logits = g.contract("bpd,wd->bpw", y, weight);
        let loss = loss::cross_entropy(g, logits, numbers);
        let gradients = g.backward(loss);
        adam.step(g, &gradients);
        g.receive("loss", &[loss]);
    });
    let x = numbers(&mut g, &[1, 3, 4]);
    let (a, b) = (encoder.evaluate(&mut g, x), encoder.evaluate(&mut g, x));
    g.receive("evaluated", &[a, b]);
    let mut program = compile(&g).unwrap();
    let (sender, receiver) = mpsc::channel();
    program.receiver("loss", move |tensors| {
        sender.send(tensors[0].scalar()).unwrap()
    });
    let (evaluated, twice) = mpsc::channel();
    program.receiver("evaluated", move |tensors| evaluated.send(tensors).unwrap());
    program.run().unwrap();
    drop(program);
    let losses: Vec<f64> = receiver.into_iter().collect();
    assert!(losses[59] < 0.5 * losses[0], "{losses:?}");
    let twice = twice.recv().unwrap();
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn a_network_of_images_trains() {
    let mut g = Graph::new();
    let net = Sequential::new((
        Conv2d::new(&mut g, "first", 1, 4, Window::of(3).with_padding(1)),
        BatchNorm::new(&mut g, "norm", 4),
        Relu,
        MaxPool2d::of([2, 2]),
        Flatten,
        Linear::new(&mut g, "last", 4 * 3 * 3, 2),
    ));
    let adam = AdamW::new(&mut g, 0.02, 0.0, &net.parameters());
    let x = numbers(&mut g, &[4, 1, 6, 6]);
    let classes = g.constant(TensorType::new(INDEX, [4]), vec![0.0, 1.0, 1.0, 0.0]);
    g.repeat(40, |g, _| {
        let logits = net.forward(g, x);
        let loss = loss::cross_entropy(g, logits, classes);
        let gradients = g.backward(loss);
        adam.step(g, &gradients);
        g.receive("loss", &[loss]);
    });
    let mut program = compile(&g).unwrap();
    let (sender, receiver) = mpsc::channel();
    program.receiver("loss", move |tensors| {
        sender.send(tensors[0].scalar()).unwrap()
    });
    program.run().unwrap();
    drop(program);
    let losses: Vec<f64> = receiver.into_iter().collect();
    assert!(losses[39] < 0.1 * losses[0], "{losses:?}");
}

/// The message with which building a graph panics.
fn message(build: impl FnOnce(&mut Graph)) -> String {
    let mut g = Graph::new();
    let panic = catch_unwind(AssertUnwindSafe(|| build(&mut g))).unwrap_err();
    *panic.downcast::<String>().unwrap()
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let of_conv = message(|g| {
        let layer = Conv2d::new(g, "layer", 3, 4, Window::of(3));
        let x = numbers(g, &[1, 2, 5, 5]);
        layer.forward(g, x);
    });
    assert_eq!(
        of_conv,
        "a convolution of 3 channels over 2 axes was given f32[1, 2, 5, 5]"
    );
    let of_window = message(|g| {
        let layer = Conv2d::new(g, "layer", 2, 4, Window::of(7));
        let x = numbers(g, &[1, 2, 5, 5]);
        layer.forward(g, x);
    });
    assert!(
        of_window.contains("does not fit into axis 3 of f32[2, 1, 5, 5]"),
        "{of_window}"
    );
    let of_loss = message(|g| {
        let (y, target) = (numbers(g, &[4, 1]), numbers(g, &[4]));
        loss::mean_squared_error(g, y, target);
    });
    assert!(
        of_loss.contains("a loss of f32[4, 1] needs a target of the same type, not f32[4]"),
        "{of_loss}"
    );
    let of_classes = message(|g| {
        let (logits, classes) = (numbers(g, &[4, 3]), numbers(g, &[4]));
        loss::cross_entropy(g, logits, classes);
    });
    assert!(
        of_classes.contains("needs an index of a class (i32) for each row, not f32[4]"),
        "{of_classes}"
    );
    let of_sequence = message(|g| {
        let layer = Gru::new(g, "layer", 3, 4);
        let x = numbers(g, &[5, 2, 2]);
        layer.forward(g, x);
    });
    assert_eq!(
        of_sequence,
        "a recurrent layer needs [positions, batch, 3], but it was given f32[5, 2, 2]"
    );
}
