//! Cuts the text form of the IR into tokens. The Graph IR (crate `graph`) has the same tokens.
//!
//! Blanks, line ends and comments (`;` to the end of the line) separate tokens and mean nothing else. Tokens are cut on
//! demand, so that the parser can go over the same text twice without keeping a list of them.

use crate::literal::is_name_character;
use std::borrow::Cow;

/// One token.
#[derive(Clone, PartialEq, Debug)]
pub enum Token<'t> {
    /// A keyword, an operation, a type, a flag: `fadd`, `f64`, `loc`, and also `-inf`.
    Word(&'t str),
    /// `%name`, without the sign.
    Value(Cow<'t, str>),
    /// `@name`, without the sign.
    Symbol(Cow<'t, str>),
    /// A decimal number with its sign: `12`, `-3`, `1.5e-7`.
    Number(&'t str),
    /// The digits of `0x…`.
    Hex(&'t str),
    /// `"…"`, with escapes resolved.
    String(String),
    /// `x"…"`.
    Bytes(Vec<u8>),
    /// Punctuation.
    Mark(&'static str),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// The token for an error message.
    pub fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Value(name) => format!("`%{name}`"),
            Token::Symbol(name) => format!("`@{name}`"),
            Token::Number(number) => format!("`{number}`"),
            Token::Hex(digits) => format!("`0x{digits}`"),
            Token::String(_) => "a string".to_owned(),
            Token::Bytes(_) => "bytes".to_owned(),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

/// The message of an error, and its byte offset in the text.
#[derive(Debug)]
pub struct LexError {
    /// The byte offset.
    pub position: usize,
    /// The message.
    pub message: String,
}

/// A place in the text from which tokens are cut.
#[derive(Clone)]
pub struct Lexer<'t> {
    text: &'t str,
    position: usize,
    /// In the brackets of a layout, `; 24]` is the stride and not a comment.
    pub in_layout: bool,
}

impl<'t> Lexer<'t> {
    /// From a byte of a text on.
    pub fn new(text: &'t str, position: usize) -> Lexer<'t> {
        Lexer {
            text,
            position,
            in_layout: false,
        }
    }

    /// The next token and the byte at which it starts.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<(Token<'t>, usize), LexError> {
        self.skip_blanks();
        let start = self.position;
        let Some(first) = self.rest().chars().next() else {
            return Ok((Token::End, start));
        };
        let token = match first {
            '%' | '@' => {
                self.position += 1;
                let name = self.name(start)?;
                if first == '%' {
                    Token::Value(name)
                } else {
                    Token::Symbol(name)
                }
            }
            '"' => Token::String(self.string()?),
            '0'..='9' => self.number(),
            '-' => {
                let after = &self.rest()[1..];
                if after.starts_with('>') {
                    self.mark("->")
                } else if after.starts_with(|next: char| next.is_ascii_digit()) {
                    self.number()
                } else if after.starts_with("inf") {
                    Token::Word(self.take(4))
                } else {
                    return Err(self.error(start, "expected a number after `-`"));
                }
            }
            '.' if self.rest().starts_with("..=") => self.mark("..="),
            '_' | 'a'..='z' | 'A'..='Z' => {
                let length = self
                    .rest()
                    .find(|next: char| !next.is_ascii_alphanumeric() && next != '_')
                    .unwrap_or(self.rest().len());
                if length == 1 && self.rest().starts_with("x\"") {
                    Token::Bytes(self.bytes()?)
                } else {
                    Token::Word(self.take(length))
                }
            }
            other => match MARKS.iter().find(|mark| mark.starts_with(other)) {
                Some(mark) => self.mark(mark),
                None => {
                    return Err(self.error(start, format!("unexpected character `{other}`")));
                }
            },
        };
        Ok((token, start))
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn take(&mut self, length: usize) -> &'t str {
        let taken = &self.rest()[..length];
        self.position += length;
        taken
    }

    fn mark(&mut self, mark: &'static str) -> Token<'t> {
        self.position += mark.len();
        Token::Mark(mark)
    }

    fn error(&self, position: usize, message: impl Into<String>) -> LexError {
        LexError {
            position,
            message: message.into(),
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if !trimmed.starts_with(';') || (self.in_layout && starts_with_stride(trimmed)) {
                return;
            }
            self.position += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn name(&mut self, start: usize) -> Result<Cow<'t, str>, LexError> {
        if self.rest().starts_with('"') {
            return Ok(Cow::Owned(self.string()?));
        }
        let length = self
            .rest()
            .find(|next| !is_name_character(next))
            .unwrap_or(self.rest().len());
        if length == 0 {
            let sigil = &self.text[start..start + 1];
            return Err(self.error(start, format!("expected a name after `{sigil}`")));
        }
        Ok(Cow::Borrowed(self.take(length)))
    }

    /// A number: its digits, a fraction if a digit follows the point (`0..=9` is a range), an exponent.
    fn number(&mut self) -> Token<'t> {
        let bytes = self.rest().as_bytes();
        if bytes.starts_with(b"0x") {
            let digits = count(&bytes[2..], u8::is_ascii_hexdigit);
            self.position += 2;
            return Token::Hex(self.take(digits));
        }
        let digits_at = |at: usize| count(bytes.get(at..).unwrap_or(&[]), u8::is_ascii_digit);
        let mut length = usize::from(bytes[0] == b'-');
        length += digits_at(length);
        if bytes.get(length) == Some(&b'.') && digits_at(length + 1) > 0 {
            length += 1 + digits_at(length + 1);
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            let digits = digits_at(length + 1 + sign);
            if digits > 0 {
                length += 1 + sign + digits;
            }
        }
        Token::Number(self.take(length))
    }

    /// A string, from its opening quote on.
    fn string(&mut self) -> Result<String, LexError> {
        let start = self.position;
        let mut string = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.position += at + 1;
                    return Ok(string);
                }
                '\n' => break,
                '\\' => {
                    let escape = start + at;
                    let resolved = match characters.next().map(|(_, escaped)| escaped) {
                        Some('n') => Some('\n'),
                        Some('r') => Some('\r'),
                        Some('t') => Some('\t'),
                        Some(quoted @ ('"' | '\\')) => Some(quoted),
                        Some('u') => {
                            // `{`, hexadecimal digits, `}`; no character has more than six digits.
                            let code = &self.rest()[at + 2..];
                            let end = code.bytes().take(8).position(|byte| byte == b'}');
                            end.and_then(|end| {
                                characters.nth(end)?;
                                let digits = code[..end].strip_prefix('{')?;
                                char::from_u32(u32::from_str_radix(digits, 16).ok()?)
                            })
                        }
                        _ => None,
                    };
                    match resolved {
                        Some(character) => string.push(character),
                        None => {
                            return Err(self.error(
                                escape,
                                "unknown escape: there are \\n, \\r, \\t, \\\", \\\\ and \\u{…}",
                            ));
                        }
                    }
                }
                other => string.push(other),
            }
        }
        Err(self.error(start, "the string does not end on its line"))
    }

    /// `x"…"`, from the `x` on.
    fn bytes(&mut self) -> Result<Vec<u8>, LexError> {
        let start = self.position;
        self.position += 2;
        let length = count(self.rest().as_bytes(), u8::is_ascii_hexdigit);
        let digits = self.take(length);
        if !self.rest().starts_with('"') {
            return Err(self.error(
                self.position,
                "expected hexadecimal digits and a closing quote",
            ));
        }
        self.position += 1;
        if !length.is_multiple_of(2) {
            return Err(self.error(start, "each byte takes two hexadecimal digits"));
        }
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
        Ok(digits
            .as_bytes()
            .chunks_exact(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect())
    }
}

const MARKS: &[&str] = &[
    "(", ")", "{", "}", "[", "]", "<", ">", ",", ":", "=", "*", ";",
];

fn count(bytes: &[u8], accept: impl Fn(&u8) -> bool) -> usize {
    bytes
        .iter()
        .position(|byte| !accept(byte))
        .unwrap_or(bytes.len())
}

/// Whether a text is `; 24]` and so on.
fn starts_with_stride(text: &str) -> bool {
    let number = text[1..].trim_start_matches([' ', '\t']);
    let after = number.trim_start_matches(|digit: char| digit.is_ascii_digit());
    after.len() < number.len() && after.trim_start_matches([' ', '\t']).starts_with(']')
}
