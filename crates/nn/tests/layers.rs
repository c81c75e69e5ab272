//! Layers against formulas and finite differences; training, interpreted and compiled.

use ferrozyme_cpu::compile;
use ferrozyme_filetest::graph::gradcheck;
use ferrozyme_graph::interpret::{Array, Machine};
use ferrozyme_graph::{Graph, INDEX, Scalar, Tensor, TensorType, parse, print};
use ferrozyme_nn::loss::cross_entropy;
use ferrozyme_nn::{
    Adam, Dropout, Gelu, Layer, LayerNorm, Linear, Module, Relu, Sequential, Sgd, Sigmoid, Tanh,
    TransformerEncoder, softmax,
};

fn f32s(shape: &[usize], elements: &[f64]) -> Array {
    Array::new(TensorType::new(Scalar::F32, shape), elements.to_vec())
}

/// What a graph makes of a constant.
fn value_of(x: &Array, build: impl FnOnce(&mut Graph, Tensor) -> Tensor) -> Array {
    let mut g = Graph::new();
    let input = g.constant(x.ty.clone(), x.elements.to_vec());
    let y = build(&mut g, input);
    g.receive("y", &[y]);
    let mut machine = Machine::new(&g);
    machine.run().unwrap();
    machine.received("y").unwrap()[0].clone()
}

fn assert_close(actual: &Array, expected: &[f64]) {
    for (actual, expected) in actual.elements.iter().zip(expected) {
        assert!(
            (actual - expected).abs() < 1e-5,
            "{actual} is not {expected}"
        );
    }
}

#[test]
fn activations_are_their_formulas() {
    let points = [-2.0, -0.5, 0.0, 0.5, 2.0];
    let x = f32s(&[5], &points);
    let check = |layer: &dyn Layer, formula: &dyn Fn(f64) -> f64| {
        let expected: Vec<f64> = points.iter().map(|&x| formula(x)).collect();
        assert_close(&value_of(&x, |g, x| layer.forward(g, x)), &expected);
    };
    check(&Relu, &|x| x.max(0.0));
    check(&Sigmoid, &|x| 1.0 / (1.0 + (-x).exp()));
    check(&Tanh, &f64::tanh);
    // Φ(0.5) and Φ(2), from a table.
    let distribution = |x: f64| match x.abs() {
        0.5 => 0.691_462_46,
        2.0 => 0.977_249_87,
        _ => 0.5,
    };
    check(&Gelu, &|x| {
        let upper = distribution(x);
        x * if x < 0.0 { 1.0 - upper } else { upper }
    });
}

#[test]
fn softmax_and_layer_norm_normalise() {
    let x = f32s(&[2, 3], &[1.0, 2.0, 3.0, 1000.0, 0.0, -1000.0]);
    let y = value_of(&x, softmax);
    assert_close(&y, &[0.090_030_6, 0.244_728_5, 0.665_240_9, 1.0, 0.0, 0.0]);
    let x = f32s(&[2, 3], &[1.0, 2.0, 3.0, 5.0, 5.0, 5.0]);
    let y = value_of(&x, |g, x| LayerNorm::new(g, "norm", 3).forward(g, x));
    assert_close(&y, &[-1.224_735_7, 0.0, 1.224_735_7, 0.0, 0.0, 0.0]);
}

#[test]
fn a_linear_layer_takes_any_number_of_axes() {
    let x = f32s(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
    let mut g = Graph::new();
    let layer = Linear::new(&mut g, "layer", 2, 3);
    let input = g.constant(x.ty.clone(), x.elements.to_vec());
    let y = layer.forward(&mut g, input);
    assert_eq!(g.ty(y).to_string(), "f32[2, 1, 3]");
    g.receive("y", &[y]);
    let mut machine = Machine::new(&g);
    machine.run().unwrap();
    let [weight, bias] = layer.parameters()[..] else {
        panic!("it has two parameters");
    };
    let (weight, bias) = (machine.parameter(weight), machine.parameter(bias));
    let mut expected = Vec::new();
    for row in x.elements.chunks(2) {
        for output in 0..3 {
            let sum = row[0] * weight.at(&[0, output]) + row[1] * weight.at(&[1, output]);
            expected.push(sum + bias.at(&[output]));
        }
    }
    assert_close(&machine.received("y").unwrap()[0], &expected);
}

/// The gradients of a network by its parameters, in double precision.
fn check_gradients(build: impl FnOnce(&mut Graph) -> Tensor) {
    let mut g = Graph::new();
    let y = build(&mut g);
    // Not the sum itself, of which normalisation leaves nothing.
    let bent = g.sin(y);
    let total = g.sum_all(bent);
    g.receive("y", &[total]);
    let text = print::print(&g).replace("f32", "f64");
    let g = parse(&text).unwrap();
    let body = &g.regions[g.body()].ops;
    let total = g.ops[body[body.len() - 1]].operands[0];
    gradcheck(&g, total, &[]).unwrap();
}

#[test]
fn gradients_agree_with_finite_differences() {
    check_gradients(|g| {
        let net = Sequential::new((
            Linear::new(g, "first", 3, 4),
            Gelu,
            LayerNorm::new(g, "norm", 4),
            Linear::new(g, "second", 4, 2),
            Sigmoid,
        ));
        let x = f32s(&[2, 3], &[0.1, -0.4, 0.8, 0.3, 0.9, -0.7]);
        let x = g.constant(x.ty.clone(), x.elements.to_vec());
        net.forward(g, x)
    });
    check_gradients(|g| {
        let encoder = TransformerEncoder::new(g, 2, 4, 2, 6);
        let values: Vec<f64> = (0..12).map(|n| f64::from(n % 5) * 0.25 - 0.4).collect();
        let x = g.constant(TensorType::new(Scalar::F32, [3, 4]), values);
        encoder.forward(g, x)
    });
}

#[test]
fn dropout_drops_other_elements_each_time_and_none_in_evaluation() {
    let mut g = Graph::new();
    let layer = Dropout::new(&mut g, "dropout", 0.25);
    g.repeat(2, |g, _| {
        let x = g.constant(TensorType::new(Scalar::F32, [1000]), 3.0);
        let y = layer.forward(g, x);
        g.receive("y", &[y]);
    });
    let x = g.constant(TensorType::new(Scalar::F32, [2]), 3.0);
    let y = layer.evaluate(&mut g, x);
    g.receive("same", &[y]);
    let mut machine = Machine::new(&g);
    machine.run().unwrap();
    let received = machine.all_received();
    assert_ne!(received[0], received[1]);
    for (_, y) in &received[..2] {
        let dropped = y[0].elements.iter().filter(|&&y| y == 0.0).count();
        assert!((200..300).contains(&dropped), "{dropped}");
        assert!(y[0].elements.iter().all(|&y| y == 0.0 || y == 4.0));
    }
    assert_eq!(received[2].1[0].elements[..], [3.0, 3.0]);
    let [entry] = &layer.entries()[..] else {
        panic!("dropout has one state");
    };
    assert!(!entry.trained);
    assert_eq!(machine.parameter(entry.parameter).scalar(), 2.0);
}

#[test]
fn a_class_that_does_not_exist_makes_loss_and_gradient_nan() {
    for (class, is_known) in [(2.0, true), (3.0, false), (-1.0, false)] {
        let mut g = Graph::new();
        let x = g.parameter("x", [1, 3], vec![0.5, 0.1, -0.3]);
        let logits = g.read(x);
        let classes = g.constant(TensorType::new(INDEX, [1]), class);
        let loss = cross_entropy(&mut g, logits, classes);
        let gradients = g.backward(loss);
        g.receive("y", &[loss, gradients.of_parameter(x).unwrap()]);
        let mut machine = Machine::new(&g);
        machine.run().unwrap();
        for tensor in machine.received("y").unwrap() {
            assert_eq!(tensor.scalar().is_nan(), !is_known, "{class}: {tensor}");
        }
    }
}

#[test]
fn a_sigmoid_has_a_derivative_far_from_zero() {
    let mut g = Graph::new();
    let x = g.parameter("x", [2], vec![-200.0, 200.0]);
    let value = g.read(x);
    let y = Sigmoid.forward(&mut g, value);
    let gradients = g.backward(y);
    g.receive("y", &[y, gradients.of_parameter(x).unwrap()]);
    let mut machine = Machine::new(&g);
    machine.run().unwrap();
    let received = machine.received("y").unwrap();
    assert_eq!(received[0].elements[..], [0.0, 1.0]);
    assert_eq!(received[1].elements[..], [0.0, 0.0]);
}

/// A loop that fits a network to a line, and receives the loss of each step.
fn fit(step: impl FnOnce(&mut Graph, &[ferrozyme_graph::Parameter]) -> Step) -> Graph {
    let mut g = Graph::new();
    let net = Sequential::new((
        Linear::new(&mut g, "first", 1, 8),
        Tanh,
        Linear::new(&mut g, "second", 8, 1),
    ));
    let parameters = net.parameters();
    let optimiser = step(&mut g, &parameters);
    g.repeat(200, |g, _| {
        let ty = TensorType::new(Scalar::F32, [4, 1]);
        let x = g.constant(ty.clone(), vec![-1.0, -0.3, 0.3, 1.0]);
        let target = g.constant(ty, vec![1.0, 0.3, -0.3, -1.0]);
        let y = net.forward(g, x);
        let error = g.sub(y, target);
        let square = g.mul(error, error);
        let loss = g.sum_all(square);
        let gradients = g.backward(loss);
        optimiser(g, &parameters, &gradients);
        g.receive("loss", &[loss]);
    });
    g
}

type Step = Box<dyn Fn(&mut Graph, &[ferrozyme_graph::Parameter], &ferrozyme_graph::Gradients)>;

#[test]
fn optimisers_fit_and_compiled_training_is_interpreted_training() {
    let sgd = fit(|_, _| {
        let sgd = Sgd::new(0.05);
        Box::new(move |g, parameters, gradients| sgd.step(g, parameters, gradients))
    });
    let adam = fit(|g, parameters| {
        let adam = Adam::new(g, 0.02, parameters);
        Box::new(move |g, _, gradients| adam.step(g, gradients))
    });
    for g in [sgd, adam] {
        let mut machine = Machine::new(&g);
        machine.run().unwrap();
        let losses = machine.all_received();
        let (first, last) = (losses[0].1[0].scalar(), losses[199].1[0].scalar());
        assert!(last < 0.02 * first, "from {first} to {last}");
        let mut program = compile(&g).unwrap();
        program.run().unwrap();
        for parameter in g.parameters.keys() {
            let (compiled, interpreted) =
                (program.parameter(parameter), machine.parameter(parameter));
            for (a, b) in compiled.elements.iter().zip(&*interpreted.elements) {
                assert!(
                    (a - b).abs() < 1e-3 * (1.0 + b.abs()),
                    "{compiled} is not {interpreted}"
                );
            }
        }
    }
}
