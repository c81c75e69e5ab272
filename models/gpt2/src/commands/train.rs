//! `gpt2 train`: steps, with a progress bar, a log, a curve, samples and checkpoints.

use super::{BackwardOption, BatchOptions, EncodingOption};
use anyhow::{Context, Result, bail};
use clap::Args;
use gpt2::adamw::Settings;
use gpt2::curve::{self, curves_of};
use gpt2::encoding::Encoding;
use gpt2::files::{checkpoint, state};
use gpt2::log::{Entry, Log};
use gpt2::sample::continue_text;
use gpt2::train::{Plan, Training};
use gpt2::{Config, Parameters};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A model to start from: a file, or a name (tiny, small, 124M, 355M, 774M, 1558M) for random parameters
    #[arg(short, long, default_value = "tiny")]
    model: String,
    /// What to train on: a text, or tokens in a `.bin` file of llm.c [default: a small text of the project's own]
    #[arg(short, long)]
    data: Option<PathBuf>,
    /// How text becomes tokens [default: bytes for tiny and small, gpt2 for others]
    #[arg(long)]
    encoding: Option<EncodingOption>,
    /// Steps to take in all, including those before an interruption
    #[arg(short, long, default_value_t = 3000)]
    steps: u64,
    #[command(flatten)]
    batch: BatchOptions,
    /// Whose backward pass to use
    #[arg(long, default_value = "auto")]
    backward: BackwardOption,
    /// Threads [default: all cores]
    #[arg(long, value_parser = super::positive())]
    threads: Option<u64>,
    /// The learning rate [default: 5e-3 for tiny and small, 1e-4 for others]
    #[arg(long)]
    rate: Option<f32>,
    /// How much of the running mean of gradients is kept
    #[arg(long, default_value_t = 0.9)]
    beta1: f32,
    /// How much of the running mean of their squares is kept
    #[arg(long, default_value_t = 0.999)]
    beta2: f32,
    /// Added to the scale of each step
    #[arg(long, default_value_t = 1e-8)]
    epsilon: f32,
    /// Weight decay
    #[arg(long, default_value_t = 0.0)]
    decay: f32,
    /// For random parameters and samples
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Look at the first batch again and again
    #[arg(long)]
    overfit: bool,
    /// Steps between validations [default: a fortieth of all, at least 10]
    #[arg(long, value_parser = super::positive())]
    validate_every: Option<u64>,
    /// Batches in a validation
    #[arg(long, default_value_t = 5, value_parser = super::positive())]
    validation_batches: u64,
    /// Steps between samples [default: a quarter of all]
    #[arg(long, value_parser = super::positive())]
    sample_every: Option<u64>,
    /// Tokens in a sample [default: 63, or 160 if they are bytes]
    #[arg(long)]
    sample_length: Option<usize>,
    /// A folder for the log, the curve, the model and the state to go on from
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Steps between checkpoints
    #[arg(long, default_value_t = 100, value_parser = super::positive())]
    checkpoint_every: u64,
    /// Go on from the state in the folder, if there is one
    #[arg(long, requires = "out")]
    resume: bool,
}

/// The files of a run.
struct Files {
    state: PathBuf,
    model: PathBuf,
    log: PathBuf,
    curve: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let files = match &options.out {
        Some(folder) => Some(prepare(folder)?),
        None => None,
    };
    let state = first_state(options, files.as_ref())?;
    let config = state.config;
    let encoding = super::encoding_of(&config)?;
    let data = super::load_data(options.data.as_ref(), encoding)?;
    let threads = super::threads(options.threads);
    let plan = Plan {
        batch: options.batch.batch(),
        optimiser: Settings {
            rate: options
                .rate
                .unwrap_or(if is_small(&config) { 5e-3 } else { 1e-4 }),
            beta1: options.beta1,
            beta2: options.beta2,
            epsilon: options.epsilon,
            decay: options.decay,
        },
        backward: options.backward.into(),
        threads,
        overfit: options.overfit,
    };
    println!(
        "{} parameters, {} tokens to train on, {} to validate with, {} threads, backward pass: {}",
        Parameters::total(&config),
        data.training.len(),
        data.validation.len(),
        threads.min(plan.batch.sequences),
        match options.backward {
            BackwardOption::Auto => "automatic",
            BackwardOption::Manual => "hand-written",
        }
    );
    let mut log = match &files {
        Some(files) => Some(Log::open(&files.log, state.step)?),
        None => None,
    };
    let mut training = Training::new(plan, state, &data)?;
    train(options, encoding, files.as_ref(), &mut log, &mut training)
}

/// The steps.
fn train(
    options: &Options,
    encoding: Encoding,
    files: Option<&Files>,
    log: &mut Option<Log>,
    training: &mut Training,
) -> Result<()> {
    let last = options.steps.saturating_sub(1);
    let validate_every = options
        .validate_every
        .unwrap_or((options.steps / 40).max(10));
    let sample_every = options.sample_every.unwrap_or((options.steps / 4).max(1));
    let bar = ProgressBar::new(options.steps).with_position(training.state.step);
    let style = "{bar:30} {pos}/{len} steps, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style)?.progress_chars("━╸ "));
    while training.state.step < options.steps {
        let step = training.state.step;
        let is_last = step == last;
        let mut entry = Entry {
            step,
            ..Entry::default()
        };
        if step.is_multiple_of(validate_every) || is_last {
            let loss = training.validate(options.validation_batches);
            bar.suspend(|| println!("step {step}: validation loss {loss:.4}"));
            entry.validation = Some(loss);
        }
        if (step > 0 && step.is_multiple_of(sample_every)) || is_last {
            let length = options.sample_length.unwrap_or(match encoding {
                Encoding::Gpt2 => 63,
                Encoding::Bytes => 160,
            });
            let text = sample(training, encoding, length);
            bar.suspend(|| println!("step {step}: {}", text.trim()));
            entry.sample = Some(text);
        }
        let start = Instant::now();
        entry.loss = training.step();
        entry.seconds = start.elapsed().as_secs_f64();
        entry.tokens_per_second = options.batch.batch().tokens() as f64 / entry.seconds;
        bar.set_message(format!(
            "loss {:.4}, {:.0} tokens/s",
            entry.loss, entry.tokens_per_second
        ));
        bar.inc(1);
        if bar.is_hidden() {
            println!(
                "step {step}: loss {:.6} ({:.0} ms, {:.0} tokens/s)",
                entry.loss,
                1e3 * entry.seconds,
                entry.tokens_per_second
            );
        }
        if !entry.loss.is_finite() {
            bail!(
                "the loss is {} at step {step}: try a smaller --rate",
                entry.loss
            );
        }
        if let Some(log) = log {
            log.write(entry)?;
        }
        if let Some(files) = files
            && (training.state.step.is_multiple_of(options.checkpoint_every) || is_last)
        {
            state::save(&files.state, &training.state)?;
        }
    }
    bar.finish();
    if let (Some(files), Some(log)) = (files, log) {
        checkpoint::save(
            &files.model,
            &training.state.config,
            &training.state.parameters,
        )?;
        let name = match options.backward {
            BackwardOption::Auto => "automatic gradient",
            BackwardOption::Manual => "hand-written gradient",
        };
        curve::save(
            &files.curve,
            "Loss of GPT-2",
            &curves_of(name, &log.entries),
        )?;
        println!(
            "wrote {} and {}",
            files.model.display(),
            files.curve.display()
        );
    }
    Ok(())
}

fn prepare(folder: &Path) -> Result<Files> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    Ok(Files {
        state: folder.join("run.state"),
        model: folder.join("model.bin"),
        log: folder.join("log.jsonl"),
        curve: folder.join("curve.svg"),
    })
}

/// Where the run starts.
fn first_state(options: &Options, files: Option<&Files>) -> Result<state::State> {
    if let Some(files) = files
        && options.resume
        && files.state.exists()
    {
        return Ok(state::load(&files.state)?);
    }
    if super::is_file(&options.model) {
        let (config, parameters) = super::load_model(Path::new(&options.model))?;
        return Ok(state::State::with_parameters(
            config,
            parameters,
            options.seed,
        ));
    }
    let config = super::named(&options.model)?;
    let encoding = match options.encoding {
        Some(encoding) => encoding.into(),
        None if is_small(&config) => Encoding::Bytes,
        None => Encoding::Gpt2,
    };
    let config = config.with_vocabulary(encoding.vocabulary());
    Ok(state::State::random(config, options.seed))
}

fn is_small(config: &Config) -> bool {
    config.channels < 768
}

/// A text from the end-of-text token on.
fn sample(training: &mut Training, encoding: Encoding, length: usize) -> String {
    let state = &mut training.state;
    let mut tokens = vec![encoding.end_of_text()];
    continue_text(
        &state.config,
        &state.parameters,
        &mut tokens,
        length,
        1.0,
        &mut state.random,
    );
    encoding.decode(&tokens[1..])
}
