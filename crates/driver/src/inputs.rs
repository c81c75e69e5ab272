//! The bitcode modules of a link: numbered, and read only on demand.
//!
//! The linker (crates/cli) implements [`Inputs`] and records its queries, so that an unchanged
//! derivative is not computed again. A derivative must therefore depend on nothing but the results of this trait and the options.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// One bitcode module of the link.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// What to call it in messages: the name of the object or archive member.
    pub name: String,
    /// The bitcode: starts with `BC\xC0\xDE` and may be a borrowed part of an object file.
    pub bitcode: Cow<'a, [u8]>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a module comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Origin {
    /// An object on the link line: a codegen unit of the crate that is linked.
    Object,
    /// A translation unit of C or C++: unoptimised bitcode, whose machine code is made elsewhere.
    Unit,
    /// A member of an rlib: a codegen unit of a dependency.
    Member {
        /// The rlib.
        archive: PathBuf,
    },
    /// The `.llvmbc` section of a member of the standard library's rlibs. Its machine code is linked in any case.
    Std {
        /// The rlib.
        archive: PathBuf,
    },
}

/// All modules of a link, by index.
pub trait Inputs {
    /// The modules that call `__ferrozyme_request` or an entry point of Enzyme's: each must come back in `Output::rewritten`.
    fn requesting(&self) -> Vec<usize>;

    /// The modules with registrations: symbols that contain `__FERROZYME_RULE` or `__FERROZYME_INACTIVE`.
    fn registering(&self) -> Vec<usize>;

    /// The modules of the program that hold bitcode: all that the linker may take but the standard library.
    fn program(&self) -> Vec<usize>;

    /// A module's bitcode.
    ///
    /// # Errors
    /// If it cannot be read; the text says why.
    fn get(&self, index: usize) -> Result<Input<'_>, String>;

    /// The module that defines a symbol for others: the first in the order of the link line. Local symbols are not found.
    fn defining(&self, symbol: &str) -> Option<usize>;

    /// What tells a module from all others, also in other links where it takes part.
    fn identity(&self, index: usize) -> String {
        index.to_string()
    }

    /// Is told what is done next, for users who wait.
    fn progress(&self, _step: &str) {}
}
