//! `gpt2-graph`: trains and samples GPT-2 as a tensor graph, on the files of `gpt2`.

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use ferrozyme_graph::Scalar;
use gpt2::adamw::Settings;
use gpt2::data::{Data, OWN_TEXT};
use gpt2::encoding::Encoding;
use gpt2::files::state::{self, Progress};
use gpt2::files::{checkpoint, safetensors};
use gpt2::initialise::random_parameters;
use gpt2::random::Random;
use gpt2::{Batch, Config};
use gpt2_graph::sampler::Sampler;
use gpt2_graph::training::{Plan, Training};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// GPT-2 as a tensor graph, compiled before its first step
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model, from random parameters or from a file
    Train(TrainOptions),
    /// Let a model write
    Sample(SampleOptions),
}

#[derive(Args)]
struct TrainOptions {
    /// A model to start from: a file, or a name (tiny, small, 124M, 355M, 774M, 1558M) for random parameters
    #[arg(short, long, default_value = "tiny")]
    model: String,
    /// What to train on: a text, or tokens in a `.bin` file of llm.c [default: a small text of the project's own]
    #[arg(short, long)]
    data: Option<PathBuf>,
    /// Steps to take in all, including those before an interruption
    #[arg(short, long, default_value_t = 100)]
    steps: u64,
    /// Sequences in a batch
    #[arg(short, long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    batch: u64,
    /// Tokens in each sequence
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    length: u64,
    /// The learning rate [default: 5e-3 for tiny and small, 1e-4 for others]
    #[arg(long)]
    rate: Option<f32>,
    /// Weight decay
    #[arg(long, default_value_t = 0.0)]
    decay: f32,
    /// For random parameters
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Look at the first batch again and again
    #[arg(long)]
    overfit: bool,
    /// Where the state of the run is written, and read if it is there
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Steps between writes of the state
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    checkpoint_every: u64,
    /// Print the kernels, and the memory that they need
    #[arg(long)]
    report: bool,
    /// What runs the graph: cpu, opencl or cuda; opencl:1 is the second device that OpenCL knows
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Round the factors of matrix products to this type, and keep everything else in single precision
    #[arg(long, value_enum, default_value_t = Products::F32)]
    products: Products,
    /// The most bytes for the tensors of a step, beside parameters and the optimiser's state: what does not fit is computed again
    #[arg(long, value_name = "BYTES")]
    budget: Option<usize>,
    /// Measure the kernels of the last step on a GPU: print them, and draw them into this file (SVG)
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

/// What matrix products multiply.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Products {
    /// Numbers as they are
    F32,
    /// Numbers of 16 bits; on a GPU tensor cores multiply them
    Bf16,
}

#[derive(Args)]
struct SampleOptions {
    /// The model: a checkpoint (.bin), weights (.safetensors) or the state of a training run (.state)
    #[arg(short, long)]
    model: PathBuf,
    /// How the text begins
    #[arg(short, long, default_value = "")]
    prompt: String,
    /// Tokens to write
    #[arg(short = 'n', long, default_value_t = 100)]
    length: usize,
    /// How many tokens before count for the next
    #[arg(short, long, default_value_t = 64)]
    window: usize,
    /// How daring: 0 takes the likeliest token always
    #[arg(short, long, default_value_t = 0.8)]
    temperature: f64,
    /// For the choice of tokens
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What runs the graph: cpu, opencl or cuda
    #[arg(long, default_value = "cpu")]
    device: String,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Train(options) => train(&options),
        Command::Sample(options) => sample(&options),
    }
}

fn train(options: &TrainOptions) -> Result<()> {
    if options.timeline.is_some() && options.device == "cpu" {
        bail!("--timeline measures kernels on a GPU, and --device is `cpu`");
    }
    let (progress, numbers) = start_of(options)?;
    let config = progress.config;
    let encoding = encoding_of(&config)?;
    let data = match &options.data {
        Some(path) => Data::load(path, encoding)?,
        None => Data::from_text(OWN_TEXT, encoding),
    };
    let plan = Plan {
        batch: Batch {
            sequences: options.batch as usize,
            steps: options.length as usize,
        },
        optimiser: Settings {
            rate: options
                .rate
                .unwrap_or(if is_small(&config) { 5e-3 } else { 1e-4 }),
            decay: options.decay,
            ..Settings::default()
        },
        overfit: options.overfit,
        factors: match options.products {
            Products::F32 => None,
            Products::Bf16 => Some(Scalar::Bf16),
        },
        budget: options.budget,
    };
    let first = progress.step;
    let start = Instant::now();
    let mut training = Training::new(plan, progress, &data.training.into(), &options.device)?;
    if options.report {
        println!("{}", training.report());
    }
    println!("compiled in {:.2} s", start.elapsed().as_secs_f64());
    match numbers {
        Numbers::Random => {
            let mut random = Random::new(options.seed);
            training.set_parameters(&random_parameters(&config, &mut random))?;
        }
        Numbers::Model(parameters) => training.set_parameters(&parameters)?,
        Numbers::State(reader) => training.load(*reader)?,
    }
    let bar = ProgressBar::new(options.steps).with_position(first);
    let style = "{bar:30} {pos}/{len} steps, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style)?.progress_chars("━╸ "));
    for step in first..options.steps {
        let is_last = step + 1 == options.steps;
        let start = Instant::now();
        let loss = match options.timeline.as_ref().filter(|_| is_last) {
            None => training.step()?,
            Some(path) => {
                let measured = training.measured_step()?;
                let (loss, timeline) = measured.with_context(|| {
                    format!("{} has no kernels to measure: try a GPU", options.device)
                })?;
                bar.suspend(|| println!("{timeline}"));
                std::fs::write(path, timeline.to_svg())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                loss
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        let rate = plan.batch.tokens() as f64 / seconds;
        bar.set_message(format!("loss {loss:.4}, {rate:.0} tokens/s"));
        bar.inc(1);
        if bar.is_hidden() {
            let milliseconds = 1e3 * seconds;
            println!("step {step}: loss {loss:.6} ({milliseconds:.1} ms, {rate:.0} tokens/s)");
        }
        if !loss.is_finite() {
            bail!("the loss is {loss} at step {step}: try a smaller --rate");
        }
        if let Some(path) = &options.out
            && (is_last || (step + 1).is_multiple_of(options.checkpoint_every))
        {
            training.save(path)?;
        }
    }
    bar.finish();
    Ok(())
}

/// Where the numbers come from that a run starts with. They are taken when the graph is compiled.
enum Numbers {
    Random,
    Model(Vec<f32>),
    State(Box<state::Reader<BufReader<File>>>),
}

/// Where the run starts.
fn start_of(options: &TrainOptions) -> Result<(Progress, Numbers)> {
    if let Some(path) = options.out.as_ref().filter(|path| path.exists()) {
        let reader = state::open(path)?;
        return Ok((reader.progress().clone(), Numbers::State(Box::new(reader))));
    }
    let path = Path::new(&options.model);
    if path.extension().is_some() || path.exists() {
        let (config, parameters) = load_model(path)?;
        let start = Progress::start(config, options.seed);
        return Ok((start, Numbers::Model(parameters)));
    }
    let config = Config::named(&options.model).with_context(|| {
        let names = Config::NAMES.join(", ");
        format!(
            "there is no model `{}`; give a file or one of {names}",
            options.model
        )
    })?;
    let encoding = match is_small(&config) {
        true => Encoding::Bytes,
        false => Encoding::Gpt2,
    };
    let config = config.with_vocabulary(encoding.vocabulary());
    Ok((Progress::start(config, options.seed), Numbers::Random))
}

fn is_small(config: &Config) -> bool {
    config.channels < 768
}

fn encoding_of(config: &Config) -> Result<Encoding> {
    let count = config.vocabulary;
    Encoding::of_model(config).with_context(|| format!("no encoding has {count} tokens"))
}

fn load_model(path: &Path) -> Result<(Config, Vec<f32>)> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    Ok(match extension {
        Some("safetensors") => safetensors::load(path)?,
        Some("state") => state::load_parameters(path)?,
        _ => checkpoint::load(path)?,
    })
}

fn sample(options: &SampleOptions) -> Result<()> {
    let (config, parameters) = load_model(&options.model)?;
    let encoding = encoding_of(&config)?;
    let window = options.window.min(config.max_steps);
    let mut sampler = Sampler::new(config, &parameters, window, &options.device)?;
    let mut tokens = vec![encoding.end_of_text()];
    tokens.extend(encoding.encode(&options.prompt));
    let known = tokens.len();
    let mut random = Random::new(options.seed);
    sampler.continue_text(
        &mut tokens,
        options.length,
        options.temperature,
        &mut random,
    )?;
    println!("{}{}", options.prompt, encoding.decode(&tokens[known..]));
    Ok(())
}
