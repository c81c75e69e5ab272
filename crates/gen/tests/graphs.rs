//! Laws of random tensor graphs. `FERROZYME_GRAPHS=100000` takes that many instead of a few.

use ferrozyme_filetest::graph::{
    compare_derivatives, gradcheck, same_results, same_when_lowered, same_when_planned,
    same_with_plan,
};
use ferrozyme_gen::graph::{GraphProfile, mixture, random_graph};
use ferrozyme_graph::fuse::fuse;
use ferrozyme_graph::lower::Fusion;
use ferrozyme_graph::memory::{delay_values, fit_memory, plan_memory};
use ferrozyme_graph::opt::{PASSES, optimise};
use ferrozyme_graph::{Graph, Tensor, parse, print, verify};

const PLAIN: GraphProfile = GraphProfile {
    size: 6,
    control: false,
    updates: false,
    calls: false,
};
const FULL: GraphProfile = GraphProfile {
    size: 8,
    control: true,
    updates: true,
    calls: false,
};
/// With Rust functions, which the Loop IR's differentiator does not see into.
const CALLING: GraphProfile = GraphProfile {
    calls: true,
    ..FULL
};

/// Checks a law on graphs of all profiles.
fn for_all(law: impl Fn(&Graph, Tensor) -> Result<(), String>) {
    let profiles = [("plain", PLAIN), ("full", FULL), ("calling", CALLING)];
    for_profiles(&profiles, law);
}

fn for_profiles(
    profiles: &[(&str, GraphProfile)],
    law: impl Fn(&Graph, Tensor) -> Result<(), String>,
) {
    let count = std::env::var("FERROZYME_GRAPHS");
    let count: u64 = count
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(150);
    for &(name, profile) in profiles {
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
        let mut again = parse(&text).map_err(|error| error.to_string())?;
        again.define(&mixture());
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
    for_profiles(&[("plain", PLAIN), ("full", FULL)], |graph, tensor| {
        compare_derivatives(graph, tensor, &Fusion::default())
    });
}

/// Half of what a graph needs, a quarter, and as little as possible: the plan keeps the budget or says what the least is, and that can be kept. Results stay.
#[test]
fn budgets_are_kept_or_the_least_is_said() {
    for_all(|graph, tensor| {
        let mut graph = with_gradients(graph, tensor);
        optimise(&mut graph);
        let arena = |graph: &Graph| plan_memory(graph, &fuse(graph).0).arena;
        let before = arena(&graph);
        let check = |fitted: &Graph, budget: usize| {
            let after = arena(fitted);
            if after > budget {
                return Err(format!("{after} bytes instead of {budget}\n{fitted}"));
            }
            verify(fitted).map_err(|error| format!("{error}\n{fitted}"))?;
            same_results(&graph, fitted).map_err(|problem| format!("{problem}\n{fitted}"))?;
            same_when_planned(fitted, &fuse(fitted).0)
                .map_err(|problem| format!("{problem}\n{fitted}"))
        };
        for budget in [before / 2, before / 4, 0] {
            let mut fitted = graph.clone();
            match fit_memory(&mut fitted, budget) {
                Ok(_) => check(&fitted, budget)?,
                Err(error) => {
                    if error.least <= budget || error.least > before {
                        return Err(format!("{error}, but it needs {before}"));
                    }
                    fit_memory(&mut fitted, error.least).map_err(|error| error.to_string())?;
                    check(&fitted, error.least)?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn delayed_values_keep_results_and_save_memory() {
    for_all(|graph, tensor| {
        let mut graph = with_gradients(graph, tensor);
        optimise(&mut graph);
        let arena = |graph: &Graph| plan_memory(graph, &fuse(graph).0).arena;
        let mut after = graph.clone();
        let delayed = delay_values(&mut after);
        if delayed > 0 && arena(&after) >= arena(&graph) {
            return Err(format!("{delayed} delays save nothing\n{after}"));
        }
        verify(&after).map_err(|error| format!("{error}\n{after}"))?;
        same_results(&graph, &after).map_err(|problem| format!("{problem}\n{after}"))?;
        same_when_planned(&after, &fuse(&after).0).map_err(|problem| format!("{problem}\n{after}"))
    });
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

/// The law about plans notices if memory is taken for dead one operation too early.
#[test]
fn memory_that_is_dead_too_early_is_noticed() {
    let (mut moved, mut noticed) = (0, 0);
    for seed in 0..10 {
        let (graph, tensor) = random_graph(seed, FULL);
        let mut graph = with_gradients(&graph, tensor);
        optimise(&mut graph);
        let (fusion, _) = fuse(&graph);
        let plan = plan_memory(&graph, &fusion);
        let ops = graph.regions[graph.body()].ops.clone();
        for pair in ops.windows(2) {
            if plan.dead[pair[1]].is_empty() || !graph.ops[pair[0]].regions.is_empty() {
                continue;
            }
            let mut early = plan.clone();
            let ranges = std::mem::take(&mut early.dead[pair[1]]);
            early.dead[pair[0]].extend(ranges);
            moved += 1;
            noticed += u32::from(same_with_plan(&graph, &fusion, &early).is_err());
        }
    }
    assert!(
        moved > 50 && noticed * 10 > moved * 7,
        "{noticed} of {moved}"
    );
}
