//! Laws of random tensor graphs. `FERROZYME_GRAPHS=100000` takes that many instead of a few.

use ferrozyme_filetest::graph::{
    compare_derivatives, gradcheck, same_results, same_when_lowered, same_when_planned,
};
use ferrozyme_gen::graph::{GraphProfile, random_graph};
use ferrozyme_graph::fuse::fuse;
use ferrozyme_graph::lower::Fusion;
use ferrozyme_graph::opt::{PASSES, optimise};
use ferrozyme_graph::{Graph, Tensor, parse, print, verify};

const PLAIN: GraphProfile = GraphProfile {
    size: 6,
    control: false,
    updates: false,
};
const FULL: GraphProfile = GraphProfile {
    size: 8,
    control: true,
    updates: true,
};

/// Checks a law on graphs of both profiles.
fn for_all(law: impl Fn(&Graph, Tensor) -> Result<(), String>) {
    let count = std::env::var("FERROZYME_GRAPHS");
    let count: u64 = count
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(150);
    for (name, profile) in [("plain", PLAIN), ("full", FULL)] {
        for seed in 0..count {
            let (graph, tensor) = random_graph(seed, profile);
            if let Err(problem) = law(&graph, tensor) {
                panic!("{name} graph {seed}: {problem}\n{graph}");
            }
        }
    }
}

#[test]
fn graphs_verify_and_read_back() {
    for_all(|graph, _| {
        verify(graph).map_err(|error| error.to_string())?;
        let text = print::print(graph);
        let again = parse(&text).map_err(|error| error.to_string())?;
        verify(&again).map_err(|error| error.to_string())?;
        match print::print(&again) == text {
            true => same_results(graph, &again),
            false => Err(format!("reads back as\n{again}")),
        }
    });
}

#[test]
fn gradients_agree_with_finite_differences() {
    for_all(|graph, tensor| gradcheck(graph, tensor, &[]));
}

fn with_gradients(graph: &Graph, tensor: Tensor) -> Graph {
    let mut with_gradients = graph.clone();
    let gradients = with_gradients.backward(tensor);
    for parameter in graph.parameters.keys() {
        if let Some(gradient) = gradients.of_parameter(parameter) {
            with_gradients.receive("gradient", &[gradient]);
        }
    }
    with_gradients
}

#[test]
fn passes_keep_results() {
    for_all(|graph, tensor| {
        let with_gradients = with_gradients(graph, tensor);
        let check = |name: &str, after: &Graph| {
            verify(after).map_err(|error| format!("after {name}: {error}\n{after}"))?;
            same_results(&with_gradients, after)
                .map_err(|problem| format!("after {name}: {problem}\n{after}"))
        };
        for (name, pass) in PASSES {
            let mut after = with_gradients.clone();
            pass(&mut after);
            check(name, &after)?;
        }
        let mut after = with_gradients.clone();
        optimise(&mut after);
        check("all passes", &after)
    });
}

#[test]
fn lowering_keeps_results() {
    for_all(|graph, _| same_when_lowered(graph, &Fusion::default()));
}

#[test]
fn gradients_are_the_derivatives_of_the_lowered_graph() {
    for_all(|graph, tensor| compare_derivatives(graph, tensor, &Fusion::default()));
}

#[test]
fn fusion_and_memory_plans_keep_results() {
    for_all(|graph, tensor| {
        let mut graph = with_gradients(graph, tensor);
        same_when_planned(&graph, &Fusion::default())?;
        optimise(&mut graph);
        let (fusion, _) = fuse(&graph);
        same_when_lowered(&graph, &fusion)?;
        same_when_planned(&graph, &fusion)
    });
}
