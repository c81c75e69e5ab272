//! `loopir analyse`.

use super::differentiate::Target;
use clap::{Args, ValueEnum};
use ferrozyme_diff::explain_activity;
use ferrozyme_diff::objects::{Objects, ObjectsCache};
use ferrozyme_filetest::analysis::{print_aliases, print_clobbers, print_indices};

/// Prints the result of an analysis.
#[derive(Args, Debug)]
pub(super) struct Analyse {
    /// Which analysis.
    #[arg(value_enum)]
    analysis: Analysis,
    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Analysis {
    /// Integers as expressions of counters and parameters, and trip counts.
    Indices,
    /// What each operation reads and writes, and which of them may alias.
    Alias,
    /// For each load, an operation that may clobber it.
    Clobbers,
    /// The classes of memory and their layouts.
    Objects,
    /// Which values and which memory carry derivatives.
    Activity,
}

impl Analyse {
    pub(super) fn run(&self) -> Result<String, String> {
        let (module, request) = self.target.read()?;
        let function = request.function;
        if module.functions[function].body.is_none() {
            let name = &module.functions[function].name;
            return Err(format!("error: @{name} has no body to analyse"));
        }
        Ok(match self.analysis {
            Analysis::Indices => print_indices(&module, function),
            Analysis::Alias => print_aliases(&module, function),
            Analysis::Clobbers => print_clobbers(&module, function),
            Analysis::Objects => {
                Objects::analyse(&module, function, &mut ObjectsCache::new(), None).print(&module)
            }
            Analysis::Activity => {
                explain_activity(&module, &request).map_err(|error| format!("error: {error}"))?
            }
        })
    }
}
