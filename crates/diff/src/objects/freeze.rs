//! Turns the gathered constraints into the result: only representatives of classes and cells, numbered in the order in which
//! the functions' values refer to them.

use super::gather::{Body, Gather, LONG};
use super::graph::{CellId, ClassId, Graph, Target};
use super::origins::{Traced, drop_inner_loads};
use super::{
    CellShape, Class, ClassShape, Contradiction, Kind, Objects, Place, Shape, Source, Trace,
    may_put_words,
};
use ferrozyme_ir::entity::{EntitySet, PrimaryMap, SecondaryMap};
use ferrozyme_ir::{Function, FunctionId, Module, OpData, Opcode, Payload, Scalar, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn freeze(gather: Gather<'_>) -> Vec<(FunctionId, Objects)> {
    let Gather {
        module,
        mut graph,
        bodies,
        globals,
        functions,
        unknown_callees,
        ..
    } = gather;
    let lost = match unknown_callees {
        Some(cell) => graph.moved_addresses(cell),
        None => FxHashSet::default(),
    };
    let mut freezer = Freezer {
        graph: &mut graph,
        classes: PrimaryMap::new(),
        class_of: FxHashMap::default(),
        cells: Vec::new(),
        cell_of: FxHashMap::default(),
    };
    let mut frozen = Vec::new();
    for body in &bodies {
        let (values, addresses, results) = freezer.trace(body);
        frozen.push((body, values, addresses, results));
    }
    let globals = freezer.places(globals);
    let functions = freezer.places(functions);
    let moved: Vec<[Vec<Option<u32>>; 2]> = (bodies.iter())
        .map(|body| {
            let params = body.moves.params(body.function);
            [params, body.moves.results.clone()].map(|cells| freezer.numbers(&cells))
        })
        .collect();
    let unknown_callees = unknown_callees.map(|cell| freezer.cell(cell));
    let mut shape = freezer.finish();
    let calls: Vec<Vec<&Trace>> = frozen
        .iter()
        .flat_map(|(body, values, _, _)| {
            let calls = body
                .function
                .ops
                .values()
                .filter(|data| matches!(data.opcode, Opcode::Call | Opcode::CallIndirect))
                .filter(|data| may_move_words(module, data));
            calls.map(|data| {
                let given = data.operands.iter().chain(&data.results);
                given.map(|&value| &values[value]).collect()
            })
        })
        .collect();
    spread_unions(&mut shape, &calls);
    for (body, values, _, _) in &frozen {
        find_moved_words(&mut shape, body, values);
    }
    spread_escapes(&mut shape);
    let traced: Vec<Traced<'_>> = frozen
        .iter()
        .map(|(body, values, _, _)| Traced {
            id: body.id,
            function: body.function,
            values,
        })
        .collect();
    drop_inner_loads(&mut shape, &traced);
    let returned = frozen.iter().flat_map(|(_, _, _, results)| results);
    spread_visibility(&mut shape, bodies.len() == 1, returned);
    if let [(body, values, _, results)] = &frozen[..] {
        find_unused(&mut shape, body.function, values, results);
    }
    let shape = Arc::new(shape);
    (frozen.into_iter().zip(moved))
        .map(|((body, values, addresses, results), moved)| {
            let [moved_params, moved_results] = moved;
            let function = body.id;
            let objects = Objects {
                function,
                shape: shape.clone(),
                values,
                addresses,
                numbers: body.numbers.clone(),
                counted: body.counted.clone(),
                forged: body.forged.clone(),
                moved: body.moves.not_computed(body.function),
                given: body.moves.given().clone(),
                moved_params,
                moved_results,
                unknown_callees,
                lost: body.moves.among(&lost),
                lengths: lengths(body),
                globals: globals.clone(),
                functions: functions.clone(),
                results,
            };
            (function, objects)
        })
        .collect()
}

/// How many bytes copies of variable length move at most, where that is not much.
fn lengths(body: &Body<'_>) -> FxHashMap<Value, u64> {
    let copies = body.function.ops.values().filter(|data| {
        matches!(data.opcode, Opcode::Copy | Opcode::Move)
            && body.function.int_of(data.size()).is_none()
    });
    copies
        .filter_map(|data| {
            let most = u64::try_from(body.longest(data.size())).ok()?;
            (most <= LONG).then_some((data.size(), most))
        })
        .collect()
}

struct Freezer<'g> {
    graph: &'g mut Graph,
    /// The roots in the order of their numbers.
    classes: PrimaryMap<Class, ClassId>,
    class_of: FxHashMap<ClassId, Class>,
    cells: Vec<CellId>,
    cell_of: FxHashMap<CellId, u32>,
}

impl Freezer<'_> {
    /// What the values and results of a function refer to, and the places of addresses that are no pointers or that cells hold.
    fn trace(
        &mut self,
        body: &Body<'_>,
    ) -> (
        SecondaryMap<Value, Trace>,
        FxHashMap<Value, Place>,
        Vec<Trace>,
    ) {
        let function = body.function;
        let mut values = SecondaryMap::new();
        let mut addresses = FxHashMap::default();
        // Values are numbered roughly in the order of the text, the parameters first.
        for value in function.values.keys() {
            if function.is_constant(value) {
                continue;
            }
            let trace = match (body.pointers[value].target, body.cells[value]) {
                (target, Some(cell)) => {
                    if let Some(target) = target {
                        addresses.insert(value, self.place(target));
                    }
                    Trace::Cell(self.cell(cell))
                }
                (Some(target), None) if function.ty(value).is_ptr() => {
                    Trace::Pointer(self.place(target))
                }
                (Some(target), None) => {
                    addresses.insert(value, self.place(target));
                    continue;
                }
                (None, None) => continue,
            };
            values[value] = trace;
        }
        let results: Vec<Trace> = body
            .results
            .iter()
            .map(|outlet| match (outlet.pointer.target, outlet.cell) {
                (Some(target), _) => Trace::Pointer(self.place(target)),
                (None, Some(cell)) => Trace::Cell(self.cell(cell)),
                (None, None) => Trace::Nothing,
            })
            .collect();
        (values, addresses, results)
    }

    /// The places of globals or functions, in order.
    fn places<K: Ord + Copy>(&mut self, targets: FxHashMap<K, Target>) -> Vec<(K, Place)> {
        let mut targets: Vec<_> = targets.into_iter().collect();
        targets.sort_unstable_by_key(|&(id, _)| id);
        let place = |(id, target)| (id, self.place(target));
        targets.into_iter().map(place).collect()
    }

    fn numbers(&mut self, cells: &[Option<CellId>]) -> Vec<Option<u32>> {
        let cells = cells.iter();
        cells.map(|cell| cell.map(|cell| self.cell(cell))).collect()
    }

    fn place(&mut self, target: Target) -> Place {
        let target = self.graph.resolve(target);
        let class = match self.class_of.get(&target.class) {
            Some(&class) => class,
            None => {
                let class = self.classes.push(target.class);
                self.class_of.insert(target.class, class);
                class
            }
        };
        Place {
            class,
            span: target.span,
        }
    }

    fn cell(&mut self, cell: CellId) -> u32 {
        let root = self.graph.find_cell(cell);
        if let Some(&number) = self.cell_of.get(&root) {
            return number;
        }
        let number = self.cells.len() as u32;
        self.cells.push(root);
        self.cell_of.insert(root, number);
        number
    }

    /// Follows fields and pointers until all that is reached has a number.
    fn finish(mut self) -> Shape {
        let mut shape = Shape::default();
        let mut moves = Some(self.graph.undivided_moves());
        let mut next_cell = 0;
        loop {
            if let Some(&root) = self.cells.get(next_cell) {
                let node = self.graph.cell(root);
                let (bytes, parts, evidence) = (node.bytes, node.parts, node.evidence);
                let parts = parts.map(|(left, right)| (self.cell(left), self.cell(right)));
                let pointer = evidence.pointer.map(|target| self.place(target));
                shape.cells.push(CellShape {
                    bytes,
                    parts,
                    float: evidence.float,
                    integer: evidence.integer,
                    pointer,
                    padding: evidence.padding,
                    foreign: evidence.foreign,
                    contradiction: evidence.contradiction,
                });
                next_cell += 1;
            } else if let Some(&root) = self.classes.get(shape.classes.next_key()) {
                let fields: Vec<(i64, CellId)> = self
                    .graph
                    .node(root)
                    .fields
                    .iter()
                    .map(|(&offset, &cell)| (offset, cell))
                    .collect();
                let mut flat = Vec::new();
                for (offset, cell) in fields {
                    let mut at = offset;
                    for leaf in self.graph.leaves(cell) {
                        flat.push((at, self.cell(leaf)));
                        at += self.graph.cell(leaf).bytes as i64;
                    }
                }
                let node = self.graph.node(root);
                shape.classes.push(ClassShape {
                    start: node.start,
                    period: node.period,
                    fields: flat,
                    sources: node.sources.iter().copied().collect(),
                    escapes: node.escapes,
                    clobbered: node.clobbered,
                    repointed: node.repointed,
                    written: node.written,
                    called: node.called,
                    released: node.released,
                    handled: node.handled,
                    union: node.union,
                    plain: node.plain,
                    unknown_origin: node.unknown_origin,
                    visible: false,
                    given: false,
                    described: node.described,
                });
            } else if let Some(moves) = moves.take() {
                shape.moved = self.numbered_moves(moves);
            } else {
                return shape;
            }
        }
    }

    /// The moves of words as floats between cells that have numbers, also by way of others. Where many moves come together in a cell, it gets a number.
    fn numbered_moves(&mut self, moves: Vec<(CellId, CellId)>) -> Vec<(u32, u32)> {
        let mut ends: BTreeMap<CellId, [BTreeSet<CellId>; 2]> = BTreeMap::new();
        for (from, to) in moves {
            ends.entry(from).or_default()[1].insert(to);
            ends.entry(to).or_default()[0].insert(from);
        }
        let cells: Vec<CellId> = ends.keys().copied().collect();
        for cell in cells {
            let [before, behind] = &ends[&cell];
            let has_fewer = before.len() * behind.len() <= before.len() + behind.len();
            if self.cell_of.contains_key(&cell) || !has_fewer {
                continue;
            }
            let [before, behind] = ends.remove(&cell).unwrap_or_default();
            for (side, here, there) in [(1, &before, &behind), (0, &behind, &before)] {
                for end in here {
                    if let Some(sides) = ends.get_mut(end) {
                        sides[side].remove(&cell);
                        sides[side].extend(there.iter().filter(|&other| other != end));
                    }
                }
            }
        }
        let mut numbered = Vec::new();
        for (from, [_, behind]) in ends {
            let from = self.cell(from);
            numbered.extend(behind.into_iter().map(|to| (from, self.cell(to))));
        }
        numbered
    }
}

/// Whether a call may move words from one place to another.
fn may_move_words(module: &Module, call: &OpData) -> bool {
    match call.payload {
        Payload::Callee(callee) if call.opcode == Opcode::Call => {
            may_put_words(&module.functions[callee])
        }
        _ => true,
    }
}

/// Words that are read as integers, of which nobody says that they are numbers, and that are more than compared or calculated with, are taken from memory without being looked
/// at.
fn find_moved_words(shape: &mut Shape, body: &Body<'_>, values: &SecondaryMap<Value, Trace>) {
    let function = body.function;
    let mut moved = EntitySet::new();
    for data in function.ops.values() {
        let calculates = matches!(
            data.opcode,
            Opcode::Icmp | Opcode::Switch | Opcode::Sext | Opcode::Add | Opcode::Sub | Opcode::Mul
        );
        if !calculates {
            moved.extend(data.operands.iter().copied());
        }
    }
    for data in function.ops.values() {
        if data.opcode != Opcode::Load || !function.ty(data.results[0]).is_int() {
            continue;
        }
        let word = data.results[0];
        let is_number = |&cell: &u32| shape.cells[cell as usize].kind() == Kind::Integer;
        let looked_at = !moved.contains(word)
            || body.numbers.contains(word)
            || match values[word] {
                Trace::Cell(cell) => shape.leaves(cell).iter().all(is_number),
                _ => false,
            };
        if let (false, Trace::Pointer(place)) = (looked_at, &values[data.address()]) {
            shape.classes[place.class].handled = true;
        }
    }
}

/// Where a caller knows that words may be floats at times, and at others something else, that is so for all that pointers there lead to. And where a call
/// can reach such words, it is so for all that it can reach: callees move words between places without saying what they are.
fn spread_unions(shape: &mut Shape, calls: &[Vec<&Trace>]) {
    let marked = |shape: &Shape, id: Class| shape.classes[id].union && !shape.classes[id].plain;
    let has_unions = |shape: &Shape, id: Class| {
        let class = &shape.classes[id];
        let mut cells = class
            .fields
            .iter()
            .map(|&(_, cell)| &shape.cells[cell as usize]);
        !class.plain && (class.union || cells.any(|cell| cell.kind().is_union(cell.bytes)))
    };
    // What the caller knows to be anything may be taken apart; elsewhere only whole words are in question.
    let told: Vec<Class> = shape
        .classes
        .iter()
        .filter(|(_, class)| class.union && !class.plain)
        .map(|(id, _)| id)
        .collect();
    let told: FxHashSet<Class> = reached_from(shape, told.into_iter()).into_iter().collect();
    let all: Vec<Class> = shape.classes.keys().collect();
    if !all.iter().any(|&id| has_unions(shape, id)) {
        return;
    }
    loop {
        let mut unseen: Vec<Class> = told.iter().copied().collect();
        for arguments in calls {
            let classes = arguments.iter().filter_map(|trace| match trace {
                Trace::Pointer(place) => Some(place.class),
                _ => None,
            });
            let reached = reached_from(shape, classes);
            if reached.iter().any(|&id| has_unions(shape, id)) {
                unseen.extend(reached);
            }
        }
        let reached = reached_from(shape, unseen.into_iter());
        let mut grown = false;
        for id in reached {
            let parts = told.contains(&id);
            if shape.classes[id].plain || marked(shape, id) && !is_unmarked(shape, id, parts) {
                continue;
            }
            grown = true;
            shape.classes[id].union = true;
            let cells: Vec<u32> = shape.classes[id]
                .fields
                .iter()
                .map(|&(_, cell)| cell)
                .collect();
            for cell in cells {
                let cell = &mut shape.cells[cell as usize];
                // A number is its own shadow to everybody; only the caller can know better.
                if !parts && cell.kind() == Kind::Integer {
                    continue;
                }
                let is_word = cell.bytes == Scalar::F64.bytes();
                if cell.contradiction.is_none() && is_word {
                    cell.contradiction = Some(Contradiction::FloatAndPointer(Scalar::F64));
                } else if cell.contradiction.is_none() && told.contains(&id) {
                    cell.contradiction = Some(Contradiction::Torn(Scalar::F64));
                }
            }
        }
        if !grown {
            return;
        }
    }
}

/// Whether there are words in memory of a class of which nobody has said yet that they may be anything.
fn is_unmarked(shape: &Shape, id: Class, parts: bool) -> bool {
    let cells = shape.classes[id].fields.iter();
    let mut cells = cells.map(|&(_, cell)| &shape.cells[cell as usize]);
    cells.any(|cell| {
        let counts = parts || cell.bytes == Scalar::F64.bytes() && cell.kind() != Kind::Integer;
        counts && cell.contradiction.is_none()
    })
}

/// Some classes and all that pointers there lead to, but not beyond what is floats and nothing else.
fn reached_from(shape: &Shape, classes: impl Iterator<Item = Class>) -> Vec<Class> {
    let mut found: Vec<Class> = Vec::new();
    let mut seen = FxHashSet::default();
    let mut unseen: Vec<Class> = classes.collect();
    while let Some(id) = unseen.pop() {
        if !shape.classes[id].plain && seen.insert(id) {
            found.push(id);
            unseen.extend(pointees(shape, id));
        }
    }
    found
}

/// Whoever knows an address knows all addresses in the memory there; and where unseen code may have put pointers, any pointer may
/// be one of those.
fn spread_escapes(shape: &mut Shape) {
    let mut unseen: Vec<Class> = shape
        .classes
        .iter()
        .filter(|(_, class)| class.escapes || class.clobbered)
        .map(|(id, _)| id)
        .collect();
    while let Some(id) = unseen.pop() {
        let (escapes, clobbered, repointed) = {
            let class = &shape.classes[id];
            (class.escapes, class.clobbered, class.repointed)
        };
        for pointee in pointees(shape, id) {
            let class = &mut shape.classes[pointee];
            let known = |class: &ClassShape| {
                let of_pointers = (class.repointed, class.unknown_origin);
                (class.escapes, class.clobbered, of_pointers)
            };
            let before = known(class);
            class.escapes |= escapes;
            class.clobbered |= clobbered;
            class.repointed |= repointed;
            class.unknown_origin |= repointed;
            if before != known(class) {
                unseen.push(pointee);
            }
        }
    }
}

/// Memory that comes from outside or goes there is seen by others, and so is all that it leads to. In a group of several functions
/// what one of them makes is seen by the others.
fn spread_visibility<'r>(
    shape: &mut Shape,
    alone: bool,
    returned: impl Iterator<Item = &'r Trace>,
) {
    let made_here = |source: &Source| {
        matches!(
            source,
            Source::Stack(_) | Source::Alloc(_) | Source::Call(_)
        )
    };
    let mut unseen: Vec<Class> = Vec::new();
    for (id, class) in shape.classes.iter() {
        let local = alone
            && !class.unknown_origin
            && !class.sources.is_empty()
            && class.sources.iter().all(|(_, source)| made_here(source));
        if !local {
            unseen.push(id);
        }
    }
    while let Some(id) = unseen.pop() {
        if !std::mem::replace(&mut shape.classes[id].given, true) {
            unseen.extend(pointees(shape, id));
        }
    }
    let given = shape.classes.iter().filter(|(_, class)| class.given);
    unseen.extend(given.map(|(id, _)| id));
    for trace in returned {
        match *trace {
            Trace::Pointer(place) => unseen.push(place.class),
            Trace::Cell(cell) => {
                for leaf in shape.leaves(cell) {
                    unseen.extend(shape.cells[leaf as usize].pointer.map(|place| place.class));
                }
            }
            Trace::Nothing => {}
        }
    }
    while let Some(id) = unseen.pop() {
        if !std::mem::replace(&mut shape.classes[id].visible, true) {
            unseen.extend(pointees(shape, id));
        }
    }
}

/// Bytes of memory that others cannot reach and that nothing is known of are nothing to anybody: what uses them would be seen. Those that come from elsewhere or go there may
/// be something to others.
fn find_unused(
    shape: &mut Shape,
    function: &Function,
    values: &SecondaryMap<Value, Trace>,
    results: &[Trace],
) {
    let mut elsewhere: Vec<u32> = Vec::new();
    for class in shape.classes.values() {
        if class.visible || class.escapes || class.clobbered || class.unknown_origin {
            elsewhere.extend(class.fields.iter().map(|&(_, cell)| cell));
        }
    }
    // What functions that are seen take their arguments and results for is known already.
    let arguments = function.arguments().iter();
    for trace in arguments.map(|&value| &values[value]).chain(results) {
        if let Trace::Cell(cell) = *trace {
            elsewhere.extend(shape.leaves(cell));
        }
    }
    let mut known = vec![false; shape.cells.len()];
    for cell in elsewhere {
        known[cell as usize] = true;
    }
    for (cell, elsewhere) in shape.cells.iter_mut().zip(known) {
        cell.padding |= !elsewhere && !cell.foreign;
    }
}

/// The classes that the pointers in a class lead to.
fn pointees(shape: &Shape, class: Class) -> Vec<Class> {
    shape.classes[class]
        .fields
        .iter()
        .filter_map(|&(_, cell)| shape.cells[cell as usize].pointer)
        .map(|place| place.class)
        .collect()
}
