//! The commands, and the options that they share.

pub(crate) mod bench;
pub(crate) mod eval;
pub(crate) mod fetch;
pub(crate) mod figures;
pub(crate) mod gradcheck;
pub(crate) mod plot;
pub(crate) mod sample;
pub(crate) mod train;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use gpt2::data::{Data, OWN_TEXT};
use gpt2::encoding::Encoding;
use gpt2::engine::Backward;
use gpt2::files::{checkpoint, safetensors, state};
use gpt2::{Batch, Config};
use std::path::{Path, PathBuf};

/// Whose backward pass to use.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BackwardOption {
    /// Ferrozyme's
    Auto,
    /// The hand-written one
    Manual,
}

impl From<BackwardOption> for Backward {
    fn from(option: BackwardOption) -> Backward {
        match option {
            BackwardOption::Auto => Backward::Automatic,
            BackwardOption::Manual => Backward::Manual,
        }
    }
}

/// How text becomes tokens.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EncodingOption {
    /// GPT-2's byte-pair encoding
    Gpt2,
    /// One token for each byte
    Bytes,
}

impl From<EncodingOption> for Encoding {
    fn from(option: EncodingOption) -> Encoding {
        match option {
            EncodingOption::Gpt2 => Encoding::Gpt2,
            EncodingOption::Bytes => Encoding::Bytes,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct BatchOptions {
    /// Sequences in a batch
    #[arg(short, long, default_value_t = 4, value_parser = positive())]
    pub(crate) batch: u64,
    /// Tokens in each sequence
    #[arg(short, long, default_value_t = 64, value_parser = positive())]
    pub(crate) length: u64,
}

impl BatchOptions {
    pub(crate) fn batch(&self) -> Batch {
        Batch {
            sequences: self.batch as usize,
            steps: self.length as usize,
        }
    }
}

/// A positive number.
pub(crate) fn positive() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1 << 20)
}

/// The number of threads: that of the cores, unless the option says otherwise.
pub(crate) fn threads(option: Option<u64>) -> usize {
    match option {
        Some(threads) => threads as usize,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The sizes of a model by its name.
pub(crate) fn named(name: &str) -> Result<Config> {
    match Config::named(name) {
        Some(config) => Ok(config),
        None => bail!(
            "there is no model `{name}`; give a file (.bin, .safetensors or a training run's state) or one of {}",
            Config::NAMES.join(", ")
        ),
    }
}

/// Whether `model` looks like a file.
pub(crate) fn is_file(model: &str) -> bool {
    Path::new(model).extension().is_some() || Path::new(model).exists()
}

/// Reads a model: a checkpoint of llm.c, weights of Hugging Face, or the state of a training run.
pub(crate) fn load_model(path: &Path) -> Result<(Config, Vec<f32>)> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    Ok(match extension {
        Some("safetensors") => safetensors::load(path)?,
        Some("state") => state::load_parameters(path)?,
        _ => checkpoint::load(path)?,
    })
}

/// The encoding that belongs to a model.
pub(crate) fn encoding_of(config: &Config) -> Result<Encoding> {
    match Encoding::of_model(config) {
        Some(encoding) => Ok(encoding),
        None => bail!(
            "no encoding has the {} tokens of this model",
            config.vocabulary
        ),
    }
}

/// Reads a text or tokens, or takes the text that comes with the program.
pub(crate) fn load_data(path: Option<&PathBuf>, encoding: Encoding) -> Result<Data> {
    Ok(match path {
        Some(path) => Data::load(path, encoding)?,
        None => Data::from_text(OWN_TEXT, encoding),
    })
}
