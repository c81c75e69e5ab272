//! The graphs: for the build script, and for tests that compile them in process.

use ferrozyme_graph::{FloatPredicate, Graph, INDEX, Scalar, TensorType, UserFunction};
use ferrozyme_nn::{Adam, Layer, Linear, Module, Sequential, Tanh, loss::mean_squared_error};

/// Trains a network.
pub(crate) fn training() -> Graph {
    let mut g = Graph::new();
    let net = Sequential::new((
        Linear::new(&mut g, "first", 2, 40),
        Tanh,
        Linear::new(&mut g, "second", 40, 1),
    ));
    let adam = Adam::new(&mut g, 0.05, &net.parameters());
    g.repeat(50, |g, _| {
        let x = g.feed("x", [4, 2]);
        let target = g.feed("target", [4, 1]);
        let y = net.forward(g, x);
        let loss = mean_squared_error(g, y, target);
        let gradients = g.backward(loss);
        adam.step(g, &gradients);
        g.receive("loss", &[loss]);
    });
    g
}

/// Exchanges tensors of all elements that Rust has, several at once, and has loops and branches.
pub(crate) fn kinds() -> Graph {
    let mut g = Graph::new();
    let whole = TensorType::new(INDEX, [3]);
    let total = g.parameter_of("total.of all", whole.clone(), vec![1.0, 2.0, 3.0]);
    let i = g.feed_of("i", whole);
    let d = g.feed_of("d", TensorType::new(Scalar::F64, [2, 3]));
    let x = g.feed("x", []);
    let old = g.read(total);
    let sum = g.add(old, i);
    g.update(total, sum);
    let floats = g.cast(sum, Scalar::F64);
    let all = g.mul(d, floats);
    let doubled = g.while_loop(
        &[x],
        |g, carried| {
            let limit = g.constant_like(carried[0], 100.0);
            g.compare(FloatPredicate::Olt, carried[0], limit)
        },
        |g, carried| vec![g.scale(carried[0], 2.0)],
    );
    g.receive("all of them", &[all, sum, doubled[0]]);
    g
}

/// Calls a Rust function and its derivative.
pub(crate) fn calling(law: &UserFunction) -> Graph {
    let mut g = Graph::new();
    let w = g.parameter("w", [3], 0.5);
    let x = g.feed("x", [3]);
    let value = g.read(w);
    let product = g.mul(value, x);
    let [y] = g.call(law, &[product], [[3]]);
    let loss = g.sum_all(y);
    let gradients = g.backward(loss);
    let gradient = gradients.of_parameter(w).expect("it depends on it");
    g.update(w, gradient);
    g.receive("loss", &[loss]);
    g
}
