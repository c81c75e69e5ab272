//! Text to tokens and back.

use crate::config::Config;
use crate::files::vocabulary::Vocabulary;
use tiktoken_rs::{CoreBPE, r50k_base_singleton};

/// How text becomes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// GPT-2's byte-pair encoding: 50257 tokens.
    Gpt2,
    /// A token for every byte, and one between texts: for models that are small and quick.
    Bytes,
}

impl Encoding {
    /// The encoding that a model must have been trained with, by the size of its vocabulary.
    pub fn of_model(config: &Config) -> Option<Encoding> {
        [Encoding::Gpt2, Encoding::Bytes]
            .into_iter()
            .find(|encoding| encoding.vocabulary() == config.vocabulary)
    }

    /// Tokens that exist.
    pub fn vocabulary(self) -> usize {
        match self {
            Encoding::Gpt2 => 50_257,
            Encoding::Bytes => 257,
        }
    }

    /// The token between texts.
    pub fn end_of_text(self) -> u32 {
        self.vocabulary() as u32 - 1
    }

    /// The tokens of a text.
    pub fn encode(self, text: &str) -> Vec<u32> {
        match self {
            Encoding::Gpt2 => byte_pairs().encode_ordinary(text),
            Encoding::Bytes => text.bytes().map(u32::from).collect(),
        }
    }

    /// The bytes of a token: none for the end of a text.
    pub fn bytes(self, token: u32) -> Vec<u8> {
        if token == self.end_of_text() {
            return Vec::new();
        }
        match self {
            Encoding::Gpt2 => byte_pairs().decode_bytes(&[token]).unwrap_or_default(),
            Encoding::Bytes => u8::try_from(token).into_iter().collect(),
        }
    }

    /// The text of tokens. Ends of texts are blank lines; bytes that are not valid UTF-8 show as �.
    pub fn decode(self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        for &token in tokens {
            if token == self.end_of_text() {
                bytes.extend_from_slice(b"\n\n");
            } else {
                bytes.extend(self.bytes(token));
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The tokens of a text in sections, which blank lines separate, with the end-of-text token before each: as llm.c prepares
    /// tinyshakespeare.
    pub fn encode_sections(self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut sections = text.split("\n\n").peekable();
        while let Some(section) = sections.next() {
            tokens.push(self.end_of_text());
            // All sections but the last keep the blank line.
            if sections.peek().is_some() {
                tokens.extend(self.encode(&format!("{section}\n\n")));
            } else {
                tokens.extend(self.encode(section));
            }
        }
        tokens
    }

    /// All tokens, for a tokenizer file of llm.c.
    pub fn to_vocabulary(self) -> Vocabulary {
        let end_of_text = self.end_of_text();
        let mut tokens: Vec<Vec<u8>> = (0..end_of_text).map(|token| self.bytes(token)).collect();
        tokens.push(b"<|endoftext|>".to_vec());
        Vocabulary {
            tokens,
            end_of_text,
        }
    }
}

/// The encoding whose tables come with the crate, so that nothing is downloaded. It is made at the first use.
fn byte_pairs() -> &'static CoreBPE {
    r50k_base_singleton()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tokens() {
        assert_eq!(Encoding::Gpt2.encode("Hello, world!"), [15496, 11, 995, 0]);
        assert_eq!(Encoding::Gpt2.bytes(50_256), b"");
        assert_eq!(Encoding::Bytes.encode("aé"), [97, 0xc3, 0xa9]);
    }

    #[test]
    fn text_comes_back() {
        let text = "Ein Satz mit ß, 中文 and\n\tempty lines \n\n\n 🦀";
        for encoding in [Encoding::Gpt2, Encoding::Bytes] {
            assert_eq!(encoding.decode(&encoding.encode(text)), text);
        }
    }

    #[test]
    fn sections_start_with_the_end_of_text() {
        let encoding = Encoding::Bytes;
        assert_eq!(
            encoding.encode_sections("a\n\nb"),
            [256, 97, 10, 10, 256, 98]
        );
    }
}
