//! Measures every component side by side in one run on one thread, and writes the table to `RESULTS.md`.
//!
//! `cargo fz bench -p ferrozyme-bench-components` regenerates it; with arguments that select benchmarks (`-- attention`) the table is
//! printed for those only and the file is left alone. Four things are measured for each component:
//! - the forward pass,
//! - the hand-written backward pass, which uses what the forward pass kept,
//! - Ferrozyme's derivative with discarded outputs (`DuplicatedOnly`): it recomputes what it needs of the forward pass,
//! - Ferrozyme's derivative with the outputs: forward and backward pass in one.
//!
//! Bytes are counted by the allocator while the derivative runs, plus what the forward pass keeps in the caller's memory.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::Criterion;
use ferrozyme_bench_components::cases::{Component, all};
use ferrozyme_bench_memory::peak_of;

const MEASURED: [&str; 4] = [
    "forward",
    "backward by hand",
    "backward",
    "forward and backward",
];

fn measure(criterion: &mut Criterion, component: &mut dyn Component) {
    let mut group = criterion.benchmark_group(component.name());
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    component.forward();
    let runs: [fn(&mut dyn Component); 4] = [
        |component| component.forward(),
        |component| component.backward_by_hand(),
        |component| component.backward(),
        |component| component.forward_and_backward(),
    ];
    for (name, run) in MEASURED.into_iter().zip(runs) {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut total = Duration::ZERO;
                for _ in 0..iterations {
                    // Derivatives consume the seed, so it is restored, outside the measured time.
                    component.seed();
                    let start = Instant::now();
                    run(component);
                    total += start.elapsed();
                }
                total
            });
        });
    }
    group.finish();
}

/// The median that criterion found, in seconds.
fn median(output: &Path, group: &str, name: &str) -> Option<f64> {
    let path = output
        .join(group.replace('/', "_"))
        .join(name)
        .join("new")
        .join("estimates.json");
    let text = std::fs::read_to_string(path).ok()?;
    let estimates: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(estimates["median"]["point_estimate"].as_f64()? / 1e9)
}

fn bytes(count: usize) -> String {
    match count {
        0 => "0".to_string(),
        1..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

/// As [`bytes`], if memory is counted.
fn counted(count: Option<usize>) -> String {
    count.map_or_else(|| "–".to_string(), bytes)
}

fn row(table: &mut String, output: &Path, component: &mut dyn Component) -> bool {
    let name = component.name();
    let times: Vec<f64> = MEASURED
        .iter()
        .filter_map(|measured| median(output, &name, measured))
        .collect();
    let &[forward, by_hand, backward, both] = &times[..] else {
        return false;
    };
    component.seed();
    let alone = peak_of(|| component.backward()).1;
    component.seed();
    let together = peak_of(|| component.forward_and_backward()).1;
    let kept = component.kept_bytes();
    writeln!(
        table,
        "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {} | {} |",
        1e3 * forward,
        1e3 * by_hand,
        1e3 * backward,
        1e3 * both,
        backward / by_hand,
        (both - forward) / by_hand,
        both / (forward + by_hand),
        backward / (forward + by_hand),
        bytes(kept),
        counted(alone),
        counted(together.map(|together| kept + together)),
    )
    .is_ok()
}

fn main() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output: PathBuf =
        std::env::temp_dir().join(format!("ferrozyme-components-{}", std::process::id()));
    let mut criterion = Criterion::default()
        .without_plots()
        .output_directory(&output)
        .configure_from_args();
    let mut components = all();
    for component in &mut components {
        measure(&mut criterion, component.as_mut());
    }
    criterion.final_summary();

    let mut table = String::from(
        "| component | forward ms | by hand ms | Ferrozyme ms | with outputs ms | backward ratio | added ratio | whole ratio | alone ratio | kept by hand | tape | kept with outputs |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let complete = components
        .iter_mut()
        .all(|component| row(&mut table, &output, component.as_mut()));
    println!("{table}");
    if complete {
        let text = format!("{}{table}", include_str!("../RESULTS.head.md"));
        if let Err(error) = std::fs::write(package.join("RESULTS.md"), text) {
            eprintln!("the table could not be written: {error}");
        }
    }
    // What criterion noted for this run has been read.
    let _ = std::fs::remove_dir_all(&output);
}
