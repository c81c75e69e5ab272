//! `gpt2 figures`: one batch learnt by heart, training with validation, and the times of the gradients; automatic against hand-written, as text and as pictures.

use super::bench::{self, Measurement, Parts};
use super::{BatchOptions, load_data};
use anyhow::{Context, Result};
use clap::Args;
use gpt2::adamw::Settings;
use gpt2::curve::{self, Curve, curves_of};
use gpt2::data::Data;
use gpt2::encoding::Encoding;
use gpt2::engine::Backward;
use gpt2::files::replace::replace_bytes;
use gpt2::files::state::State;
use gpt2::log::Entry;
use gpt2::train::{Plan, Training};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The model by its name: tiny, small, 124M, 355M, 774M, 1558M
    #[arg(short, long, default_value = "124M")]
    model: String,
    /// What to train on: a text, or tokens in a `.bin` file of llm.c [default: a small text of the project's own]
    #[arg(short, long)]
    data: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchOptions,
    /// Steps of training
    #[arg(short, long, default_value_t = 41)]
    steps: u64,
    /// The learning rate
    #[arg(long, default_value_t = 1e-4)]
    rate: f32,
    /// Steps on one batch
    #[arg(long, default_value_t = 60)]
    overfit_steps: u64,
    /// The learning rate there
    #[arg(long, default_value_t = 3e-4)]
    overfit_rate: f32,
    /// For random parameters
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    measurement: Measurement,
    /// A folder for the figures
    #[arg(short, long, default_value = "figures")]
    out: PathBuf,
}

/// Steps between validations, and batches in one.
const VALIDATE_EVERY: u64 = 10;
const VALIDATION_BATCHES: u64 = 5;

pub(crate) fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.out).with_context(|| options.out.display().to_string())?;
    let data = load_data(options.data.as_ref(), Encoding::Gpt2)?;
    draw_losses(
        options,
        &data,
        true,
        options.overfit_steps,
        options.overfit_rate,
    )?;
    draw_losses(options, &data, false, options.steps, options.rate)?;
    let everything = Parts {
        layers: true,
        whole: true,
    };
    let table = bench::measure(
        &options.model,
        &options.batch,
        &options.measurement,
        everything,
    )?;
    save(&options.out.join("overhead.txt"), &table.text)?;
    table.save_chart(&options.out.join("overhead.svg"))?;
    println!("wrote overhead.txt and overhead.svg");
    Ok(())
}

/// Trains with both gradients from the same parameters, and draws both runs into one picture.
fn draw_losses(options: &Options, data: &Data, overfit: bool, steps: u64, rate: f32) -> Result<()> {
    let (name, title) = match overfit {
        true => ("overfit", format!("Loss of {} on one batch", options.model)),
        false => ("training", format!("Loss of {}", options.model)),
    };
    let run = |backward| {
        let plan = Plan {
            batch: options.batch.batch(),
            optimiser: Settings {
                rate,
                ..Settings::default()
            },
            backward,
            threads: super::threads(options.measurement.threads()),
            overfit,
        };
        train(options, data, plan, steps)
    };
    println!("{title}: automatic gradient");
    let automatic = run(Backward::Automatic)?;
    println!("{title}: hand-written gradient");
    let manual = run(Backward::Manual)?;
    let mut curves = Vec::new();
    for (name, entries, width) in [("automatic", &automatic, 6), ("hand-written", &manual, 2)] {
        let drawn = curves_of(name, entries).into_iter();
        curves.extend(
            drawn
                .filter(|curve| !curve.points.is_empty())
                .map(|curve| Curve { width, ..curve }),
        );
    }
    curve::save(&options.out.join(format!("{name}.svg")), &title, &curves)?;
    let text = compare(&automatic, &manual);
    print!("{text}");
    save(&options.out.join(format!("{name}.txt")), &text)?;
    println!("wrote {name}.txt and {name}.svg");
    Ok(())
}

/// A run from random parameters.
fn train(options: &Options, data: &Data, plan: Plan, steps: u64) -> Result<Vec<Entry>> {
    let config = super::named(&options.model)?;
    let mut training = Training::new(plan, State::random(config, options.seed), data)?;
    let mut entries = Vec::new();
    for step in 0..steps {
        let is_last = step + 1 == steps;
        let validated = !plan.overfit && (step.is_multiple_of(VALIDATE_EVERY) || is_last);
        let validation = validated.then(|| training.validate(VALIDATION_BATCHES));
        let start = Instant::now();
        let loss = training.step();
        let seconds = start.elapsed().as_secs_f64();
        println!("step {step}: loss {loss:.6} ({:.0} ms)", 1e3 * seconds);
        entries.push(Entry {
            step,
            loss,
            validation,
            seconds,
            tokens_per_second: plan.batch.tokens() as f64 / seconds,
            ..Entry::default()
        });
    }
    Ok(entries)
}

/// Both runs side by side, and how far they are apart.
fn compare(automatic: &[Entry], manual: &[Entry]) -> String {
    let mut text = format!(
        "{:>5} {:>12} {:>13} {:>11} {:>23} {:>13}\n",
        "step", "automatic", "hand-written", "difference", "validation: automatic", "hand-written"
    );
    let mut largest: f32 = 0.0;
    for (a, m) in automatic.iter().zip(manual) {
        let difference = (a.loss - m.loss).abs();
        largest = largest.max(difference);
        let validation = match a.validation.zip(m.validation) {
            Some((a, m)) => format!(" {a:23.6} {m:13.6}"),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "{:5} {:12.6} {:13.6} {difference:11.1e}{validation}",
            a.step, a.loss, m.loss
        );
    }
    let _ = writeln!(text, "largest difference: {largest:.1e}");
    text
}

fn save(path: &Path, text: &str) -> Result<()> {
    Ok(replace_bytes(path, text.as_bytes())?)
}
