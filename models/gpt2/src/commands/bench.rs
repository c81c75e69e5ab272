//! `gpt2 bench`: how long the forward pass and the gradients take, for single layers and for the whole model, in Rust and in C.

mod components;
mod in_c;
mod memory;
mod row;

use super::BatchOptions;
use anyhow::{Result, bail};
use clap::Args;
use gpt2::chart::{self, Group};
use gpt2::check::Case;
use gpt2::engine::{Backward, Engine};
use gpt2::files::replace::replace_bytes;
use in_c::Wanted;
use row::{Language, Row};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The model by its name: tiny, small, 124M, 355M, 774M, 1558M
    #[arg(short, long, default_value = "124M")]
    model: String,
    #[command(flatten)]
    batch: BatchOptions,
    #[command(flatten)]
    measurement: Measurement,
    /// Draw the overheads, too
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Write the measurements as lines of JSON, too
    #[arg(long)]
    json: Option<PathBuf>,
    /// Leave the single layers out
    #[arg(long)]
    whole: bool,
    /// Leave the whole model out
    #[arg(long, conflicts_with = "whole")]
    layers: bool,
}

/// How to measure.
#[derive(Args, Debug)]
pub(crate) struct Measurement {
    /// Measure with one thread, and with this many [default: all cores]
    #[arg(long, value_parser = super::positive())]
    threads: Option<u64>,
    /// Rounds, of which the quickest counts
    #[arg(short, long, default_value_t = 3, value_parser = super::positive())]
    rounds: u64,
    /// Measure a program of models/gpt2-c, too; may be repeated
    #[arg(long = "c", value_name = "PROGRAM")]
    programs: Vec<PathBuf>,
}

impl Measurement {
    /// What the option says of threads.
    pub(crate) fn threads(&self) -> Option<u64> {
        self.threads
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let parts = Parts {
        layers: !options.whole,
        whole: !options.layers,
    };
    let table = measure(&options.model, &options.batch, &options.measurement, parts)?;
    if let Some(path) = &options.svg {
        table.save_chart(path)?;
    }
    if let Some(path) = &options.json {
        let mut lines = String::new();
        for row in &table.rows {
            lines += &serde_json::to_string(row)?;
            lines.push('\n');
        }
        replace_bytes(path, lines.as_bytes())?;
    }
    Ok(())
}

/// The measured item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) layers: bool,
    pub(crate) whole: bool,
}

/// All measurements of a model.
pub(crate) struct Table {
    model: String,
    rows: Vec<Row>,
    /// The table as it was printed.
    pub(crate) text: String,
}

impl Table {
    /// Draws the overheads.
    pub(crate) fn save_chart(&self, path: &Path) -> Result<()> {
        let title = format!("Gradient of {} divided by its forward pass", self.model);
        let groups: Vec<Group> = self.rows.iter().map(Row::overheads).collect();
        chart::save(path, &title, &["hand-written", "automatic"], &groups)?;
        Ok(())
    }

    fn print(&mut self, text: &str) {
        println!("{text}");
        self.text += text;
        self.text.push('\n');
    }

    fn add(&mut self, row: Row) {
        self.print(&row.text());
        self.rows.push(row);
    }
}

/// Measures, and prints each line of the table as soon as it is known.
pub(crate) fn measure(
    model: &str,
    batch: &BatchOptions,
    measurement: &Measurement,
    parts: Parts,
) -> Result<Table> {
    let (config, batch) = (super::named(model)?, batch.batch());
    if batch.steps > config.max_steps {
        bail!(
            "the model has {} positions, fewer than --length",
            config.max_steps
        );
    }
    let (rounds, threads) = (measurement.rounds, super::threads(measurement.threads));
    let mut table = Table {
        model: model.to_owned(),
        rows: Vec::new(),
        text: String::new(),
    };
    table.print(&format!(
        "{model}, {} sequences of {} tokens, quickest of {rounds} rounds",
        batch.sequences, batch.steps
    ));
    table.print(&row::head());
    if parts.layers {
        components::measure(&config, &batch, rounds, |row| table.add(row));
    }
    if parts.whole {
        let case = Case::random(config, batch, 0.02, 1);
        let mut counts = vec![1, threads];
        counts.dedup();
        for threads in counts {
            table.add(measure_model(&case, threads, rounds));
        }
    }
    for program in &measurement.programs {
        let wanted = Wanted {
            layers: parts.layers,
            whole: parts.whole,
            rounds,
            threads,
        };
        in_c::measure(program, &config, &batch, wanted, |row| table.add(row))?;
    }
    Ok(table)
}

/// The whole model on this many threads.
fn measure_model(case: &Case<f32>, threads: usize, rounds: u64) -> Row {
    let measure = |backward| {
        memory::forget_peak();
        let mut engine = Engine::new(case.config, case.batch, backward, threads);
        let mut grads = vec![0.0; case.parameters.len()];
        let forward = quickest(rounds, || {
            engine.loss(&case.parameters, &case.tokens, &case.targets);
        });
        let gradient = quickest(rounds, || {
            engine.gradient(&case.parameters, &mut grads, &case.tokens, &case.targets);
        });
        (forward, gradient, memory::peak())
    };
    let (forward, manual, manual_memory) = measure(Backward::Manual);
    let (_, automatic, automatic_memory) = measure(Backward::Automatic);
    Row {
        name: "whole model".to_owned(),
        language: Language::Rust,
        openmp: false,
        threads,
        forward,
        manual,
        automatic,
        manual_memory,
        automatic_memory,
    }
}

/// Seconds of the quickest round.
fn quickest(rounds: u64, mut work: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..rounds).map(time).fold(f64::INFINITY, f64::min)
}
