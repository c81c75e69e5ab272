//! Runs ADBench's objectives with its timing protocol and checks, and prints how much longer derivatives take than objectives.
//!
//! `cargo fz run --release -p ferrozyme-adbench -- --data FOLDER`

use clap::Parser;
use ferrozyme_adbench::check::{TOLERANCE, largest_error};
use ferrozyme_adbench::text::BadFile;
use ferrozyme_adbench::timing::Protocol;
use ferrozyme_adbench::{ba, gmm, hand, lstm};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// ADBench in plain Rust: derivatives by Ferrozyme beside hand-written ones.
#[derive(Parser)]
struct Arguments {
    /// The folder with ADBench's data files.
    #[arg(long, default_value = "../shared/data/adbench")]
    data: PathBuf,
    /// Only instances whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// One short batch each: rough numbers in a minute.
    #[arg(long)]
    quick: bool,
    /// Leave out instances that take more memory or time than a small machine has.
    #[arg(long)]
    small: bool,
    /// Write the table to this file as well.
    #[arg(long)]
    table: Option<PathBuf>,
}

/// What was measured for one instance, in seconds.
struct Measured {
    group: &'static str,
    name: String,
    objective: f64,
    derivative: f64,
    by_hand: Option<f64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(table) => {
            println!("{table}");
            if let Some(path) = &arguments.table
                && let Err(error) = std::fs::write(path, &table)
            {
                eprintln!("error: {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, String> {
    let instances: Vec<(&'static str, PathBuf)> = find_instances(&arguments.data)?
        .into_iter()
        .filter(|(group, path)| {
            let name = format!("{group}/{}", path.display());
            name.contains(&arguments.only) && !(arguments.small && name.contains("2.5M"))
        })
        .collect();
    if instances.is_empty() {
        return Err(format!("no instance is called `{}`", arguments.only));
    }
    let protocol = match arguments.quick {
        true => Protocol {
            batch_seconds: 0.02,
            batches: 5,
            total_seconds: 2.0,
        },
        false => Protocol::default(),
    };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} (about {eta} left)")
        .map_err(|error| error.to_string())?;
    let progress = ProgressBar::new(instances.len() as u64).with_style(style);
    let mut all = Vec::new();
    for (group, path) in instances {
        let name = path.strip_prefix(&arguments.data).unwrap_or(&path);
        progress.set_message(name.display().to_string());
        let measured = measure(group, &path, name, &protocol)?;
        all.push(measured);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(write_table(&all))
}

/// The data files, by objective.
fn find_instances(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>, String> {
    let mut found = Vec::new();
    for (group, places) in [
        ("gmm", &["gmm/1k", "gmm/10k", "gmm/2.5M"][..]),
        ("ba", &["ba"]),
        ("lstm", &["lstm"]),
        ("hand simple", &["hand/simple_small", "hand/simple_big"]),
        (
            "hand complicated",
            &["hand/complicated_small", "hand/complicated_big"],
        ),
    ] {
        for place in places {
            let folder = folder.join(place);
            let entries = std::fs::read_dir(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            let mut files: Vec<PathBuf> = entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|end| end == "txt"))
                .filter(|path| path.file_stem().is_some_and(|name| name != "test"))
                .collect();
            files.sort();
            found.extend(files.into_iter().map(|file| (group, file)));
        }
    }
    Ok(found)
}

/// Checks one instance against the hand-written derivative, and takes the times.
fn measure(
    group: &'static str,
    path: &Path,
    name: &Path,
    protocol: &Protocol,
) -> Result<Measured, String> {
    let bad = |error: BadFile| error.to_string();
    let agree = |found: &[f64], expected: &[f64]| {
        let error = largest_error(found, expected);
        match error <= TOLERANCE {
            true => Ok(()),
            false => Err(format!(
                "{}: automatic and hand-written derivatives are {error:e} apart",
                path.display()
            )),
        }
    };
    let (objective, derivative, by_hand) = match group {
        "gmm" => {
            let replicated = path.to_string_lossy().contains("2.5M");
            let instance = gmm::Instance::read(path, replicated).map_err(bad)?;
            agree(&instance.gradient(), &instance.gradient_by_hand())?;
            (
                protocol.time(|| instance.objective()),
                protocol.time(|| instance.gradient()),
                protocol.time(|| instance.gradient_by_hand()),
            )
        }
        "lstm" => {
            let instance = lstm::Instance::read(path).map_err(bad)?;
            agree(&instance.gradient(), &instance.gradient_by_hand())?;
            (
                protocol.time(|| instance.objective()),
                protocol.time(|| instance.gradient()),
                protocol.time(|| instance.gradient_by_hand()),
            )
        }
        "ba" => {
            let instance = ba::Instance::read(path).map_err(bad)?;
            agree(
                &instance.jacobian().values,
                &instance.jacobian_by_hand().values,
            )?;
            (
                protocol.time(|| instance.objective()),
                protocol.time(|| instance.jacobian()),
                protocol.time(|| instance.jacobian_by_hand()),
            )
        }
        _ => {
            let instance = read_hand(path, group.ends_with("complicated")).map_err(bad)?;
            agree(&instance.jacobian(), &instance.jacobian_by_hand())?;
            (
                protocol.time(|| instance.objective()),
                protocol.time(|| instance.jacobian()),
                protocol.time(|| instance.jacobian_by_hand()),
            )
        }
    };
    Ok(Measured {
        group,
        name: name.display().to_string(),
        objective,
        derivative,
        by_hand: Some(by_hand),
    })
}

/// The model's files lie beside the instances; big instances have vertices of their own.
fn read_hand(path: &Path, complicated: bool) -> Result<hand::Instance, BadFile> {
    let folder = path
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    let model = folder.join("model");
    let big = path.to_string_lossy().contains("_big");
    let vertices = match big {
        true => folder.join("simple_big/model/vertices.txt"),
        false => model.join("vertices.txt"),
    };
    let model = hand::Model::read(&model, &vertices)?;
    hand::Instance::read(path, model, complicated)
}

fn write_table(all: &[Measured]) -> String {
    let mut text = String::from(
        "| instance | F ms | J ms | J/F | by hand ms | by hand/F | J/by hand |\n|---|---|---|---|---|---|---|\n",
    );
    let mut groups: Vec<&str> = Vec::new();
    for one in all {
        if !groups.contains(&one.group) {
            groups.push(one.group);
        }
        let hand = one.by_hand.map_or("–|–|–".to_owned(), |by_hand| {
            format!(
                "{:.3} | {:.2} | {:.2}",
                by_hand * 1e3,
                by_hand / one.objective,
                one.derivative / by_hand
            )
        });
        let _ = writeln!(
            text,
            "| {} | {:.3} | {:.3} | {:.2} | {hand} |",
            one.name,
            one.objective * 1e3,
            one.derivative * 1e3,
            one.derivative / one.objective,
        );
    }
    for group in groups {
        let of_group: Vec<&Measured> = all.iter().filter(|one| one.group == group).collect();
        let ratio = geometric_mean(of_group.iter().map(|one| one.derivative / one.objective));
        let hand = geometric_mean(
            of_group
                .iter()
                .filter_map(|one| Some(one.by_hand? / one.objective)),
        );
        let both = geometric_mean(
            of_group
                .iter()
                .filter_map(|one| Some(one.derivative / one.by_hand?)),
        );
        let _ = writeln!(
            text,
            "| **{group}**, geometric mean | | | **{ratio:.2}** | | {hand:.2} | {both:.2} |"
        );
    }
    text
}

fn geometric_mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), x| (sum + x.ln(), count + 1));
    (sum / f64::from(count.max(1))).exp()
}
