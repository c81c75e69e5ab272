//! Measures matrix products: `cargo run --release -p ferrozyme-contractions -- --help`.

use anyhow::Result;
use clap::{Parser, ValueEnum};
use ferrozyme_contractions::cases::{Case, Group};
use ferrozyme_contractions::contestants::{Contestant, Multiplied};
use ferrozyme_contractions::measure::{Measurement, measure};
use ferrozyme_contractions::openmp::OpenMp;
use ferrozyme_contractions::report::{chart, head, line};
use ferrozyme_export::Team;
use std::path::PathBuf;
use std::time::Duration;

/// Compares the kernels of Ferrozyme with plain loops and libraries, on one thread unless there is an option. Speeds are in GFLOP/s, the best of several runs, in which all take turns.
#[derive(Parser)]
struct Arguments {
    /// Which sizes.
    #[arg(long, value_enum, default_values_t = [Group::Large])]
    groups: Vec<Group>,
    /// Sizes of one's own: `256x768x3072`, rows, columns and terms.
    #[arg(long, value_parser = parse_sizes)]
    sizes: Vec<[usize; 3]>,
    /// The type of elements.
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    element: Precision,
    /// Limits our kernels to a level of x86-64: 0 (the baseline), 3 or 4. Several are shown side by side.
    #[arg(long)]
    levels: Vec<u32>,
    /// Only these contestants besides our kernels.
    #[arg(long)]
    only: Vec<String>,
    /// Only these layouts: NN, NT, TN, TT (A and B, each row by row or transposed).
    #[arg(long)]
    layouts: Vec<String>,
    /// For how many milliseconds each product is repeated.
    #[arg(long, default_value_t = 300)]
    patience: u64,
    /// Shows our kernels on this many threads as well, with OpenMP, and gives libraries as many. Crates and loops have one in any case.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Writes a chart of the squares.
    #[arg(long)]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Precision {
    F32,
    F64,
}

fn parse_sizes(text: &str) -> Result<[usize; 3], String> {
    let sizes: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    let sizes = sizes.map_err(|error| error.to_string())?;
    <[usize; 3]>::try_from(sizes).map_err(|_| "three sizes are needed".to_owned())
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.element {
        Precision::F32 => run::<f32>(&arguments),
        Precision::F64 => run::<f64>(&arguments),
    }
}

fn run<T: Multiplied>(arguments: &Arguments) -> Result<()> {
    let contestants = contestants::<T>(arguments)?;
    let names: Vec<String> = contestants.iter().map(|one| one.name.clone()).collect();
    let mut sizes = arguments.sizes.clone();
    if sizes.is_empty() {
        sizes = arguments
            .groups
            .iter()
            .flat_map(|group| group.sizes())
            .collect();
    }
    let wanted =
        |case: &Case| arguments.layouts.is_empty() || arguments.layouts.contains(&case.layout());
    let patience = Duration::from_millis(arguments.patience);
    println!("{}", head(&names));
    let measurements: Vec<Measurement> = sizes
        .into_iter()
        .flat_map(Case::transpositions)
        .filter(wanted)
        .map(|case| measure(case, &contestants, patience, arguments.threads))
        .inspect(|measurement| println!("{}", line(measurement)))
        .collect();
    if let Some(file) = &arguments.plot {
        let is_square = |one: &&Measurement| {
            let [m, n, k] = one.case.sizes;
            m == n && n == k && one.case.layout() == "NN"
        };
        let squares: Vec<Measurement> = measurements.iter().filter(is_square).cloned().collect();
        let title = format!("Products of square matrices, {}, one core", T::SCALAR);
        chart(file, &title, &names, &squares)?;
    }
    Ok(())
}

fn contestants<T: Multiplied>(arguments: &Arguments) -> Result<Vec<Contestant<T>>> {
    let mut all = Vec::new();
    match arguments.levels.as_slice() {
        [] => all.push(Contestant::kernels(None, Team::Caller)?),
        levels => {
            for &level in levels {
                all.push(Contestant::kernels(Some(level), Team::Caller)?);
            }
        }
    }
    if arguments.threads > 1 {
        OpenMp::load()?.set_threads(arguments.threads);
        let level = arguments.levels.last().copied();
        all.push(Contestant::kernels(level, Team::OpenMp)?);
    }
    let ours = all.len();
    all.push(Contestant::loops()?);
    all.extend(Contestant::crates());
    let mkl = std::env::var("FERROZYME_MKL").ok();
    let libraries = [
        ("OpenBLAS", Some("libopenblas.so.0".to_owned())),
        ("MKL", mkl),
    ];
    for (name, file) in libraries {
        let Some(file) = file else { continue };
        match Contestant::library(name, &file, arguments.threads) {
            Ok(library) => all.push(library),
            Err(error) => eprintln!("without {name}: {error:#}"),
        }
    }
    let mut position = 0;
    all.retain(|one| {
        position += 1;
        position <= ours || arguments.only.is_empty() || arguments.only.contains(&one.name)
    });
    Ok(all)
}
