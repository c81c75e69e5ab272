//! How long the driver works when a program is linked, phase by phase: `cargo bench -p ferrozyme-cli --bench link`.
//!
//! Each program is linked several times by `cargo ferrozyme explain`, which reports the phases; the medians are shown. What the driver adds to a
//! link is everything but the real linker.
//!
//! Other programs of this repository can be named: `… --bench link -- "-p ferrozyme-examples --bin fit"`.

#![allow(clippy::print_stdout, reason = "the table is the result")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What is linked, as arguments of cargo.
const PROGRAMS: [&str; 3] = [
    "-p ferrozyme-examples --bin energy",
    "-p ferrozyme-examples --bin energy --release",
    "-p ferrozyme-bench-components --bench components --profile bench",
];

/// How often each is linked.
const RUNS: usize = 5;

/// What is not the driver's own work.
const REAL_LINKER: &str = "real linker";

fn main() {
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let programs = match named.is_empty() {
        true => PROGRAMS.map(str::to_owned).to_vec(),
        false => named,
    };
    for program in programs {
        println!("\n{program}");
        match measure(&program) {
            Ok(phases) => print_table(&phases),
            Err(problem) => println!("  {problem}"),
        }
    }
}

/// The phases in order, with their medians in milliseconds.
fn measure(program: &str) -> Result<Vec<(String, f64)>, String> {
    let mut order = Vec::new();
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..RUNS {
        for (phase, time) in link(program)? {
            if !order.contains(&phase) {
                order.push(phase.clone());
            }
            times.entry(phase).or_default().push(time);
        }
    }
    let median = |phase: &String| {
        let mut times = times[phase].clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(order
        .iter()
        .map(|phase| (phase.clone(), median(phase)))
        .collect())
}

/// Links once, and gives the phases in milliseconds. Phases that occur several times are added up.
fn link(program: &str) -> Result<Vec<(String, f64)>, String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-ferrozyme"))
        .args(["ferrozyme", "explain"])
        .args(program.split_whitespace())
        .current_dir(repository)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut phases: Vec<(String, f64)> = Vec::new();
    for line in text.lines().skip_while(|line| *line != "time:").skip(1) {
        let Some((phase, time)) = parse_phase(line) else {
            continue;
        };
        match phases.iter_mut().find(|(known, _)| known == phase) {
            Some((_, sum)) => *sum += time,
            None => phases.push((phase.to_owned(), time)),
        }
    }
    match phases.is_empty() {
        true => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        false => Ok(phases),
    }
}

/// `  generate code    11.6 ms`
fn parse_phase(line: &str) -> Option<(&str, f64)> {
    let line = line.trim();
    let (rest, factor) = match line.strip_suffix(" ms") {
        Some(rest) => (rest, 1.0),
        None => (line.strip_suffix(" s")?, 1000.0),
    };
    let (phase, number) = rest.rsplit_once(' ')?;
    Some((phase.trim(), number.parse::<f64>().ok()? * factor))
}

fn print_table(phases: &[(String, f64)]) {
    for (phase, time) in phases {
        println!("  {phase:<24} {time:>9.1} ms");
    }
    let added: f64 = phases
        .iter()
        .filter(|(phase, _)| phase != REAL_LINKER)
        .map(|(_, time)| time)
        .sum();
    println!("  {:<24} {added:>9.1} ms", "added by the driver");
}
