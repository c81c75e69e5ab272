//! Writes one function: keeps the place, the scope, and count of what was spent.

use super::helper::Helper;
use super::scope::{Array, Element, Float, Int, Mark, Owned, Scope};
use crate::feature::{Feature, Features};
use crate::profile::Profile;
use crate::random::Random;
use ferrozyme_ir::{Builder, Flags, Function, Location, MemoryEffect, Module, Region, Type, Value};

/// How often the innermost operation of a function may run, at most.
const WORK: u64 = 400;

/// What all functions of a program share.
pub(crate) struct Shared<'p> {
    pub(crate) random: Random,
    pub(crate) profile: &'p Profile,
    pub(crate) features: Features,
    pub(crate) module: Module,
    /// Functions that may be called.
    pub(crate) helpers: Vec<Helper>,
    /// Whether single precision is allowed here.
    pub(crate) inexact: bool,
    /// Whether functions with kinks and steps are allowed here.
    pub(crate) kinks: bool,
    /// What flags float operations have.
    pub(crate) flags: Flags,
    /// Whether operations have source locations and values names.
    pub(crate) named: bool,
    pub(crate) objects: u32,
    pub(crate) indices: Vec<(ferrozyme_ir::GlobalId, i64, i64)>,
    pub(crate) tables: Vec<(ferrozyme_ir::GlobalId, i64)>,
    /// A global array of doubles that may be written.
    pub(crate) scratch: Option<(ferrozyme_ir::GlobalId, i64)>,
    /// A global integer that may be written.
    pub(crate) counter: Option<ferrozyme_ir::GlobalId>,
}

impl Shared<'_> {
    /// A number for a new object in memory.
    pub(crate) fn new_object(&mut self) -> u32 {
        self.objects += 1;
        self.objects
    }
}

/// A function being written.
pub(crate) struct Writer<'s, 'p> {
    pub(crate) shared: &'s mut Shared<'p>,
    pub(crate) function: Function,
    pub(crate) region: Region,
    pub(crate) scope: Scope,
    /// How many regions are around this place.
    pub(crate) depth: u32,
    /// How many loops are around this place.
    pub(crate) loops: u32,
    /// How often this place runs at most.
    pub(crate) weight: u64,
    /// About how many operations one call of the function runs at most.
    pub(crate) cost: u64,
    /// How many operations the function may have before statements stop.
    pub(crate) limit: usize,
    /// Whether the function promises to write nothing that its caller sees.
    pub(crate) reads_only: bool,
    /// How many of the things to be released belong to regions around this one.
    pub(crate) region_owned: usize,
    location: Option<Location>,
}

impl<'s, 'p> Writer<'s, 'p> {
    /// Starts at the body of a function.
    pub(crate) fn new(shared: &'s mut Shared<'p>, function: Function) -> Writer<'s, 'p> {
        let region = function.body();
        let reads_only = function.facts.memory != MemoryEffect::Any;
        Writer {
            shared,
            function,
            region,
            scope: Scope::default(),
            depth: 0,
            loops: 0,
            weight: 1,
            cost: 0,
            limit: 0,
            reads_only,
            region_owned: 0,
            location: None,
        }
    }

    /// A builder at the current place.
    pub(crate) fn b(&mut self) -> Builder<'_> {
        self.cost += self.weight;
        let mut builder = Builder::new(&mut self.function, self.region);
        builder.location = self.location;
        builder.float_flags = self.shared.flags;
        builder
    }

    /// The random numbers.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.shared.random
    }

    /// Notes that the program has a feature.
    pub(crate) fn note(&mut self, feature: Feature) {
        self.shared.features.note(feature);
    }

    /// An `i64` constant.
    pub(crate) fn int(&mut self, value: i64) -> Value {
        self.function.int(Type::I64, i128::from(value))
    }

    /// An `f64` constant.
    pub(crate) fn double(&mut self, value: f64) -> Value {
        self.function.float(Type::F64, value)
    }

    /// A constant with few digits, so that programs can be read.
    pub(crate) fn short_double(&mut self, min: f64, max: f64) -> Value {
        let value = self.random().float(min, max);
        let rounded = (value * 8.0).round() / 8.0;
        self.double(rounded)
    }

    /// Names a value, sometimes.
    pub(crate) fn name(&mut self, value: Value, name: &str) {
        if self.shared.named && !self.function.is_constant(value) {
            self.function.set_name(value, name);
        }
    }

    /// Moves on in the imagined source text.
    pub(crate) fn next_line(&mut self) {
        if !self.shared.named {
            return;
        }
        let line = self.function.ops.len() as u32 + 1;
        let column = self.random().below(40) as u32;
        self.location = Some(self.shared.module.location(ferrozyme_ir::LocationData {
            file: 0,
            line,
            column,
            inlined_at: if line.is_multiple_of(5) {
                self.location
            } else {
                None
            },
        }));
    }

    /// Whether this place may run `trips` times as often.
    pub(crate) fn affords(&self, trips: u64) -> bool {
        self.weight * trips <= WORK
    }

    /// Enters a region: what comes into scope from here on is gone at [`Writer::leave`].
    pub(crate) fn enter(&mut self, region: Region) -> (Region, Mark) {
        self.depth += 1;
        let outer = std::mem::replace(&mut self.region, region);
        let mut mark = self.scope.mark();
        mark.around = std::mem::replace(&mut self.region_owned, self.scope.owned.len());
        (outer, mark)
    }

    /// Releases the region's memory. Its terminator must follow, after [`Writer::leave`].
    pub(crate) fn release(&mut self, mark: Mark) {
        self.region_owned = mark.around;
        let owned = self.scope.leave(mark);
        self.release_each(owned);
    }

    /// Releases all memory that is still there.
    pub(crate) fn release_all(&mut self) {
        let owned = std::mem::take(&mut self.scope.owned);
        self.release_each(owned);
    }

    fn release_each(&mut self, owned: Vec<Owned>) {
        for owned in owned {
            match owned {
                Owned::Memory(pointer) => {
                    self.b().free(pointer);
                }
                Owned::Contents { slot, shape, by } => self.drop_owner(slot, shape, by),
            }
        }
    }

    /// Goes back to the region around.
    pub(crate) fn leave(&mut self, outer: Region) {
        self.depth -= 1;
        self.region = outer;
    }

    /// Adds a float to the scope.
    pub(crate) fn add_float(&mut self, value: Value, bound: f64) -> Float {
        let float = Float { value, bound };
        self.scope.floats.push(float);
        float
    }

    /// Adds an integer to the scope.
    pub(crate) fn add_int(&mut self, value: Value, min: i64, max: i64) -> Int {
        let int = Int { value, min, max };
        self.scope.ints.push(int);
        int
    }

    /// One of the arrays in scope that satisfies a condition, preferring late ones a little.
    pub(crate) fn pick_array(&mut self, wanted: impl Fn(&Array) -> bool) -> Option<Array> {
        let count = self
            .scope
            .arrays
            .iter()
            .filter(|array| wanted(array))
            .count();
        if count == 0 {
            return None;
        }
        let first = self.random().below(count);
        let second = self.random().below(count);
        let position = first.max(second);
        self.scope
            .arrays
            .iter()
            .filter(|array| wanted(array))
            .nth(position)
            .copied()
    }

    /// An array of doubles that may be written.
    pub(crate) fn pick_writable(&mut self) -> Option<Array> {
        self.pick_array(|array| array.element == Element::Double && array.writable)
    }

    /// An array of doubles.
    pub(crate) fn pick_doubles(&mut self) -> Option<Array> {
        self.pick_array(|array| array.element == Element::Double)
    }
}
