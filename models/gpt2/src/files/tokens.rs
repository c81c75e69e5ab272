//! llm.c's token files: a header with their number, then tokens of two bytes.

use super::header::{self, Header, word};
use super::{FileError, Problem, read, read_exactly};
use crate::files::replace::replace;
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: u32 = 20_240_520;
const VERSION: u32 = 1;

/// Reads the token file at `path`.
pub fn load(path: &Path) -> Result<Vec<u32>, FileError> {
    read(path, parse)
}

/// Writes a token file to `path`.
pub fn save(path: &Path, tokens: &[u32]) -> Result<(), FileError> {
    replace(path, |writer| write(writer, tokens))
}

/// Reads a token file of `length` bytes.
pub fn parse(reader: &mut impl Read, length: u64) -> Result<Vec<u32>, Problem> {
    let header = Header::read(reader, length, MAGIC, "token file of llm.c")?;
    if header.version != VERSION {
        return Problem::malformed(format!(
            "the token file has version {}; known is {VERSION}",
            header.version
        ));
    }
    let count = header.size(2);
    let expected = header::LENGTH + 2 * count as u64;
    if length != expected {
        return Problem::malformed(format!(
            "the file has {length} bytes, and one of {count} tokens {expected}"
        ));
    }
    let mut bytes = vec![0; 2 * count];
    read_exactly(reader, &mut bytes)?;
    let tokens = bytes.as_chunks().0.iter();
    Ok(tokens
        .map(|token| u16::from_le_bytes(*token).into())
        .collect())
}

/// Writes a token file. Tokens must fit into two bytes.
pub fn write(writer: &mut impl Write, tokens: &[u32]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(2 * tokens.len());
    for &token in tokens {
        let token = u16::try_from(token).map_err(|_| {
            let message = format!("token {token} does not fit into two bytes");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        bytes.extend_from_slice(&token.to_le_bytes());
    }
    Header::write(writer, &[MAGIC, VERSION, word(tokens.len())?])?;
    writer.write_all(&bytes)
}
