//! A line of the table: a measurement, and its form as text, as a group of bars and as JSON.

use gpt2::chart::Group;
use serde::{Deserialize, Serialize};

/// A measurement. Times are in seconds; a gradient is forward and backward pass together. The program in C writes the same as lines of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) language: Language,
    /// Whether threads share the loops of each layer, and not the sequences of a batch.
    #[serde(default)]
    pub(crate) openmp: bool,
    pub(crate) threads: usize,
    pub(crate) forward: f64,
    pub(crate) manual: f64,
    pub(crate) automatic: f64,
    /// Bytes in use at most, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manual_memory: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) automatic_memory: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Language {
    Rust,
    C,
}

/// The titles of the columns.
pub(crate) fn head() -> String {
    format!(
        "gradient: forward and backward pass together; overhead: gradient / forward; ratio: automatic / by hand\n\
         {:46} {:>11} {:>12} {:>9} {:>13} {:>9} {:>7}",
        "", "forward ms", "by hand ms", "overhead", "automatic ms", "overhead", "ratio"
    )
}

impl Row {
    /// How long the gradients take, measured in forward passes.
    pub(crate) fn overheads(&self) -> Group {
        Group {
            name: self.label(),
            values: vec![self.manual / self.forward, self.automatic / self.forward],
        }
    }

    fn label(&self) -> String {
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        match (self.language, self.openmp) {
            (Language::Rust, _) if self.name == "whole model" => {
                format!("{}, {threads}", self.name)
            }
            (Language::Rust, _) => self.name.clone(),
            (Language::C, false) => format!("C: {}", self.name),
            (Language::C, true) => format!("C, OpenMP, {threads}: {}", self.name),
        }
    }

    /// The line, and a second one about memory.
    pub(crate) fn text(&self) -> String {
        let overheads = self.overheads().values;
        let mut text = format!(
            "{:46} {:11.2} {:12.2} {:9.2} {:13.2} {:9.2} {:7.2}",
            self.label(),
            1e3 * self.forward,
            1e3 * self.manual,
            overheads[0],
            1e3 * self.automatic,
            overheads[1],
            self.automatic / self.manual,
        );
        if let Some((manual, automatic)) = self.manual_memory.zip(self.automatic_memory) {
            text += &format!(
                "\n{:46} by hand {} MB, automatic {} MB, ratio {:.2}",
                "  memory at most",
                manual >> 20,
                automatic >> 20,
                automatic as f64 / manual as f64
            );
        }
        text
    }
}
