//! Points-to and layout analysis: which memory a pointer may point into, and the types of the bytes there.
//!
//! For one function, all memory is divided into *classes*, and each pointer belongs to one class at certain offsets (by unification
//! in the manner of Steensgaard, with offsets). Each class has a layout: which bytes are floats, pointers (to which
//! class), or integers, and after how many bytes that repeats. An integer that merely moves bytes around is traced, too: it may
//! carry a float or a pointer.
//!
//! ```text
//! func @f(%p: ptr, %n: i64) {                       class0: parameter %p, every 16 bytes from 0 on
//!   for %i: i64 = 0 to %n step 1 {                    0: f64
//!     %q = offset %p, %i * 16                         8: ptr to class1 at 0
//!     %x = load f64 %q align 8                      class1: loaded as %r
//!     %a = offset %q, 8 * 1                           0: f64
//!     %r = load ptr %a align 8                        %p: class0 at 0
//!     store f64 %x, %r align 8                        %q: class0 at 0 + 16k
//!     yield                                           %a: class0 at 8 + 16k
//!   }                                                 %r: class1 at 0
//!   return
//! }
//! ```
//!
//! Facts come from descriptions of parameters and globals first, then from usage. Functions that are called are analysed before
//! their callers, and each call gets a copy of what was found, so that one callee may serve different layouts.
//!
//! Bytes of unknown type are [`Kind::Unknown`], and bytes with contradictory uses are
//! [`Kind::Conflict`]; neither is ever guessed. A pointer that is also accessed in parts is a conflict, but its targets are kept:
//! a pointer that is joined from parts may point to all targets of the pointers that the parts came from. Bytes that are accessed as floats somewhere and
//! as integers elsewhere are floats.
//!
//! The analysis always terminates, with time and memory bounded by a multiple of the number of operations: if merging and widening do not converge
//! within that, all memory becomes one class of conflicts, which is always correct.
//!
//! Two different classes may still be the same memory where both come from outside: the caller may pass one object
//! twice. See [`Objects::may_overlap`].

mod freeze;
mod gather;
mod graph;
mod kinds;
mod layout;
mod origins;
mod print;
mod span;
#[cfg(test)]
mod tests;
mod union_find;

pub use span::Span;

pub use kinds::{Bytes, Cells, Class, Contradiction, Kind, Place, Source, ValueKind};

use ferrozyme_ir::entity::{EntitySet, PrimaryMap, SecondaryMap};
use ferrozyme_ir::{
    Constant, Function, FunctionId, GlobalId, Layout, Module, Op, OpView, Scalar, Value, ValueDef,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a caller knows.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// What the memory behind each parameter is, and then that behind each result.
    pub layouts: &'a [Option<Layout>],
    /// For each parameter: whether any word of the memory that it leads to may be a float at times, and at others something else.
    pub unions: &'a [bool],
}

impl Known<'_> {
    fn says_anything(&self) -> bool {
        self.layouts.iter().any(Option::is_some) || self.unions.contains(&true)
    }
}

/// The analyses of the functions of a module, kept so that each function is analysed once.
///
/// It must be cleared when functions change.
#[derive(Default)]
pub struct ObjectsCache {
    finished: FxHashMap<FunctionId, Arc<Objects>>,
}

impl ObjectsCache {
    /// An empty one.
    pub fn new() -> ObjectsCache {
        ObjectsCache::default()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.finished.clear();
    }

    /// The analysis of a function on its own: with the facts declared for its parameters, whoever calls it.
    pub fn get(&mut self, module: &Module, function: FunctionId) -> Arc<Objects> {
        gather::analyse_callees(module, function, &mut self.finished);
        if let Some(done) = self.finished.get(&function) {
            return done.clone();
        }
        for (id, objects) in gather::analyse_group(module, &[function], &self.finished, None) {
            self.finished.insert(id, Arc::new(objects));
        }
        self.finished[&function].clone()
    }
}

/// The classes of a function, their layouts, and what its values are.
#[derive(Clone, Debug)]
pub struct Objects {
    function: FunctionId,
    shape: Arc<Shape>,
    values: SecondaryMap<Value, Trace>,
    /// The addresses that integers carry.
    addresses: FxHashMap<Value, Place>,
    /// Integers that were calculated, and so are neither floats nor addresses, wherever they are put.
    numbers: EntitySet<Value>,
    /// For each parameter: whether it is a number by all that is done with it.
    counted: Vec<bool>,
    /// Pointers that are made of numbers in which an address may be hidden.
    forged: EntitySet<Value>,
    /// Floats that are not calculated, and may be words that were elsewhere before.
    moved: EntitySet<Value>,
    /// Floats that may come as they are from other functions.
    given: EntitySet<Value>,
    /// The cells of floats that are moved, among the parameters.
    moved_params: Vec<Option<u32>>,
    /// The cells of floats that are moved, among the results.
    moved_results: Vec<Option<u32>>,
    /// The cell of floats that are moved to functions that are not known.
    unknown_callees: Option<u32>,
    /// Floats that may be addresses, and that are moved to such functions.
    lost: EntitySet<Value>,
    /// How many bytes copies of variable length move at most, by the value that says how many.
    lengths: FxHashMap<Value, u64>,
    /// Where the parts of globals lie.
    globals: Vec<((GlobalId, u32), Place)>,
    functions: Vec<(FunctionId, Place)>,
    results: Vec<Trace>,
}

/// What is known of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Trace {
    #[default]
    Nothing,
    Pointer(Place),
    Cell(u32),
}

/// Classes and cells when all is done: those that stand for others only.
#[derive(Debug, Default)]
struct Shape {
    classes: PrimaryMap<Class, ClassShape>,
    cells: Vec<CellShape>,
    /// Cells from which words are moved to others as floats.
    moved: Vec<(u32, u32)>,
}

/// Whether a function that is not seen may put words into memory that others go on with. What is inactive and writes nothing that is computed with afterwards does not: the pointers in text,
/// for instance, lead to letters.
fn may_put_words(function: &Function) -> bool {
    !function.facts.inactive || function.facts.writes_constants
}

#[derive(Debug)]
struct ClassShape {
    start: i64,
    period: u64,
    /// Undivided cells by ascending offset.
    fields: Vec<(i64, u32)>,
    sources: Vec<(FunctionId, Source)>,
    escapes: bool,
    clobbered: bool,
    repointed: bool,
    /// This function, or something that it calls, writes to it.
    written: bool,
    /// This function, or something that it calls, calls it.
    called: bool,
    /// This function, or something that it calls, releases it.
    released: bool,
    /// Something is put there, or is taken from there without being looked at.
    handled: bool,
    /// Any word may be a float at times, and at others something else, and so may those of all memory that it leads to.
    union: bool,
    /// A description says that it is floats of eight bytes and nothing else.
    plain: bool,
    unknown_origin: bool,
    /// Code before or after this function's may reach it.
    visible: bool,
    /// Some of it may have been there before this function was called.
    given: bool,
    described: bool,
}

#[derive(Debug)]
struct CellShape {
    bytes: u64,
    parts: Option<(u32, u32)>,
    float: Option<Scalar>,
    integer: graph::Integer,
    /// Also where the whole pointer leads of which these bytes are a part.
    pointer: Option<Place>,
    padding: bool,
    /// Code that is not seen gets these bytes by value, or gives them.
    foreign: bool,
    contradiction: Option<Contradiction>,
}

impl CellShape {
    fn kind(&self) -> Kind {
        let certain = self.integer == graph::Integer::Certain;
        if let Some(contradiction) = self.contradiction {
            return Kind::Conflict(contradiction);
        }
        match (self.float, self.pointer) {
            (Some(scalar), Some(_)) => Kind::Conflict(Contradiction::FloatAndPointer(scalar)),
            (Some(scalar), None) if certain => {
                Kind::Conflict(Contradiction::FloatAndInteger(scalar))
            }
            (Some(scalar), None) => Kind::Float(scalar),
            // Numbers may lie there, too: they are their own shadows.
            (None, Some(place)) => Kind::Pointer(place),
            (None, None) if self.integer != graph::Integer::No => Kind::Integer,
            (None, None) if self.padding => Kind::Padding,
            (None, None) => Kind::Unknown,
        }
    }
}

impl Objects {
    /// Analyses a function. `known` says what is known of the memory behind its parameters on top of their declared facts.
    ///
    /// A function without body has parameters that point to nothing known.
    pub fn analyse(
        module: &Module,
        function: FunctionId,
        cache: &mut ObjectsCache,
        known: Option<Known<'_>>,
    ) -> Arc<Objects> {
        match known {
            Some(known) if known.says_anything() => {
                gather::analyse_callees(module, function, &mut cache.finished);
                let context = gather::Context::Known(known);
                gather::analyse_alone(module, function, &cache.finished, context)
            }
            _ => cache.get(module, function),
        }
    }

    /// Analyses a function as one call of it sees it: with all that the caller's analysis knows of the arguments.
    pub fn analyse_call(
        module: &Module,
        function: FunctionId,
        cache: &mut ObjectsCache,
        caller: &Objects,
        arguments: &[Value],
    ) -> Arc<Objects> {
        gather::analyse_callees(module, function, &mut cache.finished);
        let context = gather::Context::Call(caller, arguments);
        gather::analyse_alone(module, function, &cache.finished, context)
    }

    /// The function that this is about.
    pub fn function(&self) -> FunctionId {
        self.function
    }

    /// All classes.
    pub fn classes(&self) -> impl Iterator<Item = Class> {
        self.shape.classes.keys()
    }

    /// Where a pointer points, or the address that an integer carries. None for `null`, `undef`, and everything else.
    pub fn place_of(&self, function: &Function, value: Value) -> Option<Place> {
        match &function.values[value].def {
            ValueDef::Constant(Constant::Global(id)) => find(&self.globals, (*id, 0)),
            ValueDef::Constant(Constant::Function(id)) => find(&self.functions, *id),
            ValueDef::Constant(_) => None,
            _ => match self.values[value] {
                Trace::Pointer(place) => Some(place),
                Trace::Cell(_) | Trace::Nothing => self.addresses.get(&value).copied(),
            },
        }
    }

    /// The class a pointer points into, and an offset there that stands for all that it may have: what is at one of them is at all.
    /// Only where a description rules, the pointer may lead to fields of several kinds, of which a typed access means its own.
    pub fn class_of(&self, function: &Function, value: Value) -> Option<(Class, i64)> {
        let place = self.place_of(function, value)?;
        Some((place.class, self.wrap(place.class, place.span.lo).0))
    }

    /// How many bytes from the first offset of a pointer on a copy may touch at most, wherever the pointer points.
    pub fn reach_of_copy(&self, function: &Function, to: Value, bytes: Value) -> Option<u64> {
        if let Some(length) = function.int_of(bytes) {
            return u64::try_from(length).ok();
        }
        let span = self.place_of(function, to)?.span;
        let length = *self.lengths.get(&bytes)?;
        (span.repeat == 0).then(|| length.saturating_add(span.hi.abs_diff(span.lo)))
    }

    /// Where a global lies, if the function or something it calls uses it.
    pub fn place_of_global(&self, global: GlobalId) -> Option<Place> {
        find(&self.globals, (global, 0))
    }

    /// The fields of a class by ascending offset: of the part that does not repeat, then of one period.
    pub fn fields(&self, class: Class) -> impl Iterator<Item = Bytes> {
        self.shape.classes[class]
            .fields
            .iter()
            .map(|&(offset, cell)| {
                let cell = &self.shape.cells[cell as usize];
                Bytes {
                    offset,
                    bytes: cell.bytes,
                    kind: cell.kind(),
                }
            })
    }

    /// After how many bytes the fields of a class repeat; 0 for never.
    pub fn period(&self, class: Class) -> u64 {
        self.shape.classes[class].period
    }

    /// From which offset on the fields repeat; none for everywhere, also below 0.
    pub fn repeats_from(&self, class: Class) -> Option<i64> {
        let start = self.shape.classes[class].start;
        (start != i64::MIN).then_some(start)
    }

    /// Where the memory of a class comes from. Those of other functions, which call this one and are called by it, are left out.
    pub fn sources(&self, class: Class) -> impl Iterator<Item = Source> {
        self.shape.classes[class]
            .sources
            .iter()
            .filter(|(function, source)| {
                *function == self.function
                    || matches!(source, Source::Global(_) | Source::Function(_))
            })
            .map(|&(_, source)| source)
    }

    /// The functions whose addresses this function, or something that it calls, knows.
    pub(crate) fn functions(&self) -> impl Iterator<Item = FunctionId> {
        self.functions.iter().map(|&(function, _)| function)
    }

    /// The functions that a class is the code of; none if something else may be behind pointers to it.
    pub(crate) fn functions_in(&self, class: Class) -> Option<Vec<FunctionId>> {
        let sources = self.shape.classes[class].sources.iter();
        sources
            .map(|&(_, source)| match source {
                Source::Function(function) => Some(function),
                _ => None,
            })
            .collect()
    }

    /// Whether anything in it is read or written here, or by what is called.
    pub fn is_looked_into(&self, class: Class) -> bool {
        !self.shape.classes[class].fields.is_empty()
    }

    /// Whether code that is not seen may know addresses in it.
    pub fn escapes(&self, class: Class) -> bool {
        self.shape.classes[class].escapes
    }

    /// Whether this function, something that it calls, or code that is not seen may put anything there, or take words from there
    /// without looking what they are.
    pub fn is_handled(&self, class: Class) -> bool {
        let shape = &self.shape.classes[class];
        shape.handled || shape.clobbered
    }

    /// Whether any word in memory of a class may be a float at times, and at others something else, as the caller knows.
    pub fn is_union(&self, class: Class) -> bool {
        let shape = &self.shape.classes[class];
        shape.union && !shape.plain
    }

    /// Whether memory of a class is described as floats of eight bytes and nothing else. Where its bytes go, other things may be at other times.
    pub fn is_plain(&self, class: Class) -> bool {
        self.shape.classes[class].plain
    }

    /// Whether words in memory of a class are floats at times, and at others something else.
    pub fn has_unions(&self, class: Class) -> bool {
        self.is_union(class)
            || self
                .fields(class)
                .any(|field| field.kind.is_union(field.bytes))
    }

    /// The type of the float that an access meets where at other times a pointer or an integer of the same size is: in an `enum`, or in objects of
    /// several types behind one pointer.
    pub fn union_at(&self, function: &Function, address: Value, bytes: u64) -> Option<Scalar> {
        let (class, offset) = self.class_of(function, address)?;
        self.kind_of_access(class, offset, bytes).as_union(bytes)
    }

    /// The type of the float that an integer carries at times, and at others a pointer or a number.
    pub fn union_of_value(&self, function: &Function, value: Value) -> Option<Scalar> {
        let ty = function.ty(value);
        if !ty.is_int() || ty.is_vector() || self.is_number(function, value) {
            return None;
        }
        match self.kind_of_value(function, value) {
            ValueKind::Conflict(contradiction) => {
                Kind::Conflict(contradiction).as_union(ty.bytes())
            }
            _ => None,
        }
    }

    /// Whether an integer is a number at times, and at others a part of a float or pointer, which nobody would take alone.
    pub fn is_part_of_union(&self, function: &Function, value: Value) -> bool {
        let ty = function.ty(value);
        let whole = !ty.is_int() || ty.is_vector() || self.is_number(function, value);
        !whole
            && matches!(self.kind_of_value(function, value), ValueKind::Conflict(contradiction)
                if Kind::Conflict(contradiction).is_part_of_union(ty.bytes()))
    }

    /// Whether it may be memory that stems from code that is not seen.
    pub fn has_unknown_origin(&self, class: Class) -> bool {
        self.shape.classes[class].unknown_origin
    }

    /// Whether all memory of a class is made by this function or by what it calls, and no other code can reach it: it is
    /// neither returned, nor is its address in memory that others see.
    pub fn is_local(&self, class: Class) -> bool {
        let shape = &self.shape.classes[class];
        !shape.visible && !shape.escapes
    }

    /// Whether the memory of two classes may be the same. Two classes that come from outside may, unless parameters promise otherwise, which is not considered here.
    pub fn may_overlap(&self, a: Class, b: Class) -> bool {
        a == b || (!self.is_local(a) && !self.is_local(b))
    }

    /// What the bytes from `offset` on are, without gaps, by ascending offset relative to `offset`.
    pub fn kind_at(&self, class: Class, offset: i64, bytes: u64) -> SmallVec<[Bytes; 4]> {
        let mut found = SmallVec::new();
        let mut done = 0;
        while done < bytes {
            let field = self.field_at(class, offset.saturating_add(done as i64));
            let length = field.bytes.min(bytes - done);
            let kind = match field.kind {
                Kind::Float(scalar) if length < scalar.bytes() => {
                    Kind::Conflict(Contradiction::Torn(scalar))
                }
                Kind::Pointer(_) if length < Scalar::Ptr.bytes() => {
                    Kind::Conflict(Contradiction::Torn(Scalar::Ptr))
                }
                kind => kind,
            };
            found.push(Bytes {
                offset: done as i64,
                bytes: length,
                kind,
            });
            done += length;
        }
        found
    }

    /// What an access of a scalar of this many bytes meets: the kind that all its bytes have.
    pub fn kind_of_access(&self, class: Class, offset: i64, bytes: u64) -> Kind {
        let parts = self.kind_at(class, offset, bytes);
        match parts[..] {
            [one] => one.kind,
            _ => common_kind(&parts).unwrap_or(Kind::Unknown),
        }
    }

    /// All that lies from an offset of a class on.
    pub fn cells(&self, class: Class, offset: i64) -> Cells {
        let shape = &self.shape.classes[class];
        let (head, period) = if shape.period == 0 {
            let end = shape.fields.last().map_or(offset, |&(at, cell)| {
                at + self.shape.cells[cell as usize].bytes as i64
            });
            (end.saturating_sub(offset).max(0) as u64, 0)
        } else if shape.start == i64::MIN {
            (0, shape.period)
        } else {
            let before = shape.start.saturating_sub(offset).max(0);
            (before as u64, shape.period)
        };
        let mut body = self
            .kind_at(class, offset.saturating_add(head as i64), period)
            .into_vec();
        for field in &mut body {
            field.offset += head as i64;
        }
        Cells {
            head: self.kind_at(class, offset, head).into_vec(),
            body,
            period,
        }
    }

    /// What a value is.
    pub fn kind_of_value(&self, function: &Function, value: Value) -> ValueKind {
        let scalar = function.ty(value).scalar();
        if scalar.is_float() {
            return ValueKind::Float(scalar);
        }
        if scalar == Scalar::Ptr {
            return ValueKind::Pointer(self.place_of(function, value));
        }
        if scalar.bits() == 1 || function.is_constant(value) {
            return ValueKind::Integer;
        }
        let parts = self.parts_of_value(value);
        let kind = match parts[..] {
            [] => ValueKind::Unknown,
            [one] => value_kind(one.kind),
            _ => common_kind(&parts).map_or(ValueKind::Mixed, value_kind),
        };
        match (kind, self.addresses.get(&value)) {
            (ValueKind::CarriesFloat(scalar), Some(_)) => {
                ValueKind::Conflict(Contradiction::FloatAndPointer(scalar))
            }
            (
                ValueKind::Integer | ValueKind::Unknown | ValueKind::CarriesPointer(_),
                Some(&place),
            ) => ValueKind::CarriesPointer(place),
            // It lies where addresses are in other cases.
            (ValueKind::CarriesPointer(_), None) if scalar == Scalar::Int(64) => ValueKind::Integer,
            (kind, _) => kind,
        }
    }

    /// Whether an integer is nothing but a number, whatever else may be in the places where it is put.
    pub fn is_number(&self, function: &Function, value: Value) -> bool {
        self.numbers.contains(value)
            || gather::is_telling(function, value)
            || self.kind_of_value(function, value) == ValueKind::Integer
                && !function.is_constant(value)
    }

    /// Whether a pointer is made of a number in which the address of something else may be hidden. Any other pointer that is made of a number leads nowhere.
    pub fn may_be_hidden(&self, pointer: Value) -> bool {
        self.forged.contains(pointer)
    }

    /// Whether a float is not calculated, and may be a word that was elsewhere before.
    pub fn is_moved(&self, float: Value) -> bool {
        self.moved.contains(float)
    }

    /// Whether a float may come as it is from another function.
    pub fn is_given(&self, float: Value) -> bool {
        self.given.contains(float)
    }

    /// Whether a float may be an address, and be moved to a function that is called through a pointer.
    pub fn is_lost(&self, float: Value) -> bool {
        self.lost.contains(float)
    }

    /// Where a pointer leads that lies at an address, also where it shares its place with something else.
    pub fn pointer_behind(&self, function: &Function, address: Value) -> Option<Place> {
        let (class, offset) = self.class_of(function, address)?;
        self.pointer_at(class, offset)
    }

    /// The classes that pointers in a class lead to, also those that share their place with something else.
    pub fn pointees(&self, class: Class) -> impl Iterator<Item = Class> {
        let fields = self.shape.classes[class].fields.iter();
        fields
            .filter_map(|&(_, cell)| self.shape.cells[cell as usize].pointer)
            .map(|place| place.class)
    }

    /// What the bytes of an integer are, as it would lie in memory. Empty for other values and constants.
    pub fn parts_of_value(&self, value: Value) -> SmallVec<[Bytes; 4]> {
        let mut parts = SmallVec::new();
        if let Trace::Cell(cell) = self.values[value] {
            let mut offset = 0;
            for leaf in self.shape.leaves(cell) {
                let leaf = &self.shape.cells[leaf as usize];
                parts.push(Bytes {
                    offset,
                    bytes: leaf.bytes,
                    kind: leaf.kind(),
                });
                offset += leaf.bytes as i64;
            }
        }
        parts
    }

    /// Whether this function, what it calls, or code that is not seen may write to memory of a class.
    pub fn is_written(&self, class: Class) -> bool {
        let shape = &self.shape.classes[class];
        shape.written || shape.clobbered || shape.escapes || shape.unknown_origin
    }

    /// Whether this function, what it calls, or code that they give a pointer to it may write to memory of a class. Others may know it as well.
    pub fn is_written_here(&self, class: Class) -> bool {
        let shape = &self.shape.classes[class];
        shape.written || shape.clobbered
    }

    /// The first operation that may write to memory of such a class, itself or by what it calls.
    pub(crate) fn first_write(
        &self,
        function: &Function,
        ops: &[Op],
        is_meant: impl Fn(Class) -> bool,
    ) -> Option<Op> {
        let within = |pointer: &Value| {
            let class = self.class_of(function, *pointer);
            class.is_some_and(|(class, _)| is_meant(class))
        };
        ops.iter().copied().find(|&op| match function.view(op) {
            OpView::Store { address, .. } | OpView::AtomicAdd { address, .. } => within(&address),
            OpView::Copy { destination, .. }
            | OpView::Move { destination, .. }
            | OpView::Fill { destination, .. } => within(&destination),
            OpView::Call { .. } | OpView::CallIndirect { .. } => {
                function.ops[op].operands.iter().any(within)
            }
            _ => false,
        })
    }

    /// Whether this function, or what it calls, writes to memory of a class itself.
    pub fn is_stored_to(&self, class: Class) -> bool {
        self.shape.classes[class].written
    }

    /// Whether a class is code that this function, or what it calls, calls through a pointer.
    pub fn is_called(&self, class: Class) -> bool {
        self.shape.classes[class].called
    }

    /// Whether this function, what it calls, or code that they give a pointer to it may release memory of a class.
    pub fn is_released(&self, class: Class) -> bool {
        let shape = &self.shape.classes[class];
        shape.released || shape.clobbered
    }

    /// Whether all memory of a class is made by this function or by what it calls.
    pub fn is_made_here(&self, class: Class) -> bool {
        let mut sources = self.sources(class).peekable();
        sources.peek().is_some()
            && !self.shape.classes[class].given
            && !self.has_unknown_origin(class)
            && sources.all(Source::is_made_here)
    }

    /// Where a pointer leads that lies at an offset, also where it shares its place with something else.
    pub fn pointer_at(&self, class: Class, offset: i64) -> Option<Place> {
        let fields = &self.shape.classes[class].fields;
        let (at, _) = self.wrap(class, offset);
        let index = fields.binary_search_by_key(&at, |&(start, _)| start).ok()?;
        self.shape.cells[fields[index].1 as usize].pointer
    }

    /// The offset of the same field in the first period, and how many bytes follow until the next turn.
    fn wrap(&self, class: Class, offset: i64) -> (i64, u64) {
        let shape = &self.shape.classes[class];
        graph::wrap(shape.start, shape.period, offset)
    }

    /// What is at an offset: the rest of its field, or the unknown bytes up to the next.
    fn field_at(&self, class: Class, offset: i64) -> Bytes {
        let fields = &self.shape.classes[class].fields;
        let (at, room) = self.wrap(class, offset);
        let next = fields.partition_point(|&(start, _)| start <= at);
        if let Some(&(start, cell)) = next.checked_sub(1).map(|index| &fields[index]) {
            let cell = &self.shape.cells[cell as usize];
            let passed = at.abs_diff(start);
            if passed < cell.bytes {
                return Bytes {
                    offset,
                    bytes: cell.bytes - passed,
                    kind: cell.kind(),
                };
            }
        }
        let gap = fields
            .get(next)
            .map_or(u64::MAX, |&(start, _)| start.abs_diff(at));
        Bytes {
            offset,
            bytes: gap.min(room),
            kind: Kind::Unknown,
        }
    }
}

impl Shape {
    /// The pieces of a cell that are not split further, from the first byte on.
    fn leaves(&self, cell: u32) -> SmallVec<[u32; 4]> {
        let mut leaves = SmallVec::new();
        let mut stack: SmallVec<[u32; 8]> = SmallVec::from_slice(&[cell]);
        while let Some(cell) = stack.pop() {
            match self.cells[cell as usize].parts {
                None => leaves.push(cell),
                Some((left, right)) => stack.extend([right, left]),
            }
        }
        leaves
    }
}

/// Looks a name up in a list that is sorted by names.
fn find<K: Ord>(list: &[(K, Place)], key: K) -> Option<Place> {
    let index = list.binary_search_by(|(known, _)| known.cmp(&key)).ok()?;
    Some(list[index].1)
}

/// What several pieces are together: an integer of integers, also with padding among them; padding of padding; or a contradiction if one is.
fn common_kind(parts: &[Bytes]) -> Option<Kind> {
    let conflict = parts
        .iter()
        .map(|part| part.kind)
        .find(|kind| matches!(kind, Kind::Conflict(_)));
    let all = |wanted: &[Kind]| parts.iter().all(|part| wanted.contains(&part.kind));
    let common = [
        (&[Kind::Padding][..], Kind::Padding),
        (&[Kind::Unknown], Kind::Unknown),
        (&[Kind::Integer, Kind::Padding], Kind::Integer),
    ];
    let common = common.into_iter().find(|(kinds, _)| all(kinds));
    conflict.or(common.map(|(_, kind)| kind))
}

fn value_kind(kind: Kind) -> ValueKind {
    match kind {
        Kind::Float(scalar) => ValueKind::CarriesFloat(scalar),
        Kind::Integer | Kind::Padding => ValueKind::Integer,
        Kind::Pointer(place) => ValueKind::CarriesPointer(place),
        Kind::Unknown => ValueKind::Unknown,
        Kind::Conflict(contradiction) => ValueKind::Conflict(contradiction),
    }
}
