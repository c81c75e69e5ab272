//! Perturbations: choices of the compiler that must not change a derivative, as one line of text. Tests run programs under all of them.
//!
//! ```text
//! inline=none,prepare=O1,plan=save,at-once=off,outline=off,order=reverse,mode=split,calls=resolve,level=v3
//! ```
//!
//! Choices that are not named have their defaults. A derivative under a perturbation equals the default one up to rounding, or it is refused.

use ferrozyme_diff::{Caching, Choices};
use ferrozyme_ir::ProcessorLevel;
use ferrozyme_library::is_of_standard_library;
use ferrozyme_opt::Inlining;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How a program that calls a derivative that was refused late begins its last words.
pub const REFUSED: &str = "Ferrozyme: refused: ";

/// The environment variable that holds a perturbation, for `cargo ferrozyme` and `ferrozyme-cc`.
pub const VARIABLE: &str = "FERROZYME_PERTURB";

/// What is done in another way than usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Perturbation {
    /// Which calls are inlined before differentiation, by LLVM and in the Loop IR.
    pub inline: Inline,
    /// How much LLVM's optimiser does before differentiation.
    pub prepare: Preparation,
    /// How the reverse sweep comes by values, what is differentiated at once, and whether both sweeps are one function.
    pub choices: Choices,
    /// Whether code that cannot return stays where it is.
    pub in_line: bool,
    /// Whether roots are imported and differentiated last first.
    pub reversed: bool,
    /// Whether a derivative of a Rust function that cannot be made stops the program where it is called, instead of the link: so that the others can be tried.
    pub late: bool,
    /// The highest level that the processor is said to have: 0 for the baseline, 2, 3 or 4.
    pub highest_level: Option<u32>,
}

impl Perturbation {
    /// What the environment asks for: nothing but tests does.
    ///
    /// # Errors
    /// If it asks for something that there is not.
    pub fn of_environment() -> Result<Perturbation, String> {
        match std::env::var(VARIABLE) {
            Ok(text) => text.parse(),
            Err(_) => Ok(Perturbation::default()),
        }
    }
}

/// Which calls are inlined before differentiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inline {
    /// As both inliners see fit.
    #[default]
    Usual,
    /// All that can be.
    All,
    /// None.
    None,
    /// Those of the standard library's functions: as if all functions of the program were marked `#[inline(never)]`.
    Library,
    /// Those of about half of the functions, by their names and a seed.
    Half(u64),
}

/// A pipeline of LLVM's optimiser.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preparation {
    /// What the importer cannot do without.
    O0,
    /// Little.
    O1,
    /// The usual.
    #[default]
    O2,
    /// All.
    O3,
    /// What makes code small.
    Os,
}

impl Preparation {
    const ALL: [(Preparation, &str); 5] = [
        (Preparation::O0, "O0"),
        (Preparation::O1, "O1"),
        (Preparation::O2, "O2"),
        (Preparation::O3, "O3"),
        (Preparation::Os, "Os"),
    ];

    /// The name in LLVM's pipelines.
    pub(crate) fn name(self) -> &'static str {
        let named = Preparation::ALL.iter().find(|(level, _)| *level == self);
        named.map_or("O2", |(_, name)| name)
    }
}

impl Inline {
    /// Whether calls of a function of this symbol are inlined at all.
    pub(crate) fn considers(self, symbol: &str) -> bool {
        match self {
            Inline::Usual | Inline::All => true,
            Inline::None => false,
            Inline::Library => is_of_standard_library(symbol),
            Inline::Half(seed) => Inlining::Half(seed).considers(symbol),
        }
    }

    /// The same for the inliner of the Loop IR. What LLVM must not inline carries a mark there.
    pub(crate) fn in_loop_ir(self) -> Inlining {
        match self {
            Inline::Usual | Inline::Library | Inline::Half(_) => Inlining::Usual,
            Inline::All => Inlining::All,
            Inline::None => Inlining::None,
        }
    }
}

impl FromStr for Perturbation {
    type Err = String;

    fn from_str(text: &str) -> Result<Perturbation, String> {
        let mut perturbation = Perturbation::default();
        for choice in text
            .split(',')
            .map(str::trim)
            .filter(|choice| !choice.is_empty())
        {
            let (name, value) = choice.split_once('=').unwrap_or((choice, ""));
            match (name, value) {
                ("inline", "usual") => perturbation.inline = Inline::Usual,
                ("inline", "all") => perturbation.inline = Inline::All,
                ("inline", "none") => perturbation.inline = Inline::None,
                ("inline", "library") => perturbation.inline = Inline::Library,
                ("inline", value) if value.starts_with("half:") => {
                    let seed = value["half:".len()..].parse();
                    let seed = seed.map_err(|error| format!("the seed in `{choice}`: {error}"))?;
                    perturbation.inline = Inline::Half(seed);
                }
                ("prepare", value) => {
                    let level = Preparation::ALL.iter().find(|(_, name)| *name == value);
                    let (level, _) = level.ok_or_else(|| unknown(choice))?;
                    perturbation.prepare = *level;
                }
                ("plan", "save") => perturbation.choices.caching = Caching::Save,
                ("plan", "recompute") => perturbation.choices.caching = Caching::Recompute,
                ("at-once", "off") => perturbation.choices.at_once = false,
                ("mode", "split") => perturbation.choices.split = true,
                ("calls", "resolve") => perturbation.choices.resolve = true,
                ("outline", "off") => perturbation.in_line = true,
                ("order", "reverse") => perturbation.reversed = true,
                ("refuse", "late") => perturbation.late = true,
                ("level", "baseline") => perturbation.highest_level = Some(0),
                ("level", value) => {
                    let level: Result<ProcessorLevel, String> = value.parse();
                    let level = level.map_err(|_| unknown(choice))?;
                    perturbation.highest_level = Some(level.number());
                }
                _ => return Err(unknown(choice)),
            }
        }
        Ok(perturbation)
    }
}

fn unknown(choice: &str) -> String {
    format!(
        "{VARIABLE}: `{choice}` is none of inline=all|none|library|half:SEED, prepare=O0|O1|O3|Os, plan=save|recompute, at-once=off, mode=split, calls=resolve, \
         outline=off, order=reverse, refuse=late, level=baseline|v2|v3|v4"
    )
}

impl fmt::Display for Perturbation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut choices: Vec<String> = Vec::new();
        match self.inline {
            Inline::Usual => {}
            Inline::All => choices.push("inline=all".to_owned()),
            Inline::None => choices.push("inline=none".to_owned()),
            Inline::Library => choices.push("inline=library".to_owned()),
            Inline::Half(seed) => choices.push(format!("inline=half:{seed}")),
        }
        if self.prepare != Preparation::default() {
            choices.push(format!("prepare={}", self.prepare.name()));
        }
        match self.choices.caching {
            Caching::Planned => {}
            Caching::Save => choices.push("plan=save".to_owned()),
            Caching::Recompute => choices.push("plan=recompute".to_owned()),
        }
        let flags = [
            (!self.choices.at_once, "at-once=off"),
            (self.choices.split, "mode=split"),
            (self.choices.resolve, "calls=resolve"),
            (self.in_line, "outline=off"),
            (self.reversed, "order=reverse"),
            (self.late, "refuse=late"),
        ];
        choices.extend(
            flags
                .iter()
                .filter(|(set, _)| *set)
                .map(|(_, text)| (*text).to_owned()),
        );
        match self.highest_level {
            None => {}
            Some(0) => choices.push("level=baseline".to_owned()),
            Some(level) => choices.push(format!("level=v{level}")),
        }
        f.write_str(&choices.join(","))
    }
}

impl From<Perturbation> for String {
    fn from(perturbation: Perturbation) -> String {
        perturbation.to_string()
    }
}

impl TryFrom<String> for Perturbation {
    type Error = String;

    fn try_from(text: String) -> Result<Perturbation, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in [
            "",
            "inline=all",
            "inline=half:17,prepare=O1,plan=save",
            "inline=library,plan=recompute,at-once=off,mode=split,calls=resolve,outline=off,order=reverse,refuse=late",
            "plan=save,level=v3",
            "level=baseline",
        ] {
            let perturbation: Result<Perturbation, String> = text.parse();
            assert_eq!(
                perturbation.map(|perturbation| perturbation.to_string()),
                Ok(text.to_owned())
            );
        }
        assert!("inline=some".parse::<Perturbation>().is_err());
        assert!("inline=half:x".parse::<Perturbation>().is_err());
        assert!("level=v9".parse::<Perturbation>().is_err());
        assert!("prepare=O9".parse::<Perturbation>().is_err());
    }
}
