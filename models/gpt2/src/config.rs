//! The sizes of a model, and of its batches.

use ferrozyme::Differentiable;
use thiserror::Error;

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Differentiable)]
pub struct Config {
    /// Blocks of attention and feed-forward net.
    pub layers: usize,
    /// Heads of attention in each layer.
    pub heads: usize,
    /// Numbers per token; a multiple of `heads`.
    pub channels: usize,
    /// Tokens that exist.
    pub vocabulary: usize,
    /// Rows of the token embedding: `vocabulary`, rounded up. The rows beyond have probability 0.
    pub padded_vocabulary: usize,
    /// The longest sequence.
    pub max_steps: usize,
}

/// How much text is looked at in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Differentiable)]
pub struct Batch {
    /// Sequences.
    pub sequences: usize,
    /// Tokens in each sequence.
    pub steps: usize,
}

/// Why there can be no model of these sizes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no model has {0}")]
pub struct ConfigError(String);

impl Config {
    /// The published models by their names: `124M`, `355M`, `774M`, `1558M`, and two small ones, `tiny` and `small`, which
    /// train in minutes.
    pub fn named(name: &str) -> Option<Config> {
        let (layers, heads, channels, max_steps) = match name {
            "tiny" => (2, 4, 64, 128),
            "small" => (4, 4, 128, 256),
            "124M" => (12, 12, 768, 1024),
            "355M" => (24, 16, 1024, 1024),
            "774M" => (36, 20, 1280, 1024),
            "1558M" => (48, 25, 1600, 1024),
            _ => return None,
        };
        Some(Config {
            layers,
            heads,
            channels,
            vocabulary: 50_257,
            padded_vocabulary: 50_304,
            max_steps,
        })
    }

    /// The names that [`Config::named`] knows.
    pub const NAMES: [&str; 6] = ["tiny", "small", "124M", "355M", "774M", "1558M"];

    /// The same model for a vocabulary of another size.
    pub fn with_vocabulary(self, vocabulary: usize) -> Config {
        Config {
            vocabulary,
            padded_vocabulary: vocabulary.next_multiple_of(64),
            ..self
        }
    }

    /// Numbers per head.
    pub fn head_size(&self) -> usize {
        self.channels / self.heads
    }

    /// Checks what the rest of the library relies on: nothing is zero, heads divide channels, and the sizes of all tensors
    /// together fit into memory addresses.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |what: String| Err(ConfigError(what));
        for (what, size) in [
            ("layers", self.layers),
            ("heads", self.heads),
            ("channels", self.channels),
            ("tokens in its vocabulary", self.vocabulary),
            ("positions", self.max_steps),
        ] {
            if size == 0 {
                return refuse(format!("no {what}"));
            }
            if size > 1 << 24 {
                return refuse(format!("{size} {what}"));
            }
        }
        if !self.channels.is_multiple_of(self.heads) {
            return refuse(format!(
                "{} channels for {} heads",
                self.channels, self.heads
            ));
        }
        if self.padded_vocabulary < self.vocabulary || self.padded_vocabulary > 1 << 24 {
            return refuse(format!(
                "{} tokens in a table of {} rows",
                self.vocabulary, self.padded_vocabulary
            ));
        }
        let (layers, channels) = (self.layers as u128, self.channels as u128);
        let rows = (self.padded_vocabulary + self.max_steps) as u128;
        if channels * (rows + layers * (12 * channels + 13) + 2) > 1 << 40 {
            return refuse("more than 2⁴⁰ parameters".to_owned());
        }
        Ok(())
    }
}

impl Batch {
    /// Tokens in all sequences together.
    pub fn tokens(&self) -> usize {
        self.sequences * self.steps
    }
}
