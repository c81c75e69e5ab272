//! Files that models, tokens and tokenizers are kept in.
//!
//! Readers check everything before they believe it: a file that is truncated, of another kind or version, or whose sizes
//! contradict each other is an error that says so, and no more memory is taken than the file is long. Writers never leave half a file
//! behind: they write beside the target, sync, and rename.

pub mod checkpoint;
mod header;
pub mod replace;
pub mod safetensors;
pub mod state;
pub mod tokens;
pub mod vocabulary;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error in a file, with its path.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    path: PathBuf,
    #[source]
    problem: Problem,
}

/// The kind of error in a file.
#[derive(Debug, Error)]
pub enum Problem {
    /// The system says so.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The content is malformed.
    #[error("{0}")]
    Malformed(String),
}

impl Problem {
    /// A file with malformed content.
    pub fn malformed<T>(what: impl Into<String>) -> Result<T, Problem> {
        Err(Problem::Malformed(what.into()))
    }

    /// The same for the file at `path`.
    pub fn at(self, path: &Path) -> FileError {
        FileError {
            path: path.to_owned(),
            problem: self,
        }
    }
}

/// Reads a file by a function that gets its content and its length.
pub fn read<T>(
    path: &Path,
    parse: impl FnOnce(&mut BufReader<File>, u64) -> Result<T, Problem>,
) -> Result<T, FileError> {
    let read = || {
        let (mut reader, length) = opened(path)?;
        parse(&mut reader, length)
    };
    read().map_err(|problem| problem.at(path))
}

/// A file and its length.
fn opened(path: &Path) -> io::Result<(BufReader<File>, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((BufReader::with_capacity(1 << 20, file), length))
}

/// Fills `numbers` with little-endian numbers of four bytes.
fn read_floats(reader: &mut impl Read, numbers: &mut [f32]) -> Result<(), Problem> {
    let mut buffer = vec![0; 1 << 16];
    for numbers in numbers.chunks_mut(buffer.len() / 4) {
        let bytes = &mut buffer[..numbers.len() * 4];
        read_exactly(reader, bytes)?;
        for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
            *number = f32::from_le_bytes(*bytes);
        }
    }
    Ok(())
}

/// Writes numbers as little-endian numbers of four bytes.
fn write_floats(writer: &mut impl io::Write, numbers: &[f32]) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(1 << 16);
    for numbers in numbers.chunks(buffer.capacity() / 4) {
        buffer.clear();
        for number in numbers {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        writer.write_all(&buffer)?;
    }
    Ok(())
}

/// Fills `bytes`, and reports an early end of the file as such.
fn read_exactly(reader: &mut impl Read, bytes: &mut [u8]) -> Result<(), Problem> {
    reader
        .read_exact(bytes)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Problem::Malformed("the file is truncated".to_owned()),
            _ => Problem::Io(error),
        })
}
