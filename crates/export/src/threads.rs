//! Who runs the bodies of teams: the calling thread, OpenMP's threads, or a function of the program.

use super::{ExportError, Exporter};
use ferrozyme_ir::{TEAM, THREADS};
use ferrozyme_llvm::{Linkage, Value};

/// Who runs the bodies of teams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Team {
    /// The calling thread, one after the other. What is only for several threads is removed by LLVM.
    #[default]
    Caller,
    /// The threads of OpenMP, where the program is linked with its runtime library; the calling thread where it is not. Whether it is shows only when the program is linked, so the references are weak.
    OpenMp,
    /// The program defines [`THREADS`] and [`TEAM`].
    OfProgram,
}

impl<'c> Exporter<'_, 'c> {
    /// Defines the two functions, and gives the one of this name.
    pub(super) fn define_team(&mut self, name: &str) -> Result<Value<'c>, ExportError> {
        let text = match self.options.team {
            Team::OpenMp => include_str!("threads/openmp.ll"),
            Team::Caller | Team::OfProgram => include_str!("threads/caller.ll"),
        };
        let source = self.parse_given(name, text)?;
        let references: Vec<String> = source
            .functions()
            .filter(|function| function.is_declaration())
            .map(|function| function.name())
            .collect();
        for reference in references {
            // The runtime's functions are meant, not what differentiated code has in their place.
            if let Some(own) = self.into.function(&reference)
                && own.linkage() == Linkage::Internal
            {
                own.set_name(&format!("{reference}.differentiated"));
            }
        }
        let made = self.link_given(name, source)?;
        for other in [THREADS, TEAM] {
            if let Some(other) = self.into.function(other) {
                other.set_linkage(Linkage::Internal);
            }
        }
        Ok(made)
    }
}
