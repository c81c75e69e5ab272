//! `gpt2 bench`: how long the forward pass and the gradients take, for single layers and for the whole model.

mod components;
mod memory;

use super::BatchOptions;
use anyhow::{Result, bail};
use clap::Args;
use gpt2::chart::{self, Group};
use gpt2::check::Case;
use gpt2::engine::{Backward, Engine};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The model by its name: tiny, small, 124M, 355M, 774M, 1558M
    #[arg(short, long, default_value = "124M")]
    model: String,
    #[command(flatten)]
    batch: BatchOptions,
    /// Measure with one thread, and with this many [default: all cores]
    #[arg(long, value_parser = super::positive())]
    threads: Option<u64>,
    /// Rounds, of which the quickest counts
    #[arg(short, long, default_value_t = 3, value_parser = super::positive())]
    rounds: u64,
    /// Draw the overheads, too
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Leave the single layers out
    #[arg(long)]
    whole: bool,
    /// Leave the whole model out
    #[arg(long, conflicts_with = "whole")]
    layers: bool,
}

/// One line of the table.
struct Row {
    name: String,
    /// Seconds of the forward pass, and of forward and backward pass together.
    forward: f64,
    manual: f64,
    automatic: f64,
    /// Bytes in use at most.
    memory: Option<(u64, u64)>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (config, batch) = (super::named(&options.model)?, options.batch.batch());
    if batch.steps > config.max_steps {
        bail!(
            "the model has {} positions, fewer than --length",
            config.max_steps
        );
    }
    println!(
        "{}, {} sequences of {} tokens, quickest of {} rounds",
        options.model, batch.sequences, batch.steps, options.rounds
    );
    println!("gradient: forward and backward pass together; overhead: gradient / forward");
    println!(
        "{:34} {:>11} {:>12} {:>9} {:>13} {:>9} {:>7}",
        "", "forward ms", "by hand ms", "overhead", "automatic ms", "overhead", "ratio"
    );
    let mut rows = Vec::new();
    let mut add = |row: Row| {
        print(&row);
        rows.push(row);
    };
    if !options.whole {
        components::measure(&config, &batch, options.rounds, &mut add);
    }
    if !options.layers {
        let case = Case::random(config, batch, 0.02, 1);
        let mut counts = vec![1, super::threads(options.threads)];
        counts.dedup();
        for threads in counts {
            add(measure_model(&case, threads, options.rounds));
        }
    }
    if let Some(path) = &options.svg {
        let title = format!("Gradient of {} divided by its forward pass", options.model);
        let groups: Vec<Group> = rows.iter().map(Row::overheads).collect();
        chart::save(path, &title, &["hand-written", "automatic"], &groups)?;
    }
    Ok(())
}

impl Row {
    /// How long the gradients take, measured in forward passes.
    fn overheads(&self) -> Group {
        Group {
            name: self.name.clone(),
            values: vec![self.manual / self.forward, self.automatic / self.forward],
        }
    }
}

/// The whole model on so many threads.
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
        name: match threads {
            1 => "whole model, 1 thread".to_owned(),
            threads => format!("whole model, {threads} threads"),
        },
        forward,
        manual,
        automatic,
        memory: manual_memory.zip(automatic_memory),
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

fn print(row: &Row) {
    let overheads = row.overheads().values;
    println!(
        "{:34} {:11.2} {:12.2} {:9.2} {:13.2} {:9.2} {:7.2}",
        row.name,
        1e3 * row.forward,
        1e3 * row.manual,
        overheads[0],
        1e3 * row.automatic,
        overheads[1],
        row.automatic / row.manual,
    );
    if let Some((manual, automatic)) = row.memory {
        println!(
            "{:34} by hand {} MB, automatic {} MB, ratio {:.2}",
            "  memory at most",
            manual >> 20,
            automatic >> 20,
            automatic as f64 / manual as f64
        );
    }
}
