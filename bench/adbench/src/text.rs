//! Reads the numbers of a data file; a bad file is an error that says where.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An error in a file.
#[derive(Debug)]
pub struct BadFile {
    path: PathBuf,
    line: usize,
    reason: String,
}

impl BadFile {
    /// An error about a file as a whole.
    pub fn new(path: &Path, reason: impl Into<String>) -> BadFile {
        BadFile {
            path: path.to_owned(),
            line: 0,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for BadFile {}

/// A file as words.
pub struct Words {
    path: PathBuf,
    text: String,
    separator: fn(char) -> bool,
    /// Where the next word starts.
    at: usize,
}

impl Words {
    /// Words between white space.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(path: &Path) -> Result<Words, BadFile> {
        Words::open_with(path, char::is_whitespace)
    }

    /// Words between white space and colons.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open_fields(path: &Path) -> Result<Words, BadFile> {
        Words::open_with(path, |c| c.is_whitespace() || c == ':')
    }

    fn open_with(path: &Path, separator: fn(char) -> bool) -> Result<Words, BadFile> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| BadFile::new(path, format!("cannot be read: {error}")))?;
        Ok(Words {
            path: path.to_owned(),
            text,
            separator,
            at: 0,
        })
    }

    /// Whether no word is left.
    pub fn is_at_end(&self) -> bool {
        self.text[self.at..]
            .trim_start_matches(self.separator)
            .is_empty()
    }

    /// The next word.
    ///
    /// # Errors
    /// If there is none.
    pub fn word(&mut self, what: &str) -> Result<&str, BadFile> {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start_matches(self.separator).len());
        let length = self.text[start..]
            .find(self.separator)
            .unwrap_or(self.text.len() - start);
        if length == 0 {
            self.at = start;
            return Err(self.error(format!("ends where {what} should be")));
        }
        self.at = start + length;
        Ok(&self.text[start..start + length])
    }

    /// The next word as a number.
    ///
    /// # Errors
    /// If there is none, or it is no such number.
    pub fn number<T: FromStr>(&mut self, what: &str) -> Result<T, BadFile> {
        let word = self.word(what)?;
        let parsed = word.parse();
        let shown = word.to_owned();
        parsed.map_err(|_| self.error(format!("`{shown}` is not {what}")))
    }

    /// The next words as numbers.
    ///
    /// # Errors
    /// If there are not so many, or one is no float.
    pub fn floats(&mut self, count: usize, what: &str) -> Result<Vec<f64>, BadFile> {
        (0..count).map(|_| self.number(what)).collect()
    }

    /// How many numbers follow from several sizes.
    ///
    /// # Errors
    /// If no memory holds so many.
    pub fn product(&self, sizes: &[usize]) -> Result<usize, BadFile> {
        let product = sizes
            .iter()
            .try_fold(1usize, |product, &size| product.checked_mul(size));
        let most = isize::MAX as usize / size_of::<f64>();
        product
            .filter(|&product| product <= most)
            .ok_or_else(|| self.error("no memory holds so many numbers".to_owned()))
    }

    /// An error at the place of the last word.
    pub fn error(&self, reason: String) -> BadFile {
        BadFile {
            path: self.path.clone(),
            line: self.text[..self.at].matches('\n').count() + 1,
            reason,
        }
    }
}
