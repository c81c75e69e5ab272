//! Large products run on several threads, with the same bits for any number of them.

use ferrozyme_cpu::compile;
use ferrozyme_graph::{Graph, Scalar, TensorType};
use std::sync::{Arc, Mutex};

/// A product, its gradients, and a small product, in a pool of so many threads.
fn results(threads: usize) -> Vec<Vec<f64>> {
    let mut g = Graph::new();
    let [left, right] = [1, 2].map(|seed| {
        let counter = g.constant(TensorType::scalar(ferrozyme_graph::INDEX), 0.0);
        g.random(TensorType::new(Scalar::F32, [300, 300]), seed, counter)
    });
    let weights = g.parameter_of("w", TensorType::new(Scalar::F32, [300, 300]), 0.5);
    let held = g.read(weights);
    let scaled = g.mul(right, held);
    let product = g.contract("ab, bc -> ac", left, scaled);
    let small = g.part(product, 0, 0..2);
    let small = g.contract("ab, cb -> ac", small, small);
    let sum = g.sum_all(product);
    let gradient = g.backward(sum).of_parameter(weights);
    let gradient = gradient.expect("it has an influence");
    g.receive("all", &[product, small, gradient]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let pool = pool.build().expect("threads start");
    pool.install(|| {
        let received: Arc<Mutex<Vec<Vec<f64>>>> = Arc::default();
        let into = received.clone();
        let mut program = compile(&g).expect("it compiles");
        program.receiver("all", move |tensors| {
            let tensors = tensors.iter().map(|tensor| tensor.elements.to_vec());
            *into.lock().expect("nobody panics") = tensors.collect();
        });
        program.run().expect("it runs");
        std::mem::take(&mut *received.lock().expect("nobody panics"))
    })
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let alone = results(1);
    assert!(alone[0].iter().all(|&sum| sum > 0.0));
    for threads in [2, 3, 8] {
        assert!(results(threads) == alone, "{threads} threads");
    }
}
