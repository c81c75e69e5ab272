//! The names of Enzyme's convention: entry points (any symbol that contains such a name) and markers.

use super::hints::is_hint;
use crate::report::Diagnostic;
use crate::requests::location_of;
use crate::trace::trace;
use ferrozyme_llvm::{Context, Module, Value, ValueKind};
use ferrozyme_refusal::{C, Refusal};

/// What an entry point asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Entry {
    /// Reverse mode in one call.
    Reverse,
    /// Forward mode.
    Forward,
    /// The forward sweep of reverse mode, which gives a tape.
    Augmented,
    /// The reverse sweep, which takes it.
    SplitReverse,
    /// The size of the tape in memory that the caller gives.
    TapeSize,
    /// The function itself, compiled as a derivative is.
    Accelerate,
    /// The function itself, several times.
    Batch,
    /// A loop over a function, as often as is said.
    CheckpointFor,
    /// A loop over a function, as long as it says so.
    CheckpointWhile,
    /// The same, to a fixed point.
    FixedPoint,
    /// What the shadow of a function's address is to be. Derivatives find functions by their addresses, so that it is the address.
    Table,
    /// A set of shadows of global variables.
    Context,
    /// The shadow of a global variable in one.
    Shadow,
    /// Zeros in all of them.
    ZeroShadows,
}

/// The entry points by the name that their symbols contain.
const ENTRIES: &[(&str, Entry)] = &[
    ("__enzyme_autodiff", Entry::Reverse),
    ("__enzyme_fwddiff", Entry::Forward),
    ("__enzyme_augmentfwd", Entry::Augmented),
    ("__enzyme_reverse", Entry::SplitReverse),
    ("__enzyme_augmentsize", Entry::TapeSize),
    ("__enzyme_accelerate", Entry::Accelerate),
    ("__enzyme_batch", Entry::Batch),
    ("__enzyme_checkpoint_for", Entry::CheckpointFor),
    ("__enzyme_checkpoint_while", Entry::CheckpointWhile),
    ("__enzyme_fixed_point", Entry::FixedPoint),
    ("__enzyme_virtualreverse", Entry::Table),
    ("__enzyme_context", Entry::Context),
    ("__enzyme_shadow", Entry::Shadow),
    ("__enzyme_zero_shadows", Entry::ZeroShadows),
];

/// What all names of the convention contain.
pub(super) const PREFIX: &str = "__enzyme_";

impl Entry {
    /// Whether it is (a part of) reverse mode.
    pub(super) fn is_reverse(self) -> bool {
        !matches!(self, Entry::Forward | Entry::Accelerate)
    }

    /// Whether it is one of the two halves of reverse mode.
    pub(super) fn is_split(self) -> bool {
        matches!(self, Entry::Augmented | Entry::SplitReverse)
    }

    /// Whether it is a loop over a function.
    pub(super) fn is_loop(self) -> bool {
        matches!(
            self,
            Entry::CheckpointFor | Entry::CheckpointWhile | Entry::FixedPoint
        )
    }

    /// Whether it is about a function, which is its first argument.
    pub(super) fn takes_function(self) -> bool {
        !matches!(self, Entry::Context | Entry::Shadow | Entry::ZeroShadows)
    }

    /// Its name in Enzyme.
    pub(super) fn name(self) -> &'static str {
        ENTRIES
            .iter()
            .find(|(_, entry)| *entry == self)
            .map_or("", |(name, _)| name)
    }
}

/// Whether a module calls entry points.
pub(crate) fn has_requests(module: Module<'_>) -> bool {
    module.functions().any(|function| {
        let name = function.name();
        function.is_declaration() && name.contains(PREFIX) && !is_hint(&name) && function.is_used()
    })
}

/// The calls of entry points in a module, as far as they are direct.
pub(super) fn entry_calls(module: Module<'_>) -> Vec<(Entry, Value<'_>)> {
    let mut calls = Vec::new();
    for function in module.functions().filter(|one| one.is_declaration()) {
        let name = function.name();
        let Some((_, entry)) = ENTRIES.iter().find(|(entry, _)| name.contains(entry)) else {
            continue;
        };
        calls.extend(
            function
                .users()
                .into_iter()
                .filter(|user| is_call_of(*user, function))
                .map(|user| (*entry, user)),
        );
    }
    calls
}

/// The name that a symbol goes on with.
fn name_at(symbol: &str) -> &str {
    let end = symbol.find(|c: char| !c.is_ascii_lowercase() && c != '_');
    symbol[..end.unwrap_or(symbol.len())].trim_end_matches('_')
}

/// What is done with entry points besides calling them, and calls of those that there are none of here.
pub(super) fn misuses<'c>(context: &'c Context, module: Module<'c>) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for function in module.functions().filter(|one| one.is_declaration()) {
        let name = function.name();
        if is_hint(&name) {
            continue;
        }
        let known = ENTRIES.iter().any(|(entry, _)| name.contains(entry));
        let unknown = (!known)
            .then(|| name.find(PREFIX))
            .flatten()
            .map(|start| name_at(&name[start..]));
        for user in function.users() {
            let location = || match user.is_instruction() {
                true => location_of(context, user),
                false => None,
            };
            let refusal = match unknown {
                Some(unknown) => Refusal::UnknownEntry {
                    name: unknown.to_owned(),
                },
                None if known && !is_call_of(user, function) => {
                    Refusal::AddressOfEntry { name: name.clone() }
                }
                None => continue,
            };
            problems.push(Diagnostic::refused_at(location(), &refusal, &C));
        }
    }
    problems
}

fn is_call_of(user: Value<'_>, function: Value<'_>) -> bool {
    user.is_instruction() && user.is_call() && user.called() == function
}

/// What a marker says of the argument behind it, or of the whole call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Marker {
    /// The argument has no derivative.
    Const,
    /// Its gradient is returned.
    Out,
    /// A shadow comes behind it.
    Dup { needed: bool, strided: bool },
    /// How many shadows there are: a number follows.
    Width,
    /// All shadows stand behind all arguments.
    Interleave,
    /// The result of the function has no derivative.
    ConstReturn,
    /// The result of the function has one.
    ActiveReturn,
    /// The result of the function comes back too.
    PrimalReturn,
    /// It does not come back.
    NoReturn,
    /// The argument behind it is given by its address: its size follows.
    ByReference,
    /// How large the caller's memory for the tape is: a number follows.
    Allocated,
    /// The caller's memory for the tape follows.
    Tape,
    /// The tape is not released.
    KeepTape,
    /// A set of shadows of global variables follows.
    Context,
    /// Nothing that has to be done differently here.
    Hint,
    /// A value for each of several calls follows.
    Vector,
    /// A value for all of several calls follows.
    Scalar,
    /// A distance follows, and an address for the first of several calls.
    Buffer,
}

const MARKERS: &[(&str, Marker)] = &[
    ("enzyme_const", Marker::Const),
    ("enzyme_out", Marker::Out),
    (
        "enzyme_dup",
        Marker::Dup {
            needed: true,
            strided: false,
        },
    ),
    (
        "enzyme_dupnoneed",
        Marker::Dup {
            needed: false,
            strided: false,
        },
    ),
    (
        "enzyme_dupv",
        Marker::Dup {
            needed: true,
            strided: true,
        },
    ),
    (
        "enzyme_dupnoneedv",
        Marker::Dup {
            needed: false,
            strided: true,
        },
    ),
    ("enzyme_width", Marker::Width),
    ("enzyme_byref", Marker::ByReference),
    ("enzyme_interleave", Marker::Interleave),
    ("enzyme_const_return", Marker::ConstReturn),
    ("enzyme_active_return", Marker::ActiveReturn),
    ("enzyme_dup_return", Marker::ActiveReturn),
    ("enzyme_primal_return", Marker::PrimalReturn),
    ("enzyme_noret", Marker::NoReturn),
    // Which values are active is decided before the program runs.
    ("enzyme_nofree", Marker::KeepTape),
    ("enzyme_allocated", Marker::Allocated),
    ("enzyme_tape", Marker::Tape),
    ("enzyme_context", Marker::Context),
    ("enzyme_runtime_activity", Marker::Hint),
    ("enzyme_strong_zero", Marker::Hint),
    ("enzyme_not_overwritten", Marker::Hint),
    ("enzyme_nocache", Marker::Hint),
    ("enzyme_vector", Marker::Vector),
    ("enzyme_scalar", Marker::Scalar),
    ("enzyme_buffer", Marker::Buffer),
];

/// The marker that an argument of a call is, if it is one; the name if it only looks like one.
pub(super) fn marker(argument: Value<'_>) -> Option<Result<Marker, String>> {
    let traced = trace(argument);
    let global = match traced.kind() {
        ValueKind::GlobalVariable => traced,
        _ if traced.is_instruction() && traced.is(ferrozyme_llvm::Opcode::Load) => {
            traced.operand(0)
        }
        _ => return None,
    };
    if global.kind() != ValueKind::GlobalVariable {
        return None;
    }
    let name = global.name();
    if !name.starts_with("enzyme_") {
        return None;
    }
    let known = MARKERS.iter().find(|(known, _)| *known == name);
    Some(known.map(|(_, marker)| *marker).ok_or(name))
}
