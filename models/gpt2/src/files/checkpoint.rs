//! llm.c's checkpoints: a header with the sizes, then all parameters.

use super::header::{self, Header, word};
use super::{FileError, Problem, read, read_exactly, read_floats, write_floats};
use crate::config::Config;
use crate::files::replace::replace;
use crate::tensors::Parameters;
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: u32 = 20_240_326;
/// Numbers of four bytes.
const SINGLE: u32 = 3;
/// Numbers of two bytes, bfloat16.
const BRAIN: u32 = 5;

/// Reads the checkpoint at `path`.
pub fn load(path: &Path) -> Result<(Config, Vec<f32>), FileError> {
    read(path, parse)
}

/// Writes a checkpoint to `path`, as numbers of four bytes.
pub fn save(path: &Path, config: &Config, parameters: &[f32]) -> Result<(), FileError> {
    replace(path, |writer| write(writer, config, parameters))
}

/// Reads a checkpoint of `length` bytes.
pub fn parse(reader: &mut impl Read, length: u64) -> Result<(Config, Vec<f32>), Problem> {
    let header = Header::read(reader, length, MAGIC, "checkpoint of llm.c")?;
    let bytes = match header.version {
        SINGLE => 4,
        BRAIN => 2,
        version => {
            return Problem::malformed(format!(
                "the checkpoint has version {version}; known are {SINGLE} (f32) and {BRAIN} (bf16)"
            ));
        }
    };
    let config = Config {
        max_steps: header.size(2),
        vocabulary: header.size(3),
        layers: header.size(4),
        heads: header.size(5),
        channels: header.size(6),
        padded_vocabulary: header.size(7),
    };
    config
        .check()
        .map_err(|error| Problem::Malformed(error.to_string()))?;
    let count = Parameters::total(&config);
    let expected = header::LENGTH + bytes * count as u64;
    if length != expected {
        return Problem::malformed(format!(
            "the file has {length} bytes, and a checkpoint of {count} parameters {expected}"
        ));
    }
    let mut parameters = vec![0.0; count];
    if bytes == 4 {
        read_floats(reader, &mut parameters)?;
    } else {
        let mut buffer = vec![0; 1 << 16];
        for numbers in parameters.chunks_mut(buffer.len() / 2) {
            let bytes = &mut buffer[..2 * numbers.len()];
            read_exactly(reader, bytes)?;
            for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                // A bfloat16 is the upper half of a single.
                *number = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
            }
        }
    }
    Ok((config, parameters))
}

/// Writes a checkpoint.
pub fn write(writer: &mut impl Write, config: &Config, parameters: &[f32]) -> io::Result<()> {
    let header = [
        MAGIC,
        SINGLE,
        word(config.max_steps)?,
        word(config.vocabulary)?,
        word(config.layers)?,
        word(config.heads)?,
        word(config.channels)?,
        word(config.padded_vocabulary)?,
    ];
    Header::write(writer, &header)?;
    write_floats(writer, parameters)
}
