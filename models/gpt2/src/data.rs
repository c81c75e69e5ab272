//! What to train on: tokens, and the order in which batches of them come.

use crate::config::Batch;
use crate::encoding::Encoding;
use crate::files::{FileError, Problem, tokens};
use std::fs;
use std::path::Path;

/// A text that comes with the project, for training without a data file.
pub const OWN_TEXT: &str = include_str!("../text/own.txt");

/// The most tokens that are set aside for validation.
const VALIDATION: usize = 32_768;

/// Tokens for training, and others for validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// To train on.
    pub training: Vec<u32>,
    /// To validate with.
    pub validation: Vec<u32>,
}

impl Data {
    /// The tokens of a text. The first 32768 are for validation, or the first tenth of a small text.
    pub fn from_text(text: &str, encoding: Encoding) -> Data {
        Data::from_tokens(encoding.encode_sections(text))
    }

    /// Reads a file: tokens of llm.c if its name ends in `.bin`, or else text.
    pub fn load(path: &Path, encoding: Encoding) -> Result<Data, FileError> {
        if path.extension().is_some_and(|extension| extension == "bin") {
            let tokens = tokens::load(path)?;
            if let Some(token) = tokens
                .iter()
                .find(|&&token| token as usize >= encoding.vocabulary())
            {
                let problem = format!(
                    "the file has the token {token}, and the vocabulary has {}",
                    encoding.vocabulary()
                );
                return Err(Problem::Malformed(problem).at(path));
            }
            return Ok(Data::from_tokens(tokens));
        }
        let text = fs::read_to_string(path).map_err(|error| Problem::Io(error).at(path))?;
        Ok(Data::from_text(&text, encoding))
    }

    fn from_tokens(mut tokens: Vec<u32>) -> Data {
        let validation = VALIDATION.min(tokens.len() / 10);
        let training = tokens.split_off(validation);
        Data {
            training,
            validation: tokens,
        }
    }
}

/// Batches one after the other, from the start again when the tokens are used up.
#[derive(Clone, Debug)]
pub struct Loader<'a> {
    tokens: &'a [u32],
    batch: Batch,
    /// The next batch.
    pub next: u64,
}

impl<'a> Loader<'a> {
    /// A loader at the first batch; none if the tokens are too few for one.
    pub fn new(tokens: &'a [u32], batch: Batch) -> Option<Loader<'a>> {
        (batch.tokens() > 0 && tokens.len() > batch.tokens()).then_some(Loader {
            tokens,
            batch,
            next: 0,
        })
    }

    /// Batches until they start from the beginning again.
    pub fn batches(&self) -> u64 {
        ((self.tokens.len() - 1) / self.batch.tokens()) as u64
    }

    /// The next batch: its tokens, and what follows each of them.
    pub fn load(&mut self) -> (&'a [u32], &'a [u32]) {
        let count = self.batch.tokens();
        let start = (self.next % self.batches()) as usize * count;
        self.next += 1;
        let tokens = &self.tokens[start..=start + count];
        (&tokens[..count], &tokens[1..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_follow_each_other_and_start_again() {
        let tokens: Vec<u32> = (0..14).collect();
        let batch = Batch {
            sequences: 2,
            steps: 3,
        };
        let mut loader = Loader::new(&tokens, batch).unwrap();
        assert_eq!(loader.load(), (&tokens[..6], &tokens[1..7]));
        assert_eq!(loader.load(), (&tokens[6..12], &tokens[7..13]));
        assert_eq!(loader.load(), (&tokens[..6], &tokens[1..7]));
        assert!(Loader::new(&tokens[..6], batch).is_none());
    }

    #[test]
    fn a_tenth_is_for_validation() {
        let data = Data::from_text(&"words and words\n\n".repeat(20), Encoding::Bytes);
        assert_eq!(
            data.validation.len() * 10 / 10,
            (data.training.len() + data.validation.len()) / 10
        );
        assert_eq!(data.validation[0], 256);
    }
}
