//! The laws of random tensor graphs. None of them compiles anything: graphs and what they are lowered to run in interpreters. That backends agree with these is a test of `ferrozyme-conformance`.

use crate::graph::{GraphProfile, mixture, random_graph};
use ferrozyme_filetest::graph::{
    compare_derivatives, gradcheck, same_results, same_when_lowered, same_when_planned,
};
use ferrozyme_graph::fuse::fuse;
use ferrozyme_graph::lower::Fusion;
use ferrozyme_graph::memory::{delay_values, fit_memory, plan_memory};
use ferrozyme_graph::opt::{PASSES, optimise};
use ferrozyme_graph::{Graph, Tensor, parse, print, verify};

type Outcome = Result<(), String>;

/// A kind of random graphs.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What its graphs may have.
    pub profile: GraphProfile,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "plain",
        profile: GraphProfile {
            size: 6,
            control: false,
            updates: false,
            calls: false,
        },
    },
    Kind {
        name: "full",
        profile: GraphProfile {
            size: 8,
            control: true,
            updates: true,
            calls: false,
        },
    },
    Kind {
        name: "calling",
        profile: GraphProfile {
            size: 8,
            control: true,
            updates: true,
            calls: true,
        },
    },
];

/// Something that holds for all graphs.
#[derive(Debug)]
pub struct GraphLaw {
    /// Its name.
    pub name: &'static str,
    check: fn(&Graph, Tensor) -> Outcome,
    /// Whether it holds for graphs that call Rust functions, which the Loop IR's differentiator does not see into.
    allows_calls: bool,
}

const fn law(name: &'static str, check: fn(&Graph, Tensor) -> Outcome) -> GraphLaw {
    GraphLaw {
        name,
        check,
        allows_calls: true,
    }
}

/// All laws.
pub const GRAPH_LAWS: &[GraphLaw] = &[
    law("text", reads_back),
    law("gradcheck", agrees_with_finite_differences),
    law("passes", passes_keep_results),
    law("lowering", lowering_keeps_results),
    GraphLaw {
        allows_calls: false,
        ..law("loops", agrees_with_loop_derivatives)
    },
    law("plans", plans_keep_results),
    law("delays", delays_keep_results_and_save_memory),
    law("budgets", budgets_are_kept_or_the_least_is_said),
];

impl GraphLaw {
    /// The law of this name.
    pub fn named(name: &str) -> Option<&'static GraphLaw> {
        GRAPH_LAWS.iter().find(|law| law.name == name)
    }

    /// Whether it says something about graphs of a kind.
    pub fn is_for(&self, kind: &Kind) -> bool {
        self.allows_calls || !kind.profile.calls
    }

    /// Checks it for the graph of a seed. The error shows the graph.
    pub fn check(&self, kind: &Kind, seed: u64) -> Outcome {
        let (graph, tensor) = random_graph(seed, kind.profile);
        let outcome = (self.check)(&graph, tensor);
        outcome.map_err(|problem| {
            let (law, kind) = (self.name, kind.name);
            format!("{law}: {kind} graph {seed}: {problem}\n{graph}")
        })
    }
}

/// A graph that receives the gradients of a tensor, too.
pub fn with_gradients(graph: &Graph, tensor: Tensor) -> Graph {
    let mut with_gradients = graph.clone();
    append_gradients(&mut with_gradients, tensor, "");
    with_gradients
}

/// Appends the gradients of a tensor by all parameters, which are received under a name that begins as `prefix` says.
pub fn append_gradients(graph: &mut Graph, tensor: Tensor, prefix: &str) {
    let gradients = graph.backward(tensor);
    for parameter in graph.parameters.keys().collect::<Vec<_>>() {
        if let Some(gradient) = gradients.of_parameter(parameter) {
            graph.receive(&format!("{prefix}gradient"), &[gradient]);
        }
    }
}

/// A graph that verifies and comes to the same as another one; says where not, and shows it.
fn still(graph: &Graph, after: &Graph) -> Outcome {
    let outcome = verify(after).map_err(|error| error.to_string());
    let outcome = outcome.and_then(|()| same_results(graph, after));
    outcome.map_err(|problem| format!("{problem}\n{after}"))
}

fn reads_back(graph: &Graph, _: Tensor) -> Outcome {
    verify(graph).map_err(|error| error.to_string())?;
    let text = print::print(graph);
    let mut again = parse(&text).map_err(|error| error.to_string())?;
    again.define(&mixture());
    verify(&again).map_err(|error| error.to_string())?;
    match print::print(&again) == text {
        true => same_results(graph, &again),
        false => Err(format!("reads back as\n{again}")),
    }
}

fn agrees_with_finite_differences(graph: &Graph, tensor: Tensor) -> Outcome {
    gradcheck(graph, tensor, &[])
}

fn passes_keep_results(graph: &Graph, tensor: Tensor) -> Outcome {
    let graph = with_gradients(graph, tensor);
    let check = |name: &str, pass: &dyn Fn(&mut Graph)| {
        let mut after = graph.clone();
        pass(&mut after);
        still(&graph, &after).map_err(|problem| format!("after {name}: {problem}"))
    };
    for (name, pass) in PASSES {
        check(name, &|graph| {
            pass(graph);
        })?;
    }
    check("all passes", &|graph| {
        optimise(graph);
    })
}

fn lowering_keeps_results(graph: &Graph, _: Tensor) -> Outcome {
    same_when_lowered(graph, &Fusion::default())
}

fn agrees_with_loop_derivatives(graph: &Graph, tensor: Tensor) -> Outcome {
    compare_derivatives(graph, tensor, &Fusion::default())
}

fn plans_keep_results(graph: &Graph, tensor: Tensor) -> Outcome {
    let mut graph = with_gradients(graph, tensor);
    same_when_planned(&graph, &Fusion::default())?;
    optimise(&mut graph);
    let (fusion, _) = fuse(&graph);
    same_when_lowered(&graph, &fusion)?;
    same_when_planned(&graph, &fusion)
}

fn arena(graph: &Graph) -> usize {
    plan_memory(graph, &fuse(graph).0).arena
}

/// A graph comes to the same as another one, and its plan as well.
fn still_with_plan(graph: &Graph, after: &Graph) -> Outcome {
    still(graph, after)?;
    same_when_planned(after, &fuse(after).0).map_err(|problem| format!("{problem}\n{after}"))
}

fn delays_keep_results_and_save_memory(graph: &Graph, tensor: Tensor) -> Outcome {
    let mut graph = with_gradients(graph, tensor);
    optimise(&mut graph);
    let mut after = graph.clone();
    let delayed = delay_values(&mut after);
    if delayed > 0 && arena(&after) >= arena(&graph) {
        return Err(format!("{delayed} delays save nothing\n{after}"));
    }
    still_with_plan(&graph, &after)
}

/// Half of what a graph needs, a quarter, and as little as possible: the plan keeps the budget or says what the least is, and that can be kept. Results stay.
fn budgets_are_kept_or_the_least_is_said(graph: &Graph, tensor: Tensor) -> Outcome {
    let mut graph = with_gradients(graph, tensor);
    optimise(&mut graph);
    let before = arena(&graph);
    let check = |fitted: &Graph, budget: usize| {
        let after = arena(fitted);
        if after > budget {
            return Err(format!("{after} bytes instead of {budget}\n{fitted}"));
        }
        still_with_plan(&graph, fitted)
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
}
