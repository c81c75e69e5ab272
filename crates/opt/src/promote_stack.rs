//! Promotes memory to values (mem2reg, SROA): allocations of the function whose every access has a constant offset.
//!
//! ```text
//! %p = stack 8 align 8                               %r = if %c -> (f64) { yield %x } else { yield 1.0 }
//! store f64 1.0, %p align 8                          return %r
//! if %c { store f64 %x, %p align 8 yield }     →
//! %r = load f64 %p align 8
//! return %r
//! ```
//!
//! Applies to `stack` and `alloc` of constant size, if the address is used only, through constant `offset`s, in
//! loads, stores, fills, copies of a few bytes and (for `alloc`) `free`, and if any two accesses either cover the same bytes or are disjoint. A value
//! stored in a branch becomes a result of it, a value stored in a loop a carried value; dead-code elimination removes
//! the unused ones. A load before any store is `undef`: it was an error.
//!
//! Stack memory may also be passed to a function that stops the program: just before, it is allocated again and filled, so that
//! only the path into the trap pays for it.

use crate::carried::{add_carried, add_yielded};
use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{
    Alignment, Builder, Constant, Cursor, Function, FunctionId, Module, Op, OpView, Opcode,
    Payload, Region, Scalar, Structure, Type, Value, all_ops, ones, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Promotes memory to values; returns the number of removed `stack`s and `alloc`s.
pub fn promote_stack(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let Some(body) = function.body else { return 0 };
        let (promoted, places, addresses) = find_places(function);
        if promoted.is_empty() {
            return 0;
        }
        let written = find_written(function, &places);
        let mut promoter = Promoter {
            contents: contents_of(&places),
            addresses,
            places,
            written,
            current: FxHashMap::default(),
            substitution: Substitution::new(),
        };
        promoter.visit(function, body);
        promoted.len()
    })
}

/// A place in promoted memory: the object and the byte where it starts.
type Place = (Op, u64);

/// Places with their types.
type Places = SmallVec<[(Place, Type); 4]>;

/// The place in possibly promoted memory that each pointer points to.
type Addresses = SecondaryMap<Value, Option<Place>>;

/// The action of an operation on promoted memory.
enum Access {
    /// Makes the object: all its places start as this byte, or undefined.
    Make(Places, Option<u8>),
    Load(Place),
    Store(Place),
    /// Sets these places to copies of one byte.
    Fill(Places, u8),
    /// Stops the program in a function that gets to see these objects.
    Show(SmallVec<[Op; 2]>),
    /// Computes an address or releases the object: nothing is left of it.
    Gone,
}

/// How memory is used that might be promoted.
struct Candidate {
    size: u64,
    fits: bool,
    /// The type of each place that loads and stores name.
    places: FxHashMap<u64, Type>,
    fills: Vec<(Op, u64, u64, u8)>,
}

/// The objects to promote, and the action of each operation on them.
fn find_places(function: &mut Function) -> (Vec<Op>, FxHashMap<Op, Access>, Addresses) {
    let ops = all_ops(function);
    let (mut candidates, addresses) = find_candidates(function, &ops);
    candidates.retain(|_, candidate| candidate.fits && candidate.is_tidy());
    // The other end of a copy is memory, which is read or written instead.
    let is_promoted = |address: Value| {
        addresses[address].is_some_and(|(object, _)| candidates.contains_key(&object))
    };
    let copies = ops.iter().copied().filter(|&op| {
        let data = &function.ops[op];
        matches!(data.opcode, Opcode::Copy | Opcode::Move)
            && (is_promoted(data.destination()) || is_promoted(data.source()))
    });
    let copies: FxHashSet<Op> = copies.collect();
    copy_by_value(function, &copies);
    let ops = all_ops(function);
    let accesses = describe(function, &ops, &candidates, &addresses);
    let mut promoted: Vec<Op> = candidates.into_keys().collect();
    promoted.sort_unstable();
    (promoted, accesses, addresses)
}

/// Memory that might be promoted by how the operations use it, and the addresses within it.
fn find_candidates(function: &Function, ops: &[Op]) -> (FxHashMap<Op, Candidate>, Addresses) {
    let mut candidates: FxHashMap<Op, Candidate> = FxHashMap::default();
    // Addresses within candidates: the object and the byte.
    let mut addresses = Addresses::new();
    // Memory allocated on the path into a trap belongs to the trap.
    let returning: FxHashSet<Op> = returning_ops(function).into_iter().collect();
    for &op in ops {
        let data = &function.ops[op];
        match data.view() {
            OpView::Stack { size, .. } | OpView::Alloc { size, .. } if returning.contains(&op) => {
                let size = function
                    .int_of(size)
                    .and_then(|size| u64::try_from(size).ok());
                if let Some(size) = size {
                    addresses[data.results[0]] = Some((op, 0));
                    candidates.insert(
                        op,
                        Candidate {
                            size,
                            fits: true,
                            places: FxHashMap::default(),
                            fills: Vec::new(),
                        },
                    );
                }
            }
            OpView::Offset { base, index, scale } => {
                let Some((object, start)) = addresses[base] else {
                    continue;
                };
                match constant_offset(function, start, index, scale) {
                    Some(at) => addresses[data.results[0]] = Some((object, at)),
                    None => refuse(&mut candidates, object),
                }
            }
            OpView::Load { address, .. } => {
                if let Some((object, at)) = addresses[address] {
                    note_access(&mut candidates, object, at, function.ty(data.results[0]));
                }
            }
            OpView::Store { value, address, .. } => {
                if let Some((object, at)) = addresses[address] {
                    note_access(&mut candidates, object, at, function.ty(value));
                }
                if let Some((object, _)) = addresses[value] {
                    refuse(&mut candidates, object);
                }
            }
            OpView::Fill {
                destination,
                byte,
                size,
                ..
            } => {
                let Some((object, at)) = addresses[destination] else {
                    continue;
                };
                let byte = function.int_of(byte).map(|byte| byte as u8);
                let size = function
                    .int_of(size)
                    .and_then(|size| u64::try_from(size).ok());
                match (byte, size, candidates.get_mut(&object)) {
                    (Some(byte), Some(size), Some(candidate)) => {
                        candidate.fills.push((op, at, size, byte));
                    }
                    _ => refuse(&mut candidates, object),
                }
            }
            OpView::Copy {
                destination,
                source,
                ..
            }
            | OpView::Move {
                destination,
                source,
                ..
            } => {
                for end in [destination, source] {
                    let Some((object, at)) = addresses[end] else {
                        continue;
                    };
                    match copied_as(function, op) {
                        Some(ty) => note_access(&mut candidates, object, at, ty),
                        None => refuse(&mut candidates, object),
                    }
                }
            }
            // The start of an `alloc` may be released; anything else is an error that stays where it is.
            OpView::Free { address, .. } => {
                if let Some((object, at)) = addresses[address]
                    && (at != 0 || function.ops[object].opcode != Opcode::Alloc)
                {
                    refuse(&mut candidates, object);
                }
            }
            _ => {
                for &operand in &data.operands {
                    if let Some((object, _)) = addresses[operand]
                        && !(data.opcode == Opcode::Trap
                            && function.ops[object].opcode == Opcode::Stack)
                    {
                        refuse(&mut candidates, object);
                    }
                }
            }
        }
    }
    (candidates, addresses)
}

/// The integer as which a copy can be made: as large as it.
fn copied_as(function: &Function, op: Op) -> Option<Type> {
    let bytes = function.int_of(function.ops[op].size())?;
    (1..=8)
        .contains(&bytes)
        .then(|| Type::scalar_of(Scalar::Int(8 * bytes as u8)))
}

/// Turns copies into loads and stores.
fn copy_by_value(function: &mut Function, copies: &FxHashSet<Op>) {
    if copies.is_empty() {
        return;
    }
    let regions: Vec<Region> = function.regions.keys().collect();
    for region in regions {
        for op in function.take_ops(region) {
            if !copies.contains(&op) {
                function.append(region, op);
                continue;
            }
            let ty = copied_as(function, op);
            let ty = ty.expect("only copies of few bytes touch what is promoted");
            let data = &function.ops[op];
            let Payload::Align(align) = data.payload else {
                unreachable!("a verified copy has an alignment")
            };
            let (destination, source, location) =
                (data.destination(), data.source(), data.location);
            let mut b = Builder::new(function, region);
            b.location = location;
            let value = b.load(ty, source, align);
            b.store(value, destination, align);
        }
    }
}

/// All places of each object, with their types.
fn contents_of(accesses: &FxHashMap<Op, Access>) -> FxHashMap<Op, Places> {
    let made = accesses.iter().filter_map(|(&op, access)| match access {
        Access::Make(places, _) => Some((op, places.clone())),
        _ => None,
    });
    made.collect()
}

fn refuse(candidates: &mut FxHashMap<Op, Candidate>, object: Op) {
    if let Some(candidate) = candidates.get_mut(&object) {
        candidate.fits = false;
    }
}

fn note_access(candidates: &mut FxHashMap<Op, Candidate>, object: Op, at: u64, ty: Type) {
    let Some(candidate) = candidates.get_mut(&object) else {
        return;
    };
    let known = *candidate.places.entry(at).or_insert(ty);
    let inside = at
        .checked_add(ty.bytes())
        .is_some_and(|end| end <= candidate.size);
    if known != ty || !inside {
        candidate.fits = false;
    }
}

fn constant_offset(function: &Function, start: u64, index: Value, scale: i64) -> Option<u64> {
    let bytes = function.int_of(index)?.checked_mul(i128::from(scale))?;
    u64::try_from(i128::from(start).checked_add(bytes)?).ok()
}

impl Candidate {
    /// Whether no two places overlap, and fills cover whole places only.
    fn is_tidy(&self) -> bool {
        let mut places: Vec<(u64, u64)> = self
            .places
            .iter()
            .map(|(&at, ty)| (at, at + ty.bytes()))
            .collect();
        places.sort_unstable();
        places.windows(2).all(|pair| pair[0].1 <= pair[1].0)
            && self.fills.iter().all(|&(_, start, size, _)| {
                let Some(end) = start.checked_add(size).filter(|&end| end <= self.size) else {
                    return false;
                };
                places
                    .iter()
                    .all(|&(from, to)| to <= start || end <= from || (start <= from && to <= end))
            })
    }

    fn places_within(&self, object: Op, start: u64, end: u64) -> Places {
        let mut places: Places = self
            .places
            .iter()
            .filter(|(at, _)| (start..end).contains(at))
            .map(|(&at, &ty)| ((object, at), ty))
            .collect();
        places.sort_unstable();
        places
    }
}

fn describe(
    function: &Function,
    ops: &[Op],
    candidates: &FxHashMap<Op, Candidate>,
    addresses: &Addresses,
) -> FxHashMap<Op, Access> {
    let mut accesses = FxHashMap::default();
    for (&object, candidate) in candidates {
        let start = match &function.ops[object].payload {
            Payload::Alloc { zeroed: true, .. } => Some(0),
            _ => None,
        };
        let places = candidate.places_within(object, 0, candidate.size);
        accesses.insert(object, Access::Make(places, start));
        for &(fill, start, size, byte) in &candidate.fills {
            let places = candidate.places_within(object, start, start + size);
            accesses.insert(fill, Access::Fill(places, byte));
        }
    }
    let place_of =
        |value: Value| addresses[value].filter(|(object, _)| candidates.contains_key(object));
    for &op in ops {
        let data = &function.ops[op];
        let access = match data.view() {
            OpView::Load { address, .. } => place_of(address).map(Access::Load),
            OpView::Store { address, .. } => place_of(address).map(Access::Store),
            OpView::Offset { base: address, .. } | OpView::Free { address, .. } => {
                place_of(address).map(|_| Access::Gone)
            }
            OpView::Trap { .. } => {
                let mut shown: SmallVec<[Op; 2]> = SmallVec::new();
                for (object, _) in data.operands.iter().filter_map(|&value| place_of(value)) {
                    if !shown.contains(&object) {
                        shown.push(object);
                    }
                }
                (!shown.is_empty()).then_some(Access::Show(shown))
            }
            _ => None,
        };
        if let Some(access) = access {
            accesses.insert(op, access);
        }
    }
    accesses
}

/// For each structured operation, the places that its regions write and that live longer than it, with their types.
fn find_written(
    function: &Function,
    accesses: &FxHashMap<Op, Access>,
) -> FxHashMap<Op, Vec<(Place, Type)>> {
    let structure = Structure::of(function);
    let mut written: FxHashMap<Op, Vec<(Place, Type)>> = FxHashMap::default();
    let mut seen: FxHashSet<(Op, Place)> = FxHashSet::default();
    let mut note = |op: Op, place: Place, ty: Type| {
        let home = structure.region_of(place.0);
        let mut region = structure.region_of(op);
        while region != home {
            let Some(holder) = region.and_then(|region| structure.op_of(region)) else {
                return;
            };
            if !seen.insert((holder, place)) {
                return;
            }
            written.entry(holder).or_default().push((place, ty));
            region = structure.region_of(holder);
        }
    };
    // In the order of the text, so that results come out the same every time.
    for op in all_ops(function) {
        match accesses.get(&op) {
            Some(Access::Store(place)) => {
                note(op, *place, function.ty(function.ops[op].value()));
            }
            Some(Access::Fill(places, _)) => {
                for &(place, ty) in places {
                    note(op, place, ty);
                }
            }
            _ => {}
        }
    }
    written
}

struct Promoter {
    places: FxHashMap<Op, Access>,
    written: FxHashMap<Op, Vec<(Place, Type)>>,
    /// All places of each object.
    contents: FxHashMap<Op, Places>,
    addresses: Addresses,
    /// The current contents of each place.
    current: FxHashMap<Place, Value>,
    substitution: Substitution,
}

impl Promoter {
    fn visit(&mut self, function: &mut Function, region: Region) {
        let mut shown: SmallVec<[Op; 2]> = SmallVec::new();
        function.retain_ops(region, |function, op| {
            self.substitution.apply(function, op);
            match self.places.get(&op) {
                None => {}
                Some(Access::Gone) => return false,
                Some(Access::Show(objects)) => {
                    shown = objects.clone();
                    return true;
                }
                Some(Access::Make(places, byte)) => {
                    let byte = *byte;
                    for &(place, ty) in places {
                        let value = repeated(function, ty, byte);
                        self.current.insert(place, value);
                    }
                    return false;
                }
                Some(Access::Fill(places, byte)) => {
                    let byte = *byte;
                    for &(place, ty) in places {
                        let value = repeated(function, ty, Some(byte));
                        self.current.insert(place, value);
                    }
                    return false;
                }
                Some(Access::Load(place)) => {
                    let value = self.current[place];
                    self.substitution.replace(function.result(op), value);
                    return false;
                }
                Some(&Access::Store(place)) => {
                    self.current.insert(place, function.ops[op].value());
                    return false;
                }
            }
            if !function.ops[op].regions.is_empty() {
                self.visit_structured(function, op);
            }
            true
        });
        if !shown.is_empty() {
            self.show(function, region, &shown);
        }
    }

    /// Allocates objects again before the trap at the end of a region, with their contents.
    fn show(&self, function: &mut Function, region: Region, objects: &[Op]) {
        let trap = function.terminator(region);
        for &object in objects {
            let data = function.ops[object].clone();
            let ahead = Cursor::before_terminator(function, region);
            let mut b = Builder::at(function, ahead);
            b.location = b.function.ops[trap].location;
            let memory = b.value(Opcode::Stack, &data.operands, data.payload, Type::PTR);
            for &(place, _) in &self.contents[&object] {
                let value = self.current[&place];
                if !matches!(b.function.constant_of(value), Some(Constant::Undef)) {
                    let address = b.offset_bytes(memory, place.1 as i64);
                    // The object's alignment may be lower than the type's.
                    b.store(value, address, Alignment::ONE);
                }
            }
            for index in 0..b.function.ops[trap].arguments().len() {
                let operand = b.function.ops[trap].arguments()[index];
                if let Some((_, at)) = self.addresses[operand].filter(|place| place.0 == object) {
                    let address = b.offset_bytes(memory, at as i64);
                    b.function.ops[trap].arguments_mut()[index] = address;
                }
            }
        }
    }

    fn visit_structured(&mut self, function: &mut Function, op: Op) {
        let written = self.written.remove(&op).unwrap_or_default();
        let data = &function.ops[op];
        let regions = data.regions.clone();
        let before: Vec<Value> = written
            .iter()
            .map(|(place, _)| self.current[place])
            .collect();
        let mut after: Vec<Value> = Vec::with_capacity(written.len());
        if matches!(data.opcode, Opcode::For | Opcode::Loop) {
            for (&(place, _), &initial) in written.iter().zip(&before) {
                let (argument, result) = add_carried(function, op, initial);
                self.current.insert(place, argument);
                after.push(result);
            }
        } else {
            for &(_, ty) in &written {
                after.push(function.add_result(op, ty));
            }
        }
        for region in regions {
            if !matches!(function.ops[op].opcode, Opcode::For | Opcode::Loop) {
                for (&(place, _), &value) in written.iter().zip(&before) {
                    self.current.insert(place, value);
                }
            }
            self.visit(function, region);
            for &(place, _) in &written {
                let value = self.current[&place];
                add_yielded(function, region, value);
            }
        }
        for (&(place, _), &value) in written.iter().zip(&after) {
            self.current.insert(place, value);
        }
    }
}

/// A value whose bytes are all the same, or undefined.
fn repeated(function: &mut Function, ty: Type, byte: Option<u8>) -> Value {
    let Some(byte) = byte else {
        return function.undef(ty);
    };
    let raw = u128::from_ne_bytes([byte; 16]) & ones(ty.scalar().bits());
    function.constant(ty, Constant::Bits(raw))
}

#[cfg(test)]
mod tests {
    use super::promote_stack;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn what_a_panic_looks_at_is_made_for_it() {
        check(
            promote_stack,
            "declare @panic(ptr, i64, ptr)
             func @f(%n: i64, %m: i64) -> (i64) {
               %p = stack 24 align 8
               %q = offset %p, 8
               store i64 %n, %p align 8
               for %i: i64 = 0 to %n step 1 {
                 %a = load i64 %p align 8
                 %b = add i64 %a, %i
                 store i64 %b, %p align 8
                 %c = icmp ult i64 %b, %m
                 if %c {
                   yield
                 } else {
                   trap @panic(%p, %i, %q)
                 }
                 yield
               }
               store i32 1, %q align 4
               %r = load i64 %p align 8
               return %r
             }",
            expect![[r#"
                declare @panic(ptr, i64, ptr)

                func @f(%n: i64, %m: i64) -> (i64) {
                  %0 = for %i: i64 = 0 to %n step 1 with (%1: i64 = %n) {
                    %b = add i64 %1, %i
                    %c = icmp ult i64 %b, %m
                    if %c {
                      yield
                    } else {
                      %2 = stack 24 align 8
                      %3 = offset %2, 0
                      store i64 %b, %3 align 1
                      %4 = offset %2, 0
                      %5 = offset %2, 8
                      trap @panic(%4, %i, %5)
                    }
                    yield %b
                  }
                  return %0
                }
            "#]],
        );
    }

    #[test]
    fn branches_get_results() {
        check(
            promote_stack,
            "func @f(%c: i1, %x: f64) -> (f64) {
               %p = stack 8 align 8
               store f64 1.0, %p align 8
               if %c {
                 store f64 %x, %p align 8
                 yield
               }
               %r = load f64 %p align 8
               return %r
             }",
            expect![[r#"
                func @f(%c: i1, %x: f64) -> (f64) {
                  %0 = if %c -> (f64) {
                    yield %x
                  } else {
                    yield 1.0
                  }
                  return %0
                }
            "#]],
        );
    }

    #[test]
    fn loops_carry_what_they_write() {
        check(
            promote_stack,
            "func @f(%n: i64, %x: f64) -> (f64, i64) {
               %p = stack 16 align 8
               %q = offset %p, 1 * 8
               store f64 0.0, %p align 8
               store i64 0, %q align 8
               for %i: i64 = 0 to %n step 1 {
                 %a = load f64 %p align 8
                 %b = fadd f64 %a, %x
                 store f64 %b, %p align 8
                 loop {
                   %k = load i64 %q align 8
                   %k1 = add i64 %k, 1
                   store i64 %k1, %q align 8
                   %again = icmp slt i64 %k1, %i
                   again %again
                 }
                 yield
               }
               %r = load f64 %p align 8
               %s = load i64 %q align 8
               return %r, %s
             }",
            expect![[r#"
                func @f(%n: i64, %x: f64) -> (f64, i64) {
                  %0, %1 = for %i: i64 = 0 to %n step 1 with (%2: f64 = 0.0, %3: i64 = 0) {
                    %b = fadd f64 %2, %x
                    %4 = loop with (%5: i64 = %3) {
                      %k1 = add i64 %5, 1
                      %again = icmp slt i64 %k1, %i
                      again %again, %k1
                    }
                    yield %b, %4
                  }
                  return %0, %1
                }
            "#]],
        );
    }

    #[test]
    fn heap_memory_fills_and_traps() {
        check(
            promote_stack,
            r#"func @f(%c: i1, %x: f64) -> (f64, f32) {
               %p = alloc 16 align 8 zeroed
               %q = offset %p, 8
               fill %q, 255, 8 align 8
               if %c {
                 store f64 %x, %p align 8
                 yield
               } else {
                 trap "no"
               }
               %r = load f64 %p align 8
               %s = load f32 %q align 4
               free %p
               return %r, %s
             }"#,
            expect![[r#"
                func @f(%c: i1, %x: f64) -> (f64, f32) {
                  %0 = if %c -> (f64) {
                    yield %x
                  } else {
                    trap "no"
                  }
                  return %0, 0xffffffff
                }
            "#]],
        );
    }

    #[test]
    fn memory_made_in_a_loop_belongs_to_one_turn() {
        check(
            promote_stack,
            "func @f(%n: i64, %x: f64) -> (f64) {
               %r = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                 %p = stack 8 align 8
                 store f64 %a, %p align 8
                 for %j: i64 = 0 to %i step 1 {
                   store f64 %x, %p align 8
                   yield
                 }
                 %b = load f64 %p align 8
                 yield %b
               }
               return %r
             }",
            expect![[r#"
                func @f(%n: i64, %x: f64) -> (f64) {
                  %r = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %0 = for %j: i64 = 0 to %i step 1 with (%1: f64 = %a) {
                      yield %x
                    }
                    yield %0
                  }
                  return %r
                }
            "#]],
        );
    }

    #[test]
    fn addresses_that_go_elsewhere_stay() {
        check_unchanged(
            promote_stack,
            "declare @use(ptr)
             func @f(%n: i64, %x: f64, %out: ptr) -> (f64, f64, f64) {
               %given = stack 8 align 8
               call @use(%given)
               %indexed = stack 80 align 8
               %at = offset %indexed, %n * 8
               store f64 %x, %at align 8
               %a = load f64 %at align 8
               %mixed = stack 8 align 8
               store f64 %x, %mixed align 8
               %b = load f32 %mixed align 4
               %beyond = stack 4 align 8
               %c = load f64 %beyond align 8
               %stored = stack 8 align 8
               store ptr %stored, %out align 8
               %d = fpext f32 %b to f64
               return %a, %d, %c
             }",
        );
    }

    #[test]
    fn results_stay_the_same() {
        check_same_results(
            promote_stack,
            "func @main(%n: i64, %x: f64) -> (f64, i64) {
               %p = stack 16 align 8
               %q = offset %p, 1 * 8
               store f64 0.0, %p align 8
               store i64 0, %q align 8
               for %i: i64 = 0 to %n step 1 {
                 %a = load f64 %p align 8
                 %b = fadd f64 %a, %x
                 %odd = and i64 %i, 1
                 switch i64 %odd {
                   case 0 { store f64 %b, %p align 8 yield }
                   default { store i64 %i, %q align 8 yield }
                 }
                 loop {
                   %k = load i64 %q align 8
                   %k1 = add i64 %k, 1
                   store i64 %k1, %q align 8
                   %again = icmp slt i64 %k1, %i
                   again %again
                 }
                 yield
               }
               %r = load f64 %p align 8
               %s = load i64 %q align 8
               return %r, %s
             }",
            &[
                &[Datum::i64(0), Datum::f64(1.5)],
                &[Datum::i64(1), Datum::f64(1.5)],
                &[Datum::i64(6), Datum::f64(1.5)],
            ],
        );
    }
}
