//! llm.c's tokenizer files: the bytes of each token. Enough to decode, not to encode.

use super::header::{self, Header, word};
use super::{FileError, Problem, read};
use crate::files::replace::replace;
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: u32 = 20_240_328;
const VERSION: u32 = 2;

/// The bytes of each token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// The bytes of each token, of which there are at most 255.
    pub tokens: Vec<Vec<u8>>,
    /// The token between texts.
    pub end_of_text: u32,
}

impl Vocabulary {
    /// The text of `tokens`. Those that are not in the vocabulary are left out.
    pub fn decode(&self, tokens: &[u32]) -> Vec<u8> {
        let known = tokens
            .iter()
            .filter_map(|&token| self.tokens.get(token as usize));
        known.flatten().copied().collect()
    }
}

/// Reads the tokenizer file at `path`.
pub fn load(path: &Path) -> Result<Vocabulary, FileError> {
    read(path, parse)
}

/// Writes a tokenizer file to `path`.
pub fn save(path: &Path, vocabulary: &Vocabulary) -> Result<(), FileError> {
    replace(path, |writer| write(writer, vocabulary))
}

/// Reads a tokenizer file of `length` bytes.
pub fn parse(reader: &mut impl Read, length: u64) -> Result<Vocabulary, Problem> {
    let header = Header::read(reader, length, MAGIC, "tokenizer file of llm.c")?;
    if header.version != VERSION {
        return Problem::malformed(format!(
            "the tokenizer file has version {}; known is {VERSION}",
            header.version
        ));
    }
    let count = header.size(2);
    let end_of_text = header.size(3);
    if end_of_text >= count {
        return Problem::malformed(format!(
            "the end-of-text token is {end_of_text} in a vocabulary of {count}"
        ));
    }
    if (count as u64) > length - header::LENGTH {
        return Problem::malformed(format!("the file is too short for {count} tokens"));
    }
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    let mut rest = &bytes[..];
    let mut tokens = Vec::with_capacity(count);
    for token in 0..count {
        let Some((text, after)) = rest
            .split_first()
            .and_then(|(&length, after)| after.split_at_checked(length.into()))
        else {
            return Problem::malformed(format!("the file ends within token {token} of {count}"));
        };
        tokens.push(text.to_vec());
        rest = after;
    }
    if !rest.is_empty() {
        return Problem::malformed(format!("{} bytes follow the last token", rest.len()));
    }
    Ok(Vocabulary {
        tokens,
        end_of_text: end_of_text as u32,
    })
}

/// Writes a tokenizer file.
pub fn write(writer: &mut impl Write, vocabulary: &Vocabulary) -> io::Result<()> {
    let header = [
        MAGIC,
        VERSION,
        word(vocabulary.tokens.len())?,
        vocabulary.end_of_text,
    ];
    Header::write(writer, &header)?;
    for (index, token) in vocabulary.tokens.iter().enumerate() {
        let length = u8::try_from(token.len()).map_err(|_| {
            let message = format!("token {index} has more than 255 bytes");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        writer.write_all(&[length])?;
        writer.write_all(token)?;
    }
    Ok(())
}
