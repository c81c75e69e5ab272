//! `gpt2 eval`: a model's loss on a text.

use super::BatchOptions;
use anyhow::{Result, bail};
use clap::Args;
use gpt2::data::Loader;
use gpt2::engine::{Backward, Engine};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The model: a checkpoint (.bin), weights (.safetensors) or the state of a training run (.state)
    #[arg(short, long)]
    model: PathBuf,
    /// The text, or tokens in a `.bin` file of llm.c [default: a small text of the project's own]
    #[arg(short, long)]
    data: Option<PathBuf>,
    /// Take the part that is set aside for validation only
    #[arg(long)]
    validation: bool,
    #[command(flatten)]
    batch: BatchOptions,
    /// The most batches to look at
    #[arg(long)]
    batches: Option<u64>,
    /// Threads [default: all cores]
    #[arg(long, value_parser = super::positive())]
    threads: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (config, parameters) = super::load_model(&options.model)?;
    let encoding = super::encoding_of(&config)?;
    let data = super::load_data(options.data.as_ref(), encoding)?;
    let mut tokens = data.validation;
    if !options.validation {
        tokens.extend(data.training);
    }
    let batch = options.batch.batch();
    if batch.steps > config.max_steps {
        bail!(
            "the model has {} positions, fewer than --length",
            config.max_steps
        );
    }
    let Some(mut loader) = Loader::new(&tokens, batch) else {
        bail!("{} tokens are too few for one batch", tokens.len());
    };
    let threads = super::threads(options.threads);
    let mut engine = Engine::<f32>::new(config, batch, Backward::Manual, threads);
    let batches = loader.batches().min(options.batches.unwrap_or(u64::MAX));
    let mut sum = 0.0;
    for _ in 0..batches {
        let (tokens, targets) = loader.load();
        sum += f64::from(engine.loss(&parameters, tokens, targets));
    }
    let loss = sum / batches.max(1) as f64;
    println!(
        "loss {loss:.4}, perplexity {:.2}, over {} tokens",
        loss.exp(),
        batches as usize * batch.tokens()
    );
    Ok(())
}
