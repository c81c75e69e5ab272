//! The header of llm.c's files: 256 numbers of four bytes, of which the first is a magic number and the second a version.

use super::{Problem, read_exactly};
use std::io::{self, Read, Write};

/// Bytes of a header.
pub(super) const LENGTH: u64 = 1024;

/// A header after its magic number.
pub(super) struct Header {
    pub(super) version: u32,
    words: Vec<u32>,
}

impl Header {
    /// Reads a header and checks whose it is.
    pub(super) fn read(
        reader: &mut impl Read,
        length: u64,
        magic: u32,
        kind: &str,
    ) -> Result<Header, Problem> {
        let mut bytes = [0; LENGTH as usize];
        if length < LENGTH {
            return Problem::malformed(format!(
                "no {kind}: it has {length} bytes, fewer than the header of {LENGTH}"
            ));
        }
        read_exactly(reader, &mut bytes)?;
        let words: Vec<u32> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect();
        if words[0] != magic {
            return Problem::malformed(format!(
                "no {kind}: its first number is {}, not {magic}",
                words[0]
            ));
        }
        Ok(Header {
            version: words[1],
            words,
        })
    }

    /// The number at `index` as a size.
    pub(super) fn size(&self, index: usize) -> usize {
        self.words[index] as usize
    }

    /// Writes a header that starts with `numbers`.
    pub(super) fn write(writer: &mut impl Write, numbers: &[u32]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(LENGTH as usize);
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.resize(LENGTH as usize, 0);
        writer.write_all(&bytes)
    }
}

/// A size as a number of the header.
pub(super) fn word(size: usize) -> io::Result<u32> {
    u32::try_from(size).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{size} is too large for the file's header"),
        )
    })
}
