//! Checks the laws of tensor graphs on random ones, as many as requested, in interpreters.
//!
//! ```text
//! cargo run --release -p ferrozyme-gen --bin soak-graphs -- --count 1000000 --laws gradcheck,loops
//! cargo run --release -p ferrozyme-gen --bin soak-graphs -- --seed 4711 --count 1
//! ```
//!
//! The kinds of graphs take turns. Failures are printed with their graphs, and the last lines say how often each law was checked. The exit code says whether all hold.

use clap::Parser;
use ferrozyme_gen::graph_laws::{GRAPH_LAWS, GraphLaw, KINDS};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Random tensor graphs against their laws.
#[derive(Parser)]
struct Arguments {
    /// How many graphs to take.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// The seed of the first graph; the others follow.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Which laws to check, separated by commas [default: all].
    #[arg(long, value_delimiter = ',', value_parser = parse_law)]
    laws: Vec<&'static GraphLaw>,
    /// Number of threads [default: number of processors].
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// After how many seconds to stop.
    #[arg(long)]
    time_limit: Option<u64>,
    /// After how many failures to stop.
    #[arg(long, default_value_t = 20)]
    failures: u64,
}

fn parse_law(name: &str) -> Result<&'static GraphLaw, String> {
    GraphLaw::named(name).ok_or_else(|| {
        let names: Vec<&str> = GRAPH_LAWS.iter().map(|law| law.name).collect();
        format!("there is no such law; there are {}", names.join(", "))
    })
}

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::parse();
    if arguments.laws.is_empty() {
        arguments.laws = GRAPH_LAWS.iter().collect();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads);
    let failures = pool.build()?.install(|| soak(&arguments));
    Ok(ExitCode::from(u8::from(failures > 0)))
}

/// Returns how many failures there were.
fn soak(arguments: &Arguments) -> u64 {
    let start = Instant::now();
    let limit = arguments.time_limit.map(Duration::from_secs);
    let failures = AtomicU64::new(0);
    let checked: Vec<AtomicU64> = arguments.laws.iter().map(|_| AtomicU64::new(0)).collect();
    // Seeds follow each other closely, so that a run that ends early has taken the first ones.
    let seeds = (arguments.seed..arguments.seed.saturating_add(arguments.count)).par_bridge();
    seeds.for_each(|seed| {
        let is_late = limit.is_some_and(|limit| start.elapsed() >= limit);
        if is_late || failures.load(Ordering::Relaxed) >= arguments.failures {
            return;
        }
        let kind = &KINDS[(seed % KINDS.len() as u64) as usize];
        for (law, checked) in arguments.laws.iter().zip(&checked) {
            if !law.is_for(kind) {
                continue;
            }
            checked.fetch_add(1, Ordering::Relaxed);
            let outcome = catch_unwind(AssertUnwindSafe(|| law.check(kind, seed)));
            let problem = match outcome {
                Ok(Ok(())) => continue,
                Ok(Err(problem)) => problem,
                // The panic has said where and why.
                Err(_) => format!("{}: {} graph {seed}: a panic", law.name, kind.name),
            };
            failures.fetch_add(1, Ordering::Relaxed);
            println!("{problem}");
        }
    });
    for (law, checked) in arguments.laws.iter().zip(&checked) {
        println!("{}: {} graphs", law.name, checked.load(Ordering::Relaxed));
    }
    let failures = failures.into_inner();
    let seconds = start.elapsed().as_secs_f64();
    println!("{failures} failures in {seconds:.0} s");
    failures
}
