//! Loop IR to LLVM IR.
//!
//! [`export`] defines functions of a Loop IR module in an LLVM module. Names of functions and globals resolve there first; missing ones are declared, or defined
//! from the Loop IR if it has them (with internal linkage).
//!
//! *Assumes* that the Loop IR module verifies. *Guarantees* that the LLVM module verifies, and that the functions compute what the interpreter computes, up to the
//! accuracy of the C library's mathematical functions. `undef` becomes `poison`, which behaves the same: whatever is computed from it is poison, to branch on it is undefined.
//!
//! | file | what lives there |
//! |---|---|
//! | `symbols.rs` | functions and globals by name, their attributes |
//! | `body.rs` | regions, loops, branches, values and constants |
//! | `operation.rs` | integers, casts, vectors, comparisons |
//! | `math.rs` | floating-point functions: intrinsics or C's library |
//! | `memory.rs` | loads, stores, allocation |
//! | `sums.rs` | which additions may be reordered |
//! | `innermost.rs` | which loops may be vectorised |
//! | `independent.rs` | loops without dependences between iterations |
//! | `call.rs` | calls and traps |
//! | `threads.rs`, `threads/` | the functions through which generated code runs on several threads |
//! | `without_library.rs` | functions of floats where there is no C library |
//! | `processor.rs`, `processor.ll` | functions for a higher level of the processor; which level it has |
//! | `vectorisable.fz`, `vectorisable/` | mathematical functions for loops that are vectorised, as Loop IR |
//! | `polygamma.fz` | polygamma functions, which no library has, as Loop IR |

mod body;
mod call;
mod cleanup;
mod independent;
mod innermost;
mod math;
mod memory;
mod operation;
mod processor;
mod sums;
mod symbols;
mod threads;
mod without_library;

use ferrozyme_ir as ir;
use rustc_hash::FxHashMap;
use thiserror::Error;
pub use threads::Team;

pub use math::own_functions;

use ferrozyme_convention::allocation::Families;
use ferrozyme_llvm::{Builder, Context, Module, Value};
pub use math::FOR_WIDE_VECTORS;

/// How to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions<'c> {
    /// Floating-point permissions that all operations get besides their own: derivatives may reorder sums.
    pub relaxed: ir::Flags,
    /// Sums are added up in the order of the program, and all mathematical functions are C's. Otherwise loops may be vectorised: additions of sums that nobody looks at before they are complete may be reordered, so that loops over them vectorise.
    pub strict: bool,
    /// A function whose processor attributes (`target-cpu`, `target-features`, …) the new ones get, so that they can be inlined into each other.
    pub like: Option<Value<'c>>,
    /// There is no C library where the functions will run: mathematical functions are the exporter's own, and what it has not is an error.
    pub no_library: bool,
    /// The highest level that the function [`ir::PROCESSOR_LEVEL`] returns whatever the processor has, for tests: 0 (the baseline), 2, 3 or 4.
    pub highest_level: Option<u32>,
    /// Who runs the bodies of teams ([`ir::TEAM`]).
    pub team: Team,
}

/// Why a function cannot be exported.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("cannot compile @{function}{}: {problem}", place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default())]
pub struct ExportError {
    /// The function, as the Loop IR names it.
    pub function: String,
    /// Where in the source.
    pub place: Option<String>,
    /// What the matter is, and what to do.
    pub problem: String,
}

/// Defines these functions in an LLVM module, and whatever they need that is missing there. Gives their values in the same order.
pub fn export<'c>(
    module: &ir::Module,
    functions: &[ir::FunctionId],
    into: Module<'c>,
    options: &ExportOptions<'c>,
) -> Result<Vec<Value<'c>>, ExportError> {
    let mut exporter = Exporter::new(module, into, options);
    let mut defined = Vec::new();
    for &function in functions {
        let value = exporter.function(function)?;
        if !exporter.pending.contains(&function)
            && value.is_declaration()
            && module.functions[function].body.is_some()
        {
            exporter.pending.push(function);
        }
        defined.push(value);
    }
    exporter.define_pending()?;
    Ok(defined)
}

/// What is known while functions are being exported.
pub(crate) struct Exporter<'m, 'c> {
    pub(crate) module: &'m ir::Module,
    pub(crate) into: Module<'c>,
    pub(crate) context: &'c Context,
    pub(crate) builder: Builder<'c>,
    pub(crate) options: ExportOptions<'c>,
    pub(crate) families: Families<'c>,
    functions: FxHashMap<ir::FunctionId, Value<'c>>,
    globals: FxHashMap<ir::GlobalId, Value<'c>>,
    /// Functions that are declared and will be defined.
    pending: Vec<ir::FunctionId>,
}

impl<'m, 'c> Exporter<'m, 'c> {
    fn new(
        module: &'m ir::Module,
        into: Module<'c>,
        options: &ExportOptions<'c>,
    ) -> Exporter<'m, 'c> {
        let context = into.context();
        Exporter {
            module,
            into,
            context,
            builder: context.builder(),
            options: *options,
            families: Families::of(into),
            functions: FxHashMap::default(),
            globals: FxHashMap::default(),
            pending: Vec::new(),
        }
    }

    fn define_pending(&mut self) -> Result<(), ExportError> {
        while let Some(function) = self.pending.pop() {
            body::define(self, function)?;
        }
        Ok(())
    }
}
