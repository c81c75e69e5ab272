//! A module: functions, globals, derivative rules, and the table of source locations.

use crate::facts::Alignment;
use crate::function::Function;
use cranelift_entity::{PrimaryMap, entity_impl};
use rustc_hash::FxHashMap;

/// A function of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u32);
entity_impl!(FunctionId, "fn");

/// A global of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalId(u32);
entity_impl!(GlobalId, "global");

/// A place in the source, as the module's table lists it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(u32);
entity_impl!(Location, "loc");

/// A place in the source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LocationData {
    /// Index into [`Module::files`].
    pub file: u32,
    /// From 1 on.
    pub line: u32,
    /// From 1 on; 0 where unknown.
    pub column: u32,
    /// Where the code was inlined to.
    pub inlined_at: Option<Location>,
}

/// Memory that lives as long as the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Global {
    /// Its name, without `@`.
    pub name: String,
    /// How many bytes it has.
    pub size: u64,
    /// What its address is a multiple of.
    pub align: Alignment,
    /// Whether it is never written.
    pub constant: bool,
    /// What it holds at the start; `None` for memory defined elsewhere. Shorter than `size`: the rest is zero.
    pub bytes: Option<Vec<u8>>,
    /// Addresses within those bytes, by offset.
    pub relocations: Vec<(u64, Symbol)>,
    /// Nothing in it carries a derivative.
    pub inactive: bool,
    /// Code outside the module may change it between two derivatives: memory that pointers in it point to then has no shadow.
    pub shared: bool,
    /// Each thread has one of its own. A function and its derivative run in one thread, so that its address is a constant to them.
    pub thread_local: bool,
    /// Where further objects begin, by ascending offset: no address in one of them is calculated from an address in another, except from that of the whole
    /// by a constant.
    pub parts: Vec<u64>,
    /// The types of its bytes.
    pub layout: Option<crate::Layout>,
}

/// Something with an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// A function.
    Function(FunctionId),
    /// A global.
    Global(GlobalId),
}

/// A derivative rule that the user gives for a function.
///
/// Each function it names takes as its last argument an `i64` whose bit `k` says that argument `k` of the primal is
/// active (bit 63 speaks for all from there on); it need not compute derivatives for the others. A rule without `augment` whose
/// reverse sweep gets pointers is refused where the memory behind them may have changed by then.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rule {
    /// Forward mode: (each argument, followed by its tangent if it is a float or pointer; mask) → (results, then the tangent of each float or pointer result).
    pub forward: Option<FunctionId>,
    /// Reverse mode, forward sweep: (each argument, pointers followed by their shadow; mask) → (results, a shadow for each pointer result, then a `ptr` to keep for the reverse sweep). Where absent, the primal is called.
    pub augment: Option<FunctionId>,
    /// Reverse mode, reverse sweep: (each argument, pointers followed by their shadow; the adjoint of each float result; the kept `ptr` if there is `augment`; mask) → (the adjoint of each float argument).
    pub reverse: Option<FunctionId>,
}

/// A module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// All functions.
    pub functions: PrimaryMap<FunctionId, Function>,
    /// All globals.
    pub globals: PrimaryMap<GlobalId, Global>,
    /// The rules that users gave.
    pub rules: FxHashMap<FunctionId, Rule>,
    /// Names of source files.
    pub files: Vec<String>,
    /// All source locations.
    pub locations: PrimaryMap<Location, LocationData>,
    location_ids: FxHashMap<LocationData, Location>,
}

impl Module {
    /// An empty module.
    pub fn new() -> Module {
        Module::default()
    }

    /// The function of this name.
    pub fn function_named(&self, name: &str) -> Option<FunctionId> {
        self.functions
            .iter()
            .find(|(_, function)| function.name == name)
            .map(|(id, _)| id)
    }

    /// The global of this name.
    pub fn global_named(&self, name: &str) -> Option<GlobalId> {
        self.globals
            .iter()
            .find(|(_, global)| global.name == name)
            .map(|(id, _)| id)
    }

    /// The name itself if nothing has it yet, otherwise with the first free number behind it.
    pub fn fresh_name(&self, wanted: &str) -> String {
        let taken =
            |name: &str| self.function_named(name).is_some() || self.global_named(name).is_some();
        if !taken(wanted) {
            return wanted.to_owned();
        }
        (1..)
            .map(|number| format!("{wanted}.{number}"))
            .find(|name| !taken(name))
            .expect("some number is free")
    }

    /// The id of a source location.
    pub fn location(&mut self, data: LocationData) -> Location {
        if let Some(&location) = self.location_ids.get(&data) {
            return location;
        }
        let location = self.locations.push(data.clone());
        self.location_ids.insert(data, location);
        location
    }

    /// A location for people: `file:line:column`.
    pub fn describe_location(&self, location: Location) -> String {
        let data = &self.locations[location];
        let file = self
            .files
            .get(data.file as usize)
            .map_or("<unknown>", String::as_str);
        format!("{file}:{}:{}", data.line, data.column)
    }
}
