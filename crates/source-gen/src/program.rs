//! A generated program.

use crate::tree::Tree;

/// A program of one language: a function of a few floats, and its helpers.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its seed.
    pub seed: u64,
    /// How many floats its root takes.
    pub inputs: usize,
    /// Its text.
    pub tree: Tree,
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, through `cargo ferrozyme`.
    Rust,
    /// C, through `ferrozyme-cc`.
    C,
}

impl Language {
    /// Makes the program of a seed.
    pub fn generate(self, seed: u64) -> Program {
        match self {
            Language::Rust => crate::rust::generate(seed),
            Language::C => crate::c::generate(seed),
        }
    }

    /// How a float literal is written.
    pub fn number(self) -> &'static str {
        match self {
            Language::Rust => crate::rust::NUMBER,
            Language::C => crate::c::NUMBER,
        }
    }

    /// The ending of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Language::Rust => "rs",
            Language::C => "c",
        }
    }
}
