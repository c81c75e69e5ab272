//! Runs ADBench's objectives with its timing protocol and checks, and prints how much longer derivatives take than objectives.
//!
//! `cargo fz run --release -p ferrozyme-adbench -- --data FOLDER`

use clap::Parser;
use ferrozyme_adbench::check::{TOLERANCE, largest_error};
use ferrozyme_adbench::instances::{Derivative, Problem, find};
use ferrozyme_adbench::report::{Measured, draw_chart, write_table};
use ferrozyme_adbench::timing::{Clock, Protocol};
use ferrozyme_bench_memory::peak_of;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// ADBench in plain Rust: derivatives by Ferrozyme beside hand-written ones.
///
/// Each instance is checked first: automatic and hand-written derivative must agree to 1e-8. Then objective (F), derivative (J) and hand-written
/// derivative are timed as ADBench does: the number of repetitions is doubled until they take half a second, and the fastest of ten such batches counts.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The folder with ADBench's data files.
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Only instances whose path within the folder contains this, such as `gmm/1k` or `hand`.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Short batches: rough numbers in a minute.
    #[arg(long)]
    quick: bool,
    /// Leave out the instances with two and a half million points.
    #[arg(long)]
    small: bool,
    /// Measure processor time instead of wall-clock time, for machines with other load (Linux).
    #[arg(long)]
    processor_time: bool,
    /// Write the table to this file as well.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Draw the ratios as a chart (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut instances = find(&arguments.data)?;
    instances.retain(|(_, path)| {
        let name = name_of(path, &arguments.data);
        name.contains(&arguments.only) && !(arguments.small && name.contains("2.5M"))
    });
    if instances.is_empty() {
        return Err(format!(
            "no instance in {} has `{}` in its path",
            arguments.data.display(),
            arguments.only
        ));
    }
    let clock = match arguments.processor_time {
        true => Clock::processor()?,
        false => Clock::Wall,
    };
    let protocol = match arguments.quick {
        true => Protocol::quick(clock),
        false => Protocol::full(clock),
    };
    // Better to know before it takes minutes.
    let create = |path: &PathBuf| {
        let file = std::fs::File::create(path);
        file.map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut table_file = arguments.table.as_ref().map(create).transpose()?;
    let mut plot_file = arguments.plot.as_ref().map(create).transpose()?;
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} (about {eta} left)")
        .map_err(|error| error.to_string())?;
    let progress = ProgressBar::new(instances.len() as u64).with_style(style);
    let mut all = Vec::new();
    for (group, path) in instances {
        let name = name_of(&path, &arguments.data);
        progress.set_message(name.clone());
        let problem = Problem::read(group, &path).map_err(|error| error.to_string())?;
        all.push(measure(group, name, &problem, &protocol)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let table = write_table(&all);
    println!("{table}");
    let write = |file: &mut Option<std::fs::File>, text: &str| match file {
        Some(file) => file
            .write_all(text.as_bytes())
            .map_err(|error| format!("cannot write the results: {error}")),
        None => Ok(()),
    };
    write(&mut table_file, &table)?;
    if plot_file.is_some() {
        write(&mut plot_file, &draw_chart(&all)?)?;
    }
    Ok(())
}

fn name_of(path: &Path, folder: &Path) -> String {
    let name = path.strip_prefix(folder).unwrap_or(path);
    name.display().to_string()
}

/// Checks one instance against the hand-written derivative, and takes the times.
fn measure(
    group: &'static str,
    name: String,
    problem: &Problem,
    protocol: &Protocol,
) -> Result<Measured, String> {
    let fresh = |derivative: fn(&Problem, &mut Derivative)| {
        peak_of(|| {
            let mut result = Derivative::default();
            derivative(problem, &mut result);
            result
        })
    };
    let (mut found, memory) = fresh(Problem::derivative);
    let (mut expected, memory_by_hand) = fresh(Problem::derivative_by_hand);
    let error = match found.places() == expected.places() {
        true => largest_error(found.values(), expected.values()),
        false => f64::INFINITY,
    };
    if error > TOLERANCE {
        return Err(format!(
            "{name}: automatic and hand-written derivatives are {error:e} apart"
        ));
    }
    let objective = {
        let mut values = Vec::new();
        protocol.time(&mut values, |values| problem.objective(values))
    };
    let derivative = protocol.time(&mut found, |result| problem.derivative(result));
    drop(found);
    let by_hand = protocol.time(&mut expected, |result| problem.derivative_by_hand(result));
    Ok(Measured {
        group,
        name,
        objective,
        derivative,
        by_hand,
        memory,
        memory_by_hand,
    })
}
