//! Laws of random tensor graphs. `FERROZYME_GRAPHS=1000` takes that many of each kind instead of a few; the command `soak-graphs` takes more.

use ferrozyme_filetest::graph::same_with_plan;
use ferrozyme_gen::graph::random_graph;
use ferrozyme_gen::graph_laws::{GraphLaw, KINDS, with_gradients};
use ferrozyme_graph::fuse::fuse;
use ferrozyme_graph::memory::plan_memory;
use ferrozyme_graph::opt::optimise;

fn holds(name: &str) {
    let law = GraphLaw::named(name).expect("there is a law of this name");
    let count = std::env::var("FERROZYME_GRAPHS");
    let count = count.ok().and_then(|count| count.parse().ok());
    for kind in KINDS.iter().filter(|kind| law.is_for(kind)) {
        for seed in 0..count.unwrap_or(150) {
            if let Err(problem) = law.check(kind, seed) {
                panic!("{problem}");
            }
        }
    }
}

#[test]
fn graphs_verify_and_read_back() {
    holds("text");
}

#[test]
fn gradients_agree_with_finite_differences() {
    holds("gradcheck");
}

#[test]
fn passes_keep_results() {
    holds("passes");
}

#[test]
fn lowering_keeps_results() {
    holds("lowering");
}

#[test]
fn gradients_are_the_derivatives_of_the_lowered_graph() {
    holds("loops");
}

#[test]
fn fusion_and_memory_plans_keep_results() {
    holds("plans");
}

#[test]
fn delayed_values_keep_results_and_save_memory() {
    holds("delays");
}

#[test]
fn budgets_are_kept_or_the_least_is_said() {
    holds("budgets");
}

/// The law about plans notices if memory is taken for dead one operation too early.
#[test]
fn memory_that_is_dead_too_early_is_noticed() {
    let (mut moved, mut noticed) = (0, 0);
    for seed in 0..10 {
        let (graph, tensor) = random_graph(seed, KINDS[1].profile);
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
