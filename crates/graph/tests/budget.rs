//! Graphs that are fitted into a budget of memory.

use ferrozyme_graph::fuse::fuse;
use ferrozyme_graph::memory::{check_memory, delay_values, fit_memory, plan_memory};
use ferrozyme_graph::opt::optimise;
use ferrozyme_graph::print::print;
use ferrozyme_graph::{Graph, INDEX, TensorType, verify};

/// A step of training of a network with this many layers.
fn network(layers: usize) -> Graph {
    let mut g = Graph::new();
    let names = (0..layers).map(|layer| format!("w{layer}"));
    let weights: Vec<_> = names
        .map(|name| g.parameter(&name, [32, 32], 0.1))
        .collect();
    g.repeat(10, |g, _| {
        let mut x = g.feed("x", [64, 32]);
        for &weight in &weights {
            let weight = g.read(weight);
            let product = g.contract("ij,jk->ik", x, weight);
            x = g.tanh(product);
        }
        let gradients = g.backward(x);
        for &weight in &weights {
            let gradient = gradients.of_parameter(weight).expect("it is used");
            let old = g.read(weight);
            let change = g.scale(gradient, -0.1);
            let new = g.add(old, change);
            g.update(weight, new);
        }
    });
    optimise(&mut g);
    g
}

fn arena(graph: &Graph) -> usize {
    let (fusion, _) = fuse(graph);
    let plan = plan_memory(graph, &fusion);
    check_memory(graph, &fusion, &plan).expect("the plan holds");
    plan.arena
}

#[test]
fn activations_are_computed_again() {
    let graph = network(12);
    let before = arena(&graph);
    // Twelve activations wait for the backward pass.
    assert!(before >= 12 * 64 * 32 * 4, "{before}");
    let mut shares = Vec::new();
    for part in [3, 2] {
        let mut fitted = graph.clone();
        let done = fit_memory(&mut fitted, before * part / 4).expect("it fits");
        verify(&fitted).expect("it is well formed");
        assert!(arena(&fitted) <= before * part / 4);
        assert!(done.values > 0 && done.budget == before * part / 4);
        shares.push(done.share);
    }
    // A part of the forward pass, and more of it for less memory.
    assert!(
        0.0 < shares[0] && shares[0] < shares[1] && shares[1] < 0.5,
        "{shares:?}"
    );
}

#[test]
fn what_fits_stays_as_it_is() {
    let graph = network(3);
    let mut fitted = graph.clone();
    let done = fit_memory(&mut fitted, arena(&graph)).expect("it fits");
    assert_eq!((done.values, done.share), (0, 0.0));
    assert_eq!(print(&fitted), print(&graph));
}

#[test]
fn what_cannot_fit_says_what_the_least_is() {
    let graph = network(6);
    let mut fitted = graph.clone();
    let error = fit_memory(&mut fitted, 1000).expect_err("two tensors are larger");
    assert_eq!(print(&fitted), print(&graph));
    let least = error.least;
    assert!(least >= 2 * 64 * 32 * 4 && least < arena(&graph), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "the graph does not fit into 1000 bytes: the least that it can be planned for is {least} bytes"
        )
    );
    fit_memory(&mut fitted, least).expect("it was said");
    assert!(arena(&fitted) <= least);
}

/// The gradient of a table that is read at both ends of a network: its large part is known first and needed last.
#[test]
fn a_large_gradient_is_computed_when_it_is_needed() {
    let mut g = Graph::new();
    let embedding = g.parameter("embedding", [512, 16], 0.1);
    let weights: Vec<_> = (0..6)
        .map(|layer| g.parameter(&format!("w{layer}"), [16, 16], 0.1))
        .collect();
    let tokens = g.feed_of("tokens", TensorType::new(INDEX, [8]));
    let words = g.read(embedding);
    let mut x = g.gather(words, tokens, 0);
    for &weight in &weights {
        let weight = g.read(weight);
        let product = g.contract("ij,jk->ik", x, weight);
        x = g.tanh(product);
    }
    let logits = g.contract("ik,jk->ij", x, words);
    let powers = g.exp(logits);
    let gradients = g.backward(powers);
    for parameter in [&weights[..], &[embedding]].concat() {
        let gradient = gradients.of_parameter(parameter).expect("it is used");
        let old = g.read(parameter);
        let change = g.scale(gradient, -0.1);
        let new = g.add(old, change);
        g.update(parameter, new);
    }
    optimise(&mut g);
    let (table, logits, row) = (512 * 16 * 4, 8 * 512 * 4, 8 * 16 * 4);
    // The gradient is there while the activations of the layers wait.
    assert!(arena(&g) > table + logits + 5 * row);
    let count = |g: &Graph| g.regions[g.body()].ops.len();
    let before = count(&g);
    assert_eq!(delay_values(&mut g), 1);
    verify(&g).expect("it is well formed");
    // Nothing is computed twice.
    assert_eq!(count(&g), before);
    let after = arena(&g);
    assert!(after <= table + logits + 4 * row, "{after} bytes");
    assert_eq!(delay_values(&mut g), 0);
}
