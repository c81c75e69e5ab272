//! `gpt2 sample`: a model writes.

use anyhow::Result;
use clap::Args;
use gpt2::random::Random;
use gpt2::sample::continue_text;
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The model: a checkpoint (.bin), weights (.safetensors) or the state of a training run (.state)
    #[arg(short, long)]
    model: PathBuf,
    /// How the text begins
    #[arg(short, long, default_value = "")]
    prompt: String,
    /// Tokens to write
    #[arg(short = 'n', long, default_value_t = 100)]
    length: usize,
    /// How daring: 0 takes the likeliest token always
    #[arg(short, long, default_value_t = 0.8)]
    temperature: f64,
    /// For the choice of tokens
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (config, parameters) = super::load_model(&options.model)?;
    let encoding = super::encoding_of(&config)?;
    let mut random = Random::new(options.seed);
    let mut tokens = vec![encoding.end_of_text()];
    tokens.extend(encoding.encode(&options.prompt));
    let mut output = io::stdout().lock();
    output.write_all(options.prompt.as_bytes())?;
    for _ in 0..options.length {
        continue_text(
            &config,
            &parameters,
            &mut tokens,
            1,
            options.temperature,
            &mut random,
        );
        let token = tokens[tokens.len() - 1];
        if token == encoding.end_of_text() {
            break;
        }
        output.write_all(&encoding.bytes(token))?;
        output.flush()?;
    }
    writeln!(output)?;
    Ok(())
}
