//! Turns the reasons why a program cannot be differentiated into what its author reads: in words of the source language, at a line of their own.
//!
//! An error is found in code that was optimised and inlined, so its place is a chain: a line of the standard library, inlined to a line of some
//! crate, inlined to a line of the user. The innermost line of the user is shown, the library's is a note.

use crate::descriptor::Slot;
use crate::enzyme::{LISTED, LOCAL_MARK};
use crate::gather::own_name;
use crate::opaque::demangle;
use crate::passing::slot_of;
use crate::report::{Diagnostic, Frame, Location};
use crate::requests::{FoundRequest, Interface};
use crate::root::root_symbol;
use ferrozyme_diff as diff;
use ferrozyme_ir::{self as ir, Module, Opcode};
use ferrozyme_llvm::import::{ImportError, MovedOut};
use ferrozyme_llvm::{Context, SourcePlace, Value};
use std::collections::{HashMap, HashSet};

/// Why functions with a body are only declared in the Loop IR, by name.
pub(crate) type Reasons = HashMap<String, ImportError>;

/// What is said of an error of the differentiator.
pub(crate) fn describe_refusal(
    module: &Module,
    request: &FoundRequest,
    reasons: &Reasons,
    error: &diff::Error,
) -> Diagnostic {
    let wording = Wording { request };
    if let Some(reason) = reason_of(reasons, error) {
        return wording.of_import(reason, error, module);
    }
    let places = places_of(module, error.place);
    let moved = error.callee.as_deref().and_then(MovedOut::of_name);
    let (message, remedy) = match moved {
        _ if places.iter().any(|place| is_of_threads(&place.file)) => (
            format!(
                "{} has no derivative: {STARTS_THREAD}",
                wording.quote(&wording.name(&error.function))
            ),
            REMEDY_FOR_THREADS.to_owned(),
        ),
        Some(kind) => (
            format!("derivatives cannot go through {kind}"),
            match request.interface {
                Interface::Slots(_) => remedy_of(kind).to_owned(),
                Interface::Values(_) => remedy_in_c(kind).to_owned(),
            },
        ),
        None if let Some(slot) = wording.constant_argument(error) => wording.of_argument(slot),
        None if let Some(number) = wording.constant_number(error) => (
            format!(
                "derivatives would flow through the memory of argument {number} of {}, which is 'enzyme_const'",
                wording.quote(request.primal_name())
            ),
            "use 'enzyme_dup' and give a shadow, or keep values that carry derivatives out of its memory".to_owned(),
        ),
        None if error.argument.is_some() && matches!(request.interface, Interface::Slots(_)) => (
            format!(
                "derivatives would flow through memory that {} takes for a constant",
                wording.quote(&wording.name(&error.function))
            ),
            "keep values that carry derivatives out of that memory; where derivatives are differentiated again, it may be what the inner one works with: write that one by hand (`#[custom_derivative]`)"
                .to_owned(),
        ),
        None => (
            wording.in_words(&wording.in_language(&error.message)),
            match is_about_memory(error) && works_on_maps(module, &error.function) {
                true => REMEDY_FOR_MAPS.to_owned(),
                false => wording.remedy(error),
            },
        ),
    };
    Diagnostic {
        construct: error.opcode.map(|opcode| label_of(opcode).to_owned()),
        remedy: Some(remedy),
        ..wording.place(message, &places, module, error)
    }
}

/// What to do about maps, whose nodes and tables hold keys, values and more at places that depend on how many there are.
const REMEDY_FOR_MAPS: &str = "keep values that carry derivatives in a `Vec`, and only their positions in the `HashMap` or `BTreeMap`: what the memory of maps holds where cannot be told";

/// Whether an error is about what is in memory: found where it is moved, or where it is taken for a float.
fn is_about_memory(error: &diff::Error) -> bool {
    let opcodes = [
        Opcode::Load,
        Opcode::Store,
        Opcode::Copy,
        Opcode::Move,
        Opcode::Bitcast,
    ];
    error.opcode.is_none_or(|opcode| opcodes.contains(&opcode))
}

/// Whether a function has code of the library's maps in it.
fn works_on_maps(module: &Module, name: &str) -> bool {
    let Some(function) = module.function_named(name) else {
        return false;
    };
    let mut seen = HashSet::new();
    let ops = module.functions[function].ops.values();
    let places = ops.filter_map(|data| data.location);
    places.filter(|&place| seen.insert(place)).any(|place| {
        places_of(module, Some(place)).iter().any(|place| {
            place.file.contains("/hashbrown-") || place.file.contains("/collections/btree/")
        })
    })
}

/// What is said of a root that could not be imported.
pub(crate) fn describe_import_error(
    request: Option<&FoundRequest>,
    error: &ImportError,
) -> Diagnostic {
    let places = locations(&error.places);
    let own = choose(&places, request);
    let (mut what, remedy) = explain_reason(error);
    let name = match request {
        Some(request) => {
            let wording = Wording { request };
            what = wording.in_language(&what);
            wording.quote(&wording.name(&error.function))
        }
        None => format!("`{}`", demangle(&error.function)),
    };
    let mut notes = notes_of_places(&places, own);
    notes.extend(request.map(|request| Wording { request }.purpose()));
    Diagnostic {
        location: own.map(|index| places[index].clone()),
        remedy,
        notes,
        ..Diagnostic::error(format!("{name} has no derivative: {what}"))
    }
}

/// What is not understood, and what can be done. Threads show as what their start is made of.
fn explain_reason(error: &ImportError) -> (String, Option<String>) {
    let of_threads = |place: &SourcePlace| is_of_threads(&place.file);
    match error.places.iter().any(of_threads) {
        true => (
            STARTS_THREAD.to_owned(),
            Some(REMEDY_FOR_THREADS.to_owned()),
        ),
        false => (error.reason.clone(), error.remedy.clone()),
    }
}

const STARTS_THREAD: &str =
    "it starts a thread, which is not supported inside of what is differentiated";

const REMEDY_FOR_THREADS: &str =
    "differentiate what each thread computes, and add up the gradients";

/// Whether a file is one of those that start threads and wait for them. What each thread has for itself is another matter.
fn is_of_threads(file: &str) -> bool {
    let others = ["local.rs", "current.rs", "id.rs"];
    let name = file.split_once("std/src/thread/").map(|(_, name)| name);
    name.is_some_and(|name| !others.contains(&name))
}

/// What users of Rust write for what the differentiator speaks of.
const RUST_TERMS: [(&str, &str); 3] = [
    ("describe the type", "`#[derive(Differentiable)]`"),
    ("rule for", "`#[custom_derivative]`"),
    ("inactive", "`#[inactive]`"),
];

/// What users of Rust read in the place of words of the Loop IR.
const IN_RUST: [(&str, &str); 2] = [
    (
        "declare the argument that the pointer comes from `dup`",
        "make the argument that the pointer comes from `Duplicated` (in forward mode `Dual`)",
    ),
    ("declare the result `const`", "declare the result `Const`"),
];

fn replace_all(words: &[(&str, &str)], text: &str) -> String {
    let replace = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    words.iter().fold(text.to_owned(), replace)
}

/// What users of C read in the place of what is said to those of Rust.
const IN_C: [(&str, &str); 9] = [
    (
        "of different types in memory of their own",
        "of different types in memory of their own (members of a union share theirs)",
    ),
    (
        "pass a reference to what holds it, or mark the function `#[inline(always)]`",
        "pass the union by its address, or mark the function '__attribute__((always_inline))'",
    ),
    (
        "keep the two apart, in fields of their own",
        "keep the two apart: a struct in the place of a union",
    ),
    (
        "declare the argument `Const`",
        "mark the argument 'enzyme_const'",
    ),
    ("declare the result `const`", "give 'enzyme_const_return'"),
    (
        "declare the argument that the pointer comes from `dup`",
        "mark the argument that the pointer comes from 'enzyme_dup'",
    ),
    (
        ", or describe the type of the argument that holds this memory",
        "",
    ),
    ("(in C: `long double`) ", "('long double') "),
    (
        "declare it inactive",
        "declare it inactive ('__enzyme_register_gradient_…', '__enzyme_inactivefn_…')",
    ),
];

struct Wording<'a> {
    request: &'a FoundRequest,
}

impl Wording<'_> {
    /// A function that was called, and of which the importer knows why it has no derivative.
    fn of_import(&self, reason: &ImportError, error: &diff::Error, module: &Module) -> Diagnostic {
        let (what, remedy) = explain_reason(reason);
        let what = self.in_language(&what);
        let name = self.quote(&self.name(&reason.function));
        let message = format!("{name} has no derivative: {what}");
        let mut places = locations(&reason.places);
        places.extend(places_of(module, error.place));
        let remedy = remedy.unwrap_or_else(|| self.remedy(error));
        Diagnostic {
            remedy: Some(remedy),
            ..self.place(message, &places, module, error)
        }
    }

    /// The argument whose memory would need a shadow and has none, if that is the problem.
    fn constant_argument(&self, error: &diff::Error) -> Option<&Slot> {
        match &self.request.interface {
            Interface::Slots(descriptor) if error.function == root_symbol(self.request) => {
                slot_of(descriptor, error.argument? as usize)
            }
            _ => None,
        }
    }

    /// The same in C: the number of the argument.
    fn constant_number(&self, error: &diff::Error) -> Option<usize> {
        match &self.request.interface {
            Interface::Values(values) if error.function == root_symbol(self.request) => {
                let parameter = values.parameters.get(error.argument? as usize);
                parameter.map(|parameter| parameter.number)
            }
            _ => None,
        }
    }

    /// What is said of an argument that is `Const` and should not be, and what can be done.
    fn of_argument(&self, slot: &Slot) -> (String, String) {
        match is_of_library(self.request) {
            true => (
                "values that carry derivatives are kept in memory that the function captures"
                    .to_owned(),
                "make that memory (`Cell`, `RefCell`, what `&mut` refers to) inside of the function, or use `#[autodiff_reverse]` and give it a shadow"
                    .to_owned(),
            ),
            false => (
                format!(
                    "derivatives would flow through memory of the argument `{}`, which is `Const`",
                    slot.name
                ),
                format!(
                    "make `{}` `Duplicated` (in forward mode `Dual`) and give it a shadow, or keep values that carry derivatives out of its memory",
                    slot.name
                ),
            ),
        }
    }

    /// A diagnostic with its place, the way to it, and what it was needed for.
    fn place(
        &self,
        message: String,
        places: &[Location],
        module: &Module,
        error: &diff::Error,
    ) -> Diagnostic {
        let own = choose(places, Some(self.request));
        let mut chain: Vec<Frame> = Vec::new();
        for caller in &error.chain {
            let places = places_of(module, caller.place);
            let own = choose(&places, Some(self.request));
            chain.push(Frame {
                function: self.name(&caller.function),
                location: own.map(|index| places[index].clone()),
            });
        }
        chain.push(Frame {
            function: self.name(&error.function),
            location: None,
        });
        let mut notes = notes_of_places(places, own);
        notes.push(self.purpose());
        Diagnostic {
            location: own
                .map(|index| places[index].clone())
                .or_else(|| self.request.location()),
            chain,
            notes,
            ..Diagnostic::error(message)
        }
    }

    fn purpose(&self) -> String {
        let at = self.request.location();
        let at = at.map(|at| format!(", requested at {}:{}", at.file, at.line));
        match is_of_library(self.request) {
            true => {
                let function = match &self.request.given {
                    Some(given) => {
                        let at = given.location.as_ref();
                        let at = at.map(|at| format!(" ({}:{})", at.file, at.line));
                        format!(" of {}{}", self.quote(&given.name), at.unwrap_or_default())
                    }
                    None => String::new(),
                };
                format!(
                    "needed for a derivative{function} by the function interface (`grad`, `jvp` and their like)"
                )
            }
            false => format!(
                "needed for the derivative {} of {}{}",
                self.quote(self.request.derivative_name()),
                self.quote(self.request.primal_name()),
                at.unwrap_or_default(),
            ),
        }
    }

    /// A function as its author calls it.
    fn name(&self, symbol: &str) -> String {
        if symbol != root_symbol(self.request) {
            let symbol = own_name(symbol);
            let symbol = symbol.split(LOCAL_MARK).next().unwrap_or(symbol);
            return demangle(symbol.trim_end_matches(LISTED));
        }
        match is_of_library(self.request) {
            true if self.request.given.is_none() => "the function given to Ferrozyme".to_owned(),
            _ => self.request.shown_name().to_owned(),
        }
    }

    /// A name as the compiler of the language quotes it.
    fn quote(&self, name: &str) -> String {
        match self.request.interface {
            Interface::Slots(_) => format!("`{name}`"),
            Interface::Values(_) => format!("'{name}'"),
        }
    }

    /// What can be done, with the words of the language for it.
    fn remedy(&self, error: &diff::Error) -> String {
        let mut remedy = self.in_words(&self.in_language(&error.remedy));
        let terms: Vec<&str> = RUST_TERMS
            .iter()
            .filter(|(phrase, _)| error.remedy.contains(phrase))
            .map(|&(_, term)| term)
            .collect();
        if matches!(self.request.interface, Interface::Slots(_)) && !terms.is_empty() {
            remedy.push_str(&format!(" ({})", terms.join(", ")));
        }
        remedy
    }

    /// What the differentiator says, in terms of the language.
    fn in_language(&self, text: &str) -> String {
        match self.request.interface {
            Interface::Slots(_) => replace_all(&IN_RUST, text),
            Interface::Values(_) => replace_all(&IN_C, text),
        }
    }

    /// Replaces `@symbol` by the path of what it names.
    fn in_words(&self, text: &str) -> String {
        let mut words = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('@') {
            let (before, symbol) = rest.split_at(start);
            let end = symbol[1..]
                .find(|c: char| !(c.is_alphanumeric() || "_$.".contains(c)))
                .map_or(symbol.len(), |end| end + 1);
            let name = symbol[1..end].trim_end_matches('.');
            words.push_str(before);
            words.push_str(&self.quote(&self.name(name)));
            rest = &symbol[1 + name.len()..];
        }
        words + rest
    }
}

/// Whether a request is made by the library itself, for functions that it was given.
fn is_of_library(request: &FoundRequest) -> bool {
    request.is_of_interface()
}

/// Why the function that an error is about is only declared, if that is known.
fn reason_of<'r>(reasons: &'r Reasons, error: &diff::Error) -> Option<&'r ImportError> {
    reasons.get(error.callee.as_deref()?)
}

fn remedy_of(kind: MovedOut) -> &'static str {
    match kind {
        MovedOut::Atomic => {
            "keep numbers that carry derivatives out of atomic variables; threads are not supported inside of what is differentiated: differentiate what each thread computes instead"
        }
        MovedOut::Volatile => "read and write such numbers plainly",
        MovedOut::LongDouble => "use 'double'",
        MovedOut::Assembly | MovedOut::Machine => {
            "write it in plain Rust, or put it into a function with `#[custom_derivative]`"
        }
        MovedOut::Variadic => {
            "call a function with fixed arguments, or put the call into a function with `#[custom_derivative]` or `#[inactive]`"
        }
    }
}

/// The same for users of C.
fn remedy_in_c(kind: MovedOut) -> &'static str {
    match kind {
        MovedOut::Atomic => {
            "keep numbers that carry derivatives out of atomic variables; outside of OpenMP's regions threads are not supported inside of what is differentiated"
        }
        MovedOut::Volatile => "read and write such numbers plainly",
        MovedOut::LongDouble => "use 'double'",
        MovedOut::Assembly | MovedOut::Machine => {
            "write it in plain C, or give the function that it stands in a derivative ('__enzyme_register_gradient_…')"
        }
        MovedOut::Variadic => {
            "call a function with fixed arguments; a function that only reads or writes text can be declared inactive ('__enzyme_inactivefn_…')"
        }
    }
}

/// What stands below the place in the source.
fn label_of(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::Load => "read here",
        Opcode::Store | Opcode::Fill => "written here",
        Opcode::Copy | Opcode::Move => "copied here",
        Opcode::Call | Opcode::CallIndirect => "called here",
        Opcode::Alloc | Opcode::Stack => "made here",
        Opcode::Return | Opcode::Yield => "handed on here",
        _ => "computed here",
    }
}

fn places_of(module: &Module, place: Option<ir::Location>) -> Vec<Location> {
    let next = |&location: &ir::Location| module.locations[location].inlined_at;
    std::iter::successors(place, next)
        .map(|location| {
            let data = &module.locations[location];
            let file = module.files.get(data.file as usize);
            Location {
                file: file.cloned().unwrap_or_else(|| "<unknown>".to_owned()),
                line: data.line,
                column: data.column,
            }
        })
        .collect()
}

/// The place of an operation that says most to the user.
pub(crate) fn shown_place(
    module: &Module,
    place: Option<ir::Location>,
    request: &FoundRequest,
) -> Option<Location> {
    let places = places_of(module, place);
    choose(&places, Some(request)).map(|index| places[index].clone())
}

fn locations(places: &[SourcePlace]) -> Vec<Location> {
    places
        .iter()
        .map(|place| Location {
            file: match place.directory.is_empty() || place.file.starts_with('/') {
                true => place.file.clone(),
                false => format!("{}/{}", place.directory, place.file),
            },
            line: place.line,
            column: place.column,
        })
        .collect()
}

/// The place of an instruction that says most to the user.
pub(crate) fn place_of<'c>(
    context: &'c Context,
    instruction: Value<'c>,
    request: &FoundRequest,
) -> Option<Location> {
    let places = locations(&instruction.source_places(context));
    let chosen = choose(&places, Some(request))?;
    places.into_iter().nth(chosen)
}

/// Which of the places says most to the user: the innermost one in code of their own, or in a dependency, or at all.
fn choose(places: &[Location], request: Option<&FoundRequest>) -> Option<usize> {
    let known = |place: &Location| place.line > 0;
    let origin = |place: &Location| origin_of(&place.file, request);
    let first = |wanted: Origin| {
        places
            .iter()
            .position(|place| known(place) && origin(place) == wanted)
    };
    first(Origin::User)
        .or_else(|| first(Origin::Dependency))
        .or_else(|| places.iter().position(known))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    User,
    Dependency,
    Toolchain,
}

/// Whether a file is a source of the standard library.
pub(crate) fn is_of_toolchain(file: &str) -> bool {
    file.contains("/rustc/") || file.contains("/rustlib/src/") || file.starts_with("library/")
}

/// Whether a file is a header of the libraries of C and C++, or what stands for them.
fn is_of_c_library(file: &str) -> bool {
    file.starts_with("/usr/include/")
        || file.contains("/include/c++/")
        || (file.contains("/ferrozyme-cc") && file.ends_with("/library.c"))
}

fn origin_of(file: &str, request: Option<&FoundRequest>) -> Origin {
    let own_library = request
        .filter(|request| is_of_library(request))
        .and_then(FoundRequest::written_at)
        .is_some_and(|at| {
            let folder = at.file.rsplit_once("/functions/");
            folder.is_some_and(|(folder, _)| file.contains(folder))
        });
    if is_of_toolchain(file) || is_of_c_library(file) {
        Origin::Toolchain
    } else if own_library || file.contains("/registry/src/") || file.contains("/git/checkouts/") {
        Origin::Dependency
    } else {
        Origin::User
    }
}

/// Where the code really is, if it was inlined to the place that is shown.
fn notes_of_places(places: &[Location], shown: Option<usize>) -> Vec<String> {
    match (shown, places.first()) {
        (Some(shown), Some(innermost)) if shown > 0 && innermost.line > 0 => vec![format!(
            "the code itself is at {}:{}",
            shorten(&innermost.file),
            innermost.line
        )],
        _ => Vec::new(),
    }
}

/// Files of the toolchain from `library/` on: what stands before it exists only where the toolchain was built.
fn shorten(file: &str) -> &str {
    match file.find("/library/") {
        Some(start) if file.contains("/rustc/") => &file[start + 1..],
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn add_sources(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).expect("sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                add_sources(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(&path).expect("a source"));
            }
        }
    }

    /// Whoever rewords a sentence of the differentiator or the importer has to reword what is replaced in it.
    #[test]
    fn what_is_replaced_is_said() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut text = String::new();
        for folder in ["diff/src", "llvm/src/import"] {
            add_sources(&crates.join(folder), &mut text);
        }
        let replaced = IN_RUST.iter().chain(&IN_C).chain(&RUST_TERMS);
        let missing: Vec<&str> = replaced
            .map(|(said, _)| *said)
            .filter(|said| !text.contains(said))
            .collect();
        assert!(missing.is_empty(), "nobody says {missing:?} any more");
    }
}
