//! A transformer trains within a budget of memory, with the same losses.

use ferrozyme_cpu::{Error, compile, compile_within};
use ferrozyme_graph::{Graph, Scalar, TensorType};
use ferrozyme_nn::{Layer, Module, Sgd, TransformerEncoder, loss::mean_squared_error};
use std::sync::{Arc, Mutex};

/// Trains a few steps. The losses, and the size of the arena.
fn train(layers: usize, budget: Option<usize>) -> Result<(Vec<f64>, usize), Error> {
    let mut g = Graph::new();
    let encoder = TransformerEncoder::new(&mut g, layers, 32, 4, 64);
    let sgd = Sgd::new(0.05);
    g.repeat(4, |g, _| {
        let ty = TensorType::new(Scalar::F32, [64, 32]);
        let number = |index: usize| ((index * 37 + 11) % 101) as f64 / 50.0 - 1.0;
        let numbers: Vec<f64> = (0..ty.shape.count()).map(number).collect();
        let x = g.constant(ty, numbers);
        let y = encoder.forward(g, x);
        let target = g.sin(x);
        let loss = mean_squared_error(g, y, target);
        let gradients = g.backward(loss);
        sgd.step(g, &encoder.parameters(), &gradients);
        g.receive("loss", &[loss]);
    });
    let mut program = match budget {
        Some(budget) => compile_within(&g, budget)?,
        None => compile(&g)?,
    };
    let arena = program.report().split("arena: ").nth(1);
    let arena = arena.and_then(|text| text.split(' ').next()?.parse().ok());
    if budget.is_some() {
        let report = program.report();
        assert!(report.contains("values are computed again, by"), "{report}");
    }
    let losses: Arc<Mutex<Vec<f64>>> = Arc::default();
    let into = losses.clone();
    program.receiver("loss", move |tensors| {
        into.lock().unwrap().push(tensors[0].scalar())
    });
    program.run()?;
    let losses = losses.lock().unwrap().clone();
    Ok((losses, arena.expect("the report says it")))
}

#[test]
fn losses_are_the_same_in_half_the_memory() {
    let (losses, arena) = train(4, None).unwrap();
    let (again, smaller) = train(4, Some(arena / 2)).unwrap();
    assert!(smaller <= arena / 2, "{smaller} of {arena}");
    assert_eq!(losses.len(), 4);
    for (a, b) in losses.iter().zip(&again) {
        assert!((a - b).abs() <= 1e-5 * a.abs(), "{losses:?} {again:?}");
    }
    let error = train(4, Some(1000)).expect_err("its tensors are larger");
    assert!(matches!(error, Error::Budget(over) if over.budget == 1000 && over.least > 8192));
}
