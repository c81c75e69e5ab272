//! What happened during training, as lines of JSON.

use crate::files::replace::replace_bytes;
use crate::files::{FileError, Problem};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Which.
    pub step: u64,
    /// The loss of its batch before the step.
    pub loss: f32,
    /// The loss on the validation data before the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub validation: Option<f32>,
    /// The sample of the model before the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sample: Option<String>,
    /// How long the step took.
    pub seconds: f64,
    /// How quick that was.
    pub tokens_per_second: f64,
}

/// A log that is written.
pub struct Log {
    path: PathBuf,
    file: File,
    /// All entries so far.
    pub entries: Vec<Entry>,
}

impl Log {
    /// Opens the log at `path` for a run that is at `step`: entries from there on, which a killed run may have left, are dropped.
    pub fn open(path: &Path, step: u64) -> Result<Log, FileError> {
        let mut entries = if step > 0 { read(path)? } else { Vec::new() };
        entries.retain(|entry| entry.step < step);
        let mut text = Vec::new();
        for entry in &entries {
            line(entry, &mut text).map_err(|error| Problem::Io(error).at(path))?;
        }
        replace_bytes(path, &text)?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(|error| Problem::Io(error).at(path))?;
        Ok(Log {
            path: path.to_owned(),
            file,
            entries,
        })
    }

    /// Appends an entry.
    pub fn write(&mut self, entry: Entry) -> Result<(), FileError> {
        let mut text = Vec::new();
        line(&entry, &mut text)
            .and_then(|()| self.file.write_all(&text))
            .map_err(|error| Problem::Io(error).at(&self.path))?;
        self.entries.push(entry);
        Ok(())
    }
}

/// Reads a log. Malformed lines, which a killed run may leave, are skipped; without a file there are none.
pub fn read(path: &Path) -> Result<Vec<Entry>, FileError> {
    match fs::read(path) {
        Ok(bytes) => {
            let lines = bytes.split(|&byte| byte == b'\n');
            Ok(lines
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Problem::Io(error).at(path)),
    }
}

fn line(entry: &Entry, text: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *text, entry)?;
    text.push(b'\n');
    Ok(())
}
