//! `log.jsonl`: a line for each step, with its loss and the seconds since the run began.
//!
//! When a run goes on from a checkpoint, the lines of steps that will be done again are removed, so that each step stands there once.

use crate::file::{FileError, Problem, replace};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A step that is done.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) step: u64,
    pub(crate) loss: f64,
    pub(crate) seconds: f64,
}

/// The file, and what it says.
pub(crate) struct Log {
    file: File,
    pub(crate) lines: Vec<Line>,
}

impl Log {
    /// Opens the log of a run that goes on after so many steps. What stands there of later ones, and a line that was not finished, are removed.
    pub(crate) fn open(path: &Path, steps: u64) -> Result<Log, FileError> {
        let failed = |error: io::Error| Problem::Access(error).at(path);
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other.map_err(failed)?,
        };
        let mut lines: Vec<Line> = Vec::new();
        // The text of a line stays as it is: a number that is read and written again need not have the same digits.
        let mut kept = String::new();
        for text in text
            .split_inclusive('\n')
            .filter(|text| text.ends_with('\n'))
        {
            match serde_json::from_str::<Line>(text) {
                Ok(line) if line.step < steps => {
                    lines.push(line);
                    kept.push_str(text);
                }
                _ => break,
            }
        }
        let written = replace(path, |file| Ok(file.write_all(kept.as_bytes())?));
        written.map_err(|problem| problem.at(path))?;
        let file = OpenOptions::new().append(true).open(path);
        Ok(Log {
            file: file.map_err(failed)?,
            lines,
        })
    }

    pub(crate) fn append(&mut self, lines: &[Line]) -> io::Result<()> {
        self.lines.extend_from_slice(lines);
        self.file.write_all(text_of(lines).as_bytes())
    }

    /// Returns when the lines are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn text_of(lines: &[Line]) -> String {
    let line = |line: &Line| {
        let json = serde_json::to_string(line).expect("numbers can be written");
        format!("{json}\n")
    };
    lines.iter().map(line).collect()
}
