//! Turns refusals into diagnostics for the author of the program: in terms of the source language, at a line of the author's own code.
//!
//! An error is found in code that was optimised and inlined, so its place is a chain: a line of the standard library, inlined to a line of some
//! crate, inlined to a line of the user. The innermost line of the user is shown, the library's is a note.

use crate::locals::own_name;
use crate::report::{Diagnostic, Frame, Location};
use crate::requests::{FoundRequest, Mode};
use ferrozyme_diff as diff;
use ferrozyme_import::ImportError;
use ferrozyme_ir::{self as ir, Module, Opcode};
use ferrozyme_llvm::{Context, SourcePlace, Value};
use ferrozyme_refusal::{Argument, Refusal, Words};
use std::collections::{HashMap, HashSet};

/// Why functions that are only declared in the Loop IR have no derivative, by name.
#[derive(Default)]
pub(crate) struct Reasons {
    /// Those with a body that could not be imported.
    pub(crate) bodies: HashMap<String, ImportError>,
    /// Those that were made for instructions which the Loop IR has no word for.
    pub(crate) instructions: HashMap<String, Refusal>,
}

/// What is said of an error of the differentiator.
pub(crate) fn describe_refusal(
    module: &Module,
    request: &FoundRequest,
    reasons: &Reasons,
    error: &diff::Error,
) -> Diagnostic {
    let speaker = Speaker { request };
    // Of a function that was called, the importer may know why it has no derivative.
    let reason = error.callee().and_then(|callee| reasons.bodies.get(callee));
    let mut places = reason.map_or_else(Vec::new, |reason| locations(&reason.places));
    places.extend(places_of(module, error.place()));
    let refusal = match reason {
        Some(reason) => of_import(reason),
        None => speaker.refine(module, reasons, error, &places),
    };
    let mut chain: Vec<Frame> = Vec::new();
    for caller in &error.chain {
        chain.push(Frame {
            function: speaker.name(&caller.function),
            location: shown_place(module, caller.place, request),
        });
    }
    let found = reason.map(|reason| &reason.function);
    let functions = [Some(&error.function), found];
    chain.extend(functions.into_iter().flatten().map(|name| Frame {
        function: speaker.name(name),
        location: None,
    }));
    let callers = chain
        .iter()
        .rev()
        .filter_map(|frame| frame.location.clone());
    let location = choose_outside(&places, callers, Some(request));
    let mut notes = notes_of_places(&places, location.as_ref());
    notes.push(speaker.purpose());
    // What the importer says is about another place than the call, and who calls the library does not show what it does.
    let site = error.site.as_ref().filter(|_| reason.is_none());
    let construct = site.filter(|_| location.as_ref().is_some_and(|at| places.contains(at)));
    Diagnostic {
        construct: construct.map(|site| label_of(site.opcode).to_owned()),
        location,
        chain,
        notes,
        ..speaker.say(&refusal)
    }
}

/// What is said of a root that could not be imported.
pub(crate) fn describe_import_error(requests: &[FoundRequest], error: &ImportError) -> Diagnostic {
    let request = requests
        .iter()
        .find(|request| request.root == error.function);
    // What is imported for rules is nobody's root.
    let speaker = Speaker {
        request: request
            .or(requests.first())
            .expect("nothing is imported without a request"),
    };
    let places = locations(&error.places);
    let location = choose_outside(&places, std::iter::empty(), request);
    let mut notes = notes_of_places(&places, location.as_ref());
    notes.extend(request.map(|_| speaker.purpose()));
    Diagnostic {
        location,
        chain: vec![Frame {
            function: speaker.name(&error.function),
            location: None,
        }],
        notes,
        ..speaker.say(&of_import(error))
    }
}

/// What is said of a request itself.
pub(crate) fn say(request: &FoundRequest, refusal: &Refusal) -> Diagnostic {
    Speaker { request }.say(refusal)
}

/// Threads show as what their start is made of.
fn of_import(error: &ImportError) -> Refusal {
    match error.places.iter().any(|place| is_of_threads(&place.file)) {
        true => Refusal::Thread,
        false => error.refusal.clone(),
    }
}

/// Whether a file is one of those that start threads and wait for them. What each thread has for itself is another matter.
fn is_of_threads(file: &str) -> bool {
    // Jobs of rayon, and the queues that they wait in.
    if ["/rayon-core-", "/crossbeam-deque-"]
        .iter()
        .any(|package| file.contains(package))
    {
        return true;
    }
    let others = ["local.rs", "current.rs", "id.rs"];
    let name = file.split_once("std/src/thread/").map(|(_, name)| name);
    name.is_some_and(|name| !others.contains(&name))
}

/// Whether a refusal is that nobody knows what memory holds.
fn is_about_layout(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::UnknownLayout
            | Refusal::UnknownBytes { .. }
            | Refusal::MixedFloats
            | Refusal::MixedCopy
            | Refusal::UnionOfCaller
            | Refusal::UnionFilled
            | Refusal::BitCast { .. }
            | Refusal::LostShadow
            | Refusal::ConstantIntoUnion
    )
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

/// Speaks to who made a request, in their language.
struct Speaker<'a> {
    request: &'a FoundRequest,
}

impl Speaker<'_> {
    fn say(&self, refusal: &Refusal) -> Diagnostic {
        let refused = self.with_words(|words| Diagnostic::refused(refusal, words));
        match self.request.mode {
            Mode::Primal => Diagnostic {
                remedy: Some(self.request.language().terms.not_accelerated.to_owned()),
                ..refused
            },
            Mode::Forward | Mode::Reverse => refused,
        }
    }

    fn with_words<T>(&self, then: impl FnOnce(&Words<'_>) -> T) -> T {
        then(&Words {
            terms: self.request.language().terms,
            path_of: &|symbol| self.name(symbol),
        })
    }

    /// A refusal in terms of the program: what the differentiator sees is what optimised code is made of.
    fn refine(
        &self,
        module: &Module,
        reasons: &Reasons,
        error: &diff::Error,
        places: &[Location],
    ) -> Refusal {
        let function = || error.function.clone();
        if places.iter().any(|place| is_of_threads(&place.file)) {
            return Refusal::Thread;
        }
        let callee = error.callee();
        let moved = callee.and_then(|callee| reasons.instructions.get(callee));
        match (moved, &error.refusal) {
            (Some(refusal), _) => refusal.clone(),
            (None, Refusal::ConstantArgument { argument }) => match is_of_library(self.request) {
                true => Refusal::CapturedMemory,
                false => Refusal::ConstantArgument {
                    argument: self.argument(error, argument),
                },
            },
            (None, refusal)
                if is_about_layout(refusal) && works_on_maps(module, &error.function) =>
            {
                Refusal::Map {
                    function: function(),
                }
            }
            (None, refusal) => refusal.clone(),
        }
    }

    /// An argument as its author calls it; that of a callee by its number.
    fn argument(&self, error: &diff::Error, argument: &Argument) -> Argument {
        let Argument::Index(index) = *argument else {
            return argument.clone();
        };
        let interface = &self.request.interface;
        let own = (error.function == self.request.root)
            .then(|| interface.argument(index as usize, &error.function));
        own.flatten().unwrap_or_else(|| Argument::Number {
            number: index as usize + 1,
            function: error.function.clone(),
        })
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
            false if self.request.mode == Mode::Primal => format!(
                "needed to accelerate {}{}",
                self.quote(&self.request.primal_name),
                at.unwrap_or_default(),
            ),
            false => format!(
                "needed for the derivative {} of {}{}",
                self.quote(&self.request.derivative_name),
                self.quote(&self.request.primal_name),
                at.unwrap_or_default(),
            ),
        }
    }

    /// A function as its author calls it.
    fn name(&self, symbol: &str) -> String {
        if symbol != self.request.root {
            let front_end = self.request.interface.front_end();
            return front_end.name_of(own_name(symbol));
        }
        match is_of_library(self.request) {
            true if self.request.given.is_none() => "the function given to Ferrozyme".to_owned(),
            _ => self.request.shown_name().to_owned(),
        }
    }

    /// A name as the compiler of the language quotes it.
    fn quote(&self, name: &str) -> String {
        self.with_words(|words| words.quote(name))
    }
}

/// Whether a request is made by the library itself, for functions that it was given.
fn is_of_library(request: &FoundRequest) -> bool {
    request.is_of_interface()
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
            file: place.path(),
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

/// The same, but rather the innermost caller outside of the toolchain, or the request, than a place in the toolchain.
fn choose_outside(
    places: &[Location],
    mut callers: impl Iterator<Item = Location>,
    request: Option<&FoundRequest>,
) -> Option<Location> {
    let is_outside = |place: &Location| origin_of(&place.file, request) != Origin::Toolchain;
    let chosen = choose(places, request).map(|index| places[index].clone());
    chosen
        .clone()
        .filter(is_outside)
        .or_else(|| callers.find(is_outside))
        .or_else(|| request.and_then(FoundRequest::location))
        .or(chosen)
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
        .and_then(|request| request.written_at.as_ref())
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
fn notes_of_places(places: &[Location], shown: Option<&Location>) -> Vec<String> {
    match places.first() {
        Some(innermost) if shown.is_some_and(|at| at != innermost) && innermost.line > 0 => {
            vec![format!(
                "the code itself is at {}:{}",
                shorten(&innermost.file),
                innermost.line
            )]
        }
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
