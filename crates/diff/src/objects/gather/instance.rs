//! Calls of analysed functions: each call gets a copy of the classes that the callee's parameters and results reach.

use super::super::graph::{CellId, ClassId, Evidence, Target};
use super::super::span::{Span, gcd};
use super::super::{Class, Objects, Place, Source, Trace};
use super::Gather;
use ferrozyme_ir::{FunctionId, Op, Value};
use ferrozyme_opt::{reached_by_moves, reversed_moves};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// How many classes and cells are copied before calls begin to share.
const BUDGET: usize = 50_000;

/// Whose copy it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// That of one call, in one function of the group.
    Call(usize, Op),
    /// That of all calls of a function.
    Callee(FunctionId),
}

/// The copy that one call has of its callee's classes and cells.
#[derive(Default)]
pub(super) struct Instance {
    classes: FxHashMap<Class, ClassId>,
    cells: FxHashMap<u32, CellId>,
    /// The cells that hold pointers, and where these point in the original.
    pointers: Vec<(CellId, Place)>,
    /// From which of the cells words are moved to others as floats.
    moves: Vec<(CellId, CellId)>,
    /// The classes of memory that the call makes.
    made: Vec<ClassId>,
    /// The calls that share it.
    users: FxHashSet<(usize, Op)>,
}

impl Gather<'_> {
    /// A call of a function that is analysed already.
    pub(super) fn call_finished(
        &mut self,
        b: usize,
        op: Op,
        callee: &Objects,
        arguments: &[Value],
    ) {
        let params = self.module.functions[callee.function].arguments();
        let traces: SmallVec<[Trace; 8]> =
            params.iter().map(|&param| callee.values[param]).collect();
        // Copies of copies may grow beyond measure; from some size on all calls of a function share one.
        let own = Key::Call(b, op);
        let size = callee.shape.classes.len() + callee.shape.cells.len();
        let key = if self.instances.contains_key(&own) || self.copied + size < BUDGET {
            own
        } else {
            Key::Callee(callee.function)
        };
        let mut instance = match self.instances.remove(&key) {
            Some(instance) => instance,
            None => {
                let mut roots = traces.to_vec();
                roots.extend(callee.results.iter().copied());
                let moved = callee.moved_params.iter().chain(&callee.moved_results);
                let moved = moved.chain([&callee.unknown_callees]);
                roots.extend(moved.flatten().map(|&cell| Trace::Cell(cell)));
                let named = callee.globals.iter().map(|&(_, place)| place);
                let named = named.chain(callee.functions.iter().map(|&(_, place)| place));
                roots.extend(named.map(Trace::Pointer));
                self.instantiate(callee, &roots)
            }
        };
        if instance.users.insert((b, op)) {
            let source = (self.bodies[b].id, Source::Call(op));
            for &class in &instance.made {
                let (root, _) = self.graph.find(class);
                self.graph.node_mut(root).sources.insert(source);
            }
        }
        self.move_through(b, op, callee, &instance);
        self.bind_names(callee, &instance);
        // By how much the arguments spread around the address that the copy was bound to, for each class.
        let mut spreads: SmallVec<[(Class, Span); 2]> = SmallVec::new();
        for ((&argument, &trace), &counted) in arguments.iter().zip(&traces).zip(&callee.counted) {
            match trace {
                _ if counted => self.pass_number(b, argument),
                Trace::Pointer(place) => {
                    let Some(actual) = self.place_of(b, argument) else {
                        continue;
                    };
                    let copy = instance.classes[&place.class];
                    if let Some(distance) = self.find_fit(place.span, copy, actual) {
                        self.graph.merge_classes(actual.class, copy, distance);
                        continue;
                    }
                    let spread = actual.span.spread();
                    if spread != Span::exact(0) {
                        match spreads.iter_mut().find(|(class, _)| *class == place.class) {
                            Some((_, known)) => *known = known.join(spread),
                            None => spreads.push((place.class, spread)),
                        }
                    }
                    self.bind(callee, place, copy, actual);
                }
                Trace::Cell(cell) => {
                    let cell = instance.cells[&cell];
                    self.same_integer(b, argument, cell);
                    self.give_address(b, argument, cell);
                }
                Trace::Nothing => {}
            }
        }
        let spread_of = |class: Class| {
            spreads
                .iter()
                .find(|(known, _)| *known == class)
                .map(|&(_, spread)| spread)
        };
        for &(cell, place) in &instance.pointers {
            if let Some(spread) = spread_of(place.class) {
                let target = Target {
                    class: instance.classes[&place.class],
                    span: place.span.sum(spread),
                };
                self.graph.set_pointer(cell, target);
            }
        }
        let results = &self.bodies[b].function.ops[op].results;
        for (&result, &trace) in results.iter().zip(&callee.results) {
            match trace {
                Trace::Pointer(place) => {
                    let spread = spread_of(place.class).unwrap_or(Span::exact(0));
                    let target = Target {
                        class: instance.classes[&place.class],
                        span: place.span.sum(spread),
                    };
                    self.assign(b, result, Some(target));
                }
                Trace::Cell(cell) => {
                    self.same_integer(b, result, instance.cells[&cell]);
                    self.take_address(b, result);
                }
                Trace::Nothing => {}
            }
        }
        self.instances.insert(key, instance);
    }

    /// What a call moves as floats: from its arguments, to its results, and between places that both know.
    fn move_through(&mut self, b: usize, op: Op, callee: &Objects, instance: &Instance) {
        let data = &self.bodies[b].function.ops[op];
        for &(from, to) in &instance.moves {
            self.graph.move_to(from, to);
        }
        if let Some(cell) = callee.unknown_callees {
            let unknown = self.unknown_callees();
            self.graph.move_to(instance.cells[&cell], unknown);
        }
        for (&float, cell) in data.arguments().iter().zip(&callee.moved_params) {
            if let Some(cell) = cell {
                self.goes_to(b, float, instance.cells[cell]);
            }
        }
        for (&float, cell) in data.results.iter().zip(&callee.moved_results) {
            if let Some(cell) = cell {
                self.comes_from(b, float, instance.cells[cell]);
            }
        }
    }

    /// The group's first function is called as the caller's analysis says.
    pub(super) fn enter_from(&mut self, caller: &Objects, arguments: &[Value]) {
        let outer = &self.module.functions[caller.function];
        let Some(body) = self.bodies[0].function.body else {
            return;
        };
        let params = &self.bodies[0].function.regions[body].args;
        let traces: SmallVec<[Trace; 8]> = arguments
            .iter()
            .map(|&argument| match caller.place_of(outer, argument) {
                Some(place) if outer.ty(argument).is_ptr() => Trace::Pointer(place),
                _ => caller.values[argument],
            })
            .collect();
        let carried: SmallVec<[Option<Place>; 8]> = arguments
            .iter()
            .map(|&argument| caller.addresses.get(&argument).copied())
            .collect();
        let mut roots = traces.to_vec();
        roots.extend(carried.iter().flatten().copied().map(Trace::Pointer));
        let instance = self.instantiate(caller, &roots);
        self.bind_names(caller, &instance);
        let counted = self.bodies[0].counted.clone();
        let traces = traces.iter().zip(carried).zip(counted);
        for (&param, ((&trace, carried), counted)) in params.iter().zip(traces) {
            match trace {
                _ if counted => {}
                Trace::Pointer(place) => {
                    let target = Target {
                        class: instance.classes[&place.class],
                        span: place.span,
                    };
                    self.grow(0, param, Some(target));
                }
                Trace::Cell(cell) => {
                    let cell = instance.cells[&cell];
                    self.same_integer(0, param, cell);
                    if let Some(place) = carried {
                        let target = Target {
                            class: instance.classes[&place.class],
                            span: place.span,
                        };
                        self.graph.set_pointer(cell, target);
                    }
                }
                Trace::Nothing => {}
            }
        }
    }

    /// Globals and functions are the same memory for everybody.
    fn bind_names(&mut self, original: &Objects, instance: &Instance) {
        for &((id, part), place) in &original.globals {
            if let Some(&copy) = instance.classes.get(&place.class) {
                let here = self.part_of_global(id, part);
                let shift = here.span.lo - place.span.lo;
                self.graph.merge_classes(here.class, copy, shift);
            }
        }
        for &(id, place) in &original.functions {
            if let Some(&copy) = instance.classes.get(&place.class) {
                let here = self.code(0, id);
                let shift = here.span.lo - place.span.lo;
                self.graph.merge_classes(here.class, copy, shift);
            }
        }
    }

    /// How far the offsets of a parameter's class are moved here, if the parameter has several of which the argument's are some.
    ///
    /// A function that calls itself for the left and for the right child of a node gets the address of a field that may be either; what it finds out of the
    /// memory around it holds for both. Which of the two a call from outside gives does not matter, so the one is taken by which floats lie on floats.
    ///
    /// ```text
    /// parameter: class0 at 0..=8 by 8     -16: f64 x 2        argument: class5 at 24       0: f64 x 2
    ///                                       0: ptr x 2                                    16: ptr x 2
    /// moved by 24:  8: f64 x 2, 24: ptr x 2: no       moved by 16:  0: f64 x 2, 16: ptr x 2: yes
    /// ```
    fn find_fit(&mut self, param: Span, copy: ClassId, actual: Target) -> Option<i64> {
        if param.step == 0 || param.repeat > 0 || actual.span.repeat > 0 {
            return None;
        }
        let offsets: Vec<i64> = param.positions().collect();
        let fits = |&distance: &i64| {
            let mut positions = actual.span.positions();
            positions.all(|at| offsets.contains(&at.wrapping_sub(distance)))
        };
        let (root, shift) = self.graph.find(actual.class);
        let (copy, copy_shift) = self.graph.find(copy);
        let candidates = offsets
            .iter()
            .map(|&offset| actual.span.lo.wrapping_sub(offset))
            .filter(fits);
        if root == copy {
            let distance = copy_shift.wrapping_sub(shift);
            return candidates.into_iter().find(|&one| one == distance);
        }
        let clashes = |&distance: &i64| {
            let moved = distance.wrapping_add(shift).wrapping_sub(copy_shift);
            self.count_clashes(root, copy, moved)
        };
        candidates.min_by_key(clashes)
    }

    /// How many fields are a float in one class and a pointer in the other, where offset `o` of `b` is offset `o + distance` of `a`.
    fn count_clashes(&self, a: ClassId, b: ClassId, distance: i64) -> usize {
        let kind = |cell: CellId| {
            let evidence = &self.graph.cell(self.graph.root_cell(cell)).evidence;
            (evidence.float.is_some(), evidence.pointer.is_some())
        };
        let fields = &self.graph.node(a).fields;
        let others = self.graph.node(b).fields.iter();
        others
            .filter_map(|(&offset, &cell)| {
                let here = fields.get(&offset.wrapping_add(distance))?;
                Some((kind(*here), kind(cell)))
            })
            .filter(|&(here, there)| here.0 && there.1 || here.1 && there.0)
            .count()
    }

    /// A parameter's class is what the argument points into, at all addresses that the argument may have.
    fn bind(&mut self, callee: &Objects, param: Place, copy: ClassId, actual: Target) {
        let distance = actual.span.lo.wrapping_sub(param.span.lo);
        self.graph.merge_classes(actual.class, copy, distance);
        let fields: Vec<(i64, u64)> = callee
            .fields(param.class)
            .map(|field| (field.offset.wrapping_sub(param.span.lo), field.bytes))
            .collect();
        if actual.span.repeat > 0 {
            let lowest = fields.iter().map(|&(offset, _)| offset).min();
            let start = match lowest {
                _ if actual.span.both => i64::MIN,
                Some(lowest) => actual.span.lo.saturating_add(lowest.min(0)),
                None => actual.span.lo,
            };
            self.graph.repeat(actual.class, start, actual.span.repeat);
        }
        if actual.span.step > 0 {
            for (offset, bytes) in fields {
                self.graph.access_span(actual, offset, bytes);
            }
        }
        let unsure = gcd(param.span.step, param.span.repeat);
        if unsure > 0 {
            self.graph.repeat(actual.class, i64::MIN, unsure);
        }
    }

    /// Copies what is reached from `roots`.
    fn instantiate(&mut self, original: &Objects, roots: &[Trace]) -> Instance {
        let mut copier = Copier {
            original,
            instance: Instance::default(),
            unseen: Vec::new(),
        };
        for &root in roots {
            match root {
                Trace::Pointer(place) => {
                    copier.class(self, place.class);
                }
                Trace::Cell(cell) => {
                    copier.cell(self, cell);
                }
                Trace::Nothing => {}
            }
        }
        copier.copy_fields(self);
        copier.copy_moves(self);
        let size = copier.instance.classes.len() + copier.instance.cells.len();
        self.copied += size;
        self.graph.budget += size * super::SIZE_OF_EACH;
        copier.instance
    }
}

struct Copier<'o> {
    original: &'o Objects,
    instance: Instance,
    unseen: Vec<(Class, ClassId)>,
}

impl Copier<'_> {
    /// Copies what lies in the classes that were met, and all that they lead to.
    fn copy_fields(&mut self, gather: &mut Gather<'_>) {
        while let Some((class, id)) = self.unseen.pop() {
            let shape = &self.original.shape.classes[class];
            for &(offset, cell) in &shape.fields {
                let copy = self.cell(gather, cell);
                gather.graph.node_mut(id).fields.insert(offset, copy);
            }
            let node = gather.graph.node_mut(id);
            node.start = shape.start;
            node.period = shape.period;
            node.escapes = shape.escapes;
            node.clobbered = shape.clobbered;
            node.repointed = shape.repointed;
            node.written = shape.written;
            node.called = shape.called;
            node.released = shape.released;
            node.handled = shape.handled;
            node.union = shape.union;
            node.plain = shape.plain;
            node.unknown_origin = shape.unknown_origin;
            node.described = shape.described;
        }
    }

    /// Copies the moves from what was met to what was met, also by way of others.
    fn copy_moves(&mut self, gather: &mut Gather<'_>) {
        let moves = &self.original.shape.moved;
        let met = || self.instance.cells.keys().copied();
        let behind = reached_by_moves(moves, met());
        let ahead = reached_by_moves(&reversed_moves(moves), met());
        let is_between = |cell| behind.contains(cell) && ahead.contains(cell);
        for (from, to) in moves {
            if is_between(from) && is_between(to) {
                let (from, to) = (self.cell(gather, *from), self.cell(gather, *to));
                self.instance.moves.push((from, to));
            }
        }
        self.copy_fields(gather);
    }

    fn class(&mut self, gather: &mut Gather<'_>, class: Class) -> ClassId {
        if let Some(&copy) = self.instance.classes.get(&class) {
            return copy;
        }
        let shape = &self.original.shape.classes[class];
        let made = shape.sources.iter().any(|(_, source)| {
            matches!(
                source,
                Source::Stack(_)
                    | Source::Alloc(_)
                    | Source::Call(_)
                    | Source::External(_)
                    | Source::Address(_)
            )
        });
        let copy = gather.graph.new_class(None);
        if made {
            self.instance.made.push(copy);
        }
        self.instance.classes.insert(class, copy);
        self.unseen.push((class, copy));
        copy
    }

    fn cell(&mut self, gather: &mut Gather<'_>, cell: u32) -> CellId {
        if let Some(&copy) = self.instance.cells.get(&cell) {
            return copy;
        }
        let shape = &self.original.shape.cells[cell as usize];
        let copy = match shape.parts {
            Some((left, right)) => {
                let left = self.cell(gather, left);
                let right = self.cell(gather, right);
                gather.graph.concatenate(left, right)
            }
            None => {
                let copy = gather.graph.new_cell(shape.bytes);
                let pointer = shape.pointer.map(|place| Target {
                    class: self.class(gather, place.class),
                    span: place.span,
                });
                self.instance
                    .pointers
                    .extend(shape.pointer.map(|place| (copy, place)));
                gather.graph.add_evidence(
                    copy,
                    Evidence {
                        float: shape.float,
                        integer: shape.integer,
                        pointer,
                        padding: shape.padding,
                        foreign: shape.foreign,
                        contradiction: shape.contradiction,
                        ..Evidence::default()
                    },
                );
                copy
            }
        };
        self.instance.cells.insert(cell, copy);
        copy
    }
}
