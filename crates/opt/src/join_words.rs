//! Keeps words whole that LLVM splits and joins again.
//!
//! ```text
//! %low, %high = if %c -> (i8, i56) {                  %word = if %c -> (i64) {
//!   %l = load i8 %p align 8                             %w = load i64 %p align 8
//!   %h = load i56 %p1 align 1                           yield %w
//!   yield %l, %h                                →     } else { yield 7 }
//! } else { yield 7, 0 }
//! %hi = zext i56 %high to i64
//! %up = mul i64 %hi, 256
//! %lo = zext i8 %low to i64
//! %word = add i64 %up, %lo
//! ```
//!
//! If one variant of an `enum` has a small field where another has a float, LLVM moves every variant in parts of the small field's size. A part of a
//! float has no derivative of its own; the word has.
//!
//! From each sum that joins two parts, each bit cast of two lanes to one word, and each two adjacent stores, the pass follows both parts to their definitions: through branches, loops and `select`s, which then yield the whole word as
//! well. It ends where both parts are extracted from one word, loaded from adjacent memory, or constant. Parts of different origin are joined there. The rewrite is only
//! done if at least one whole word is found.

use crate::behaviour::behaviour_of;
use crate::carried::{add_carried, add_yielded, first_carried, yielded};
use crate::whole_parts::with_constant;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Builder, Constant, Cursor, Function, FunctionId, Module, Op, OpView, Opcode, Region, Scalar,
    Structure, Type, Value, ValueDef, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Joins the parts of words; returns the number of removed sums and stores.
pub fn join_words(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let mut joined = FxHashMap::default();
        for op in returning_ops(function) {
            let Some(parts) = put_together(function, op) else {
                continue;
            };
            let structure = Structure::of(function);
            if Search::new(module, function, &structure).finds_word(parts) {
                let word = join_before(module, function, &structure, parts, op);
                let word = as_type_of(function, &structure, word, op);
                joined.insert(function.result(op), word);
            }
        }
        if !joined.is_empty() {
            function.replace_operands(&joined);
        }
        let mut count = joined.len();
        loop {
            let structure = Structure::of(function);
            let Some(stores) = Search::new(module, function, &structure).find_stores() else {
                return count;
            };
            stores.join(module, function, &structure);
            count += 1;
        }
    })
}

/// The word that two parts make, for use by an operation.
fn join_before(
    module: &Module,
    function: &mut Function,
    structure: &Structure,
    parts: Parts,
    before: Op,
) -> Value {
    let region = structure.region_of(before).expect("an op of the body");
    let mut joiner = Joiner {
        module,
        function,
        structure,
        words: FxHashMap::default(),
    };
    joiner.join(parts, Spot { region, before })
}

/// A word as what an operation gives that makes it of parts.
fn as_type_of(function: &mut Function, structure: &Structure, word: Value, op: Op) -> Value {
    let ty = function.ty(function.result(op));
    if function.ty(word) == ty {
        return word;
    }
    let region = structure.region_of(op).expect("an op of the body");
    let place = Cursor::before(function, region, op);
    let mut b = Builder::at(function, place);
    b.location = b.function.ops[op].location;
    b.cast(Opcode::Bitcast, word, ty)
}

/// Two stores of which one puts a part of a word right behind the other.
struct Stores {
    first: Op,
    second: Op,
    /// The store of the lower part: one of both.
    low: Op,
    parts: Parts,
}

impl Stores {
    /// Puts one store of the word in the place of the second.
    fn join(self, module: &Module, function: &mut Function, structure: &Structure) {
        let word = join_before(module, function, structure, self.parts, self.second);
        let low = &function.ops[self.low];
        let (address, payload) = (low.address(), low.payload.clone());
        let second = &mut function.ops[self.second];
        *second.value_mut() = word;
        *second.address_mut() = address;
        second.payload = payload;
        let region = structure.region_of(self.first).expect("an op of the body");
        Cursor::before(function, region, self.first).remove(function);
    }
}

/// Where a store puts an integer of whole bytes: what it is a constant number of bytes away from, the number, and how many it stores.
fn stored(function: &Function, op: Op) -> Option<(Value, i128, i128)> {
    let OpView::Store { value, address, .. } = function.view(op) else {
        return None;
    };
    let ty = function.ty(value);
    if !ty.is_int() || ty.is_vector() || u64::from(ty.scalar().bits()) != 8 * ty.bytes() {
        return None;
    }
    let (base, at) = split_address(function, address);
    Some((base, at, i128::from(ty.bytes())))
}

/// How many operations may lie between two stores.
const LOOK_BACK: usize = 64;

/// The bytes of a word.
const WORD: i128 = 8;

/// The lower and the upper part of a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Parts {
    low: Value,
    high: Value,
}

impl Parts {
    fn bits(self, function: &Function) -> u32 {
        bits(function, self.low) + bits(function, self.high)
    }

    fn word(self, function: &Function) -> Type {
        integer(self.bits(function))
    }
}

/// The common origin of both parts.
enum Origin {
    /// This word, from this bit on.
    Word { word: Value, from: u32, last: Op },
    /// A constant word, or any.
    Constant(Constant),
    /// Two loads from neighbouring memory, of which the first loads the lower part; the second of the pair is the one that comes later.
    Loads { low: Op, last: Op },
    /// Results of one operation that chooses or repeats.
    Results { op: Op, low: usize, high: usize },
    /// Values that one loop carries, by the number of the carried value.
    Carried { op: Op, low: usize, high: usize },
    /// Selections under one condition.
    Selections {
        condition: Value,
        then: Parts,
        otherwise: Parts,
        last: Op,
    },
    /// Different things.
    Apart,
}

/// A place in a region at which operations are put.
#[derive(Clone, Copy)]
struct Spot {
    region: Region,
    before: Op,
}

struct Search<'a> {
    module: &'a Module,
    function: &'a Function,
    structure: &'a Structure,
}

impl<'a> Search<'a> {
    fn new(module: &'a Module, function: &'a Function, structure: &'a Structure) -> Search<'a> {
        Search {
            module,
            function,
            structure,
        }
    }

    /// Finds two stores that put the parts of one word together in memory.
    fn find_stores(&self) -> Option<Stores> {
        let function = self.function;
        for second in returning_ops(function) {
            let Some((base, at, bytes)) = stored(function, second) else {
                continue;
            };
            let region = self.structure.region_of(second)?;
            let ops = &function.regions[region].ops;
            let position = ops.iter().position(|&op| op == second)?;
            let mut passed = Vec::new();
            for &first in ops[..position].iter().rev().take(LOOK_BACK) {
                let is_apart = |&(start, size): &(i128, i128), from: i128, bytes: i128| {
                    start + size <= from || from + bytes <= start
                };
                if let Some((other, start, size)) = stored(function, first)
                    && other == base
                    && (start + size == at || at + bytes == start)
                    && passed.iter().all(|place| is_apart(place, start, size))
                {
                    let (low, high) = match start < at {
                        true => (first, second),
                        false => (second, first),
                    };
                    let value = |store: Op| function.ops[store].value();
                    let parts = Parts {
                        low: value(low),
                        high: value(high),
                    };
                    if size + bytes <= WORD && self.finds_word(parts) {
                        return Some(Stores {
                            first,
                            second,
                            low,
                            parts,
                        });
                    }
                }
                match self.passed(first, base) {
                    Some(places) => passed.extend(places),
                    None => break,
                }
            }
        }
        None
    }

    /// What other stores go past that go past an operation: the places relative to the same base that it writes. None if they cannot.
    fn passed(&self, op: Op, base: Value) -> Option<Option<(i128, i128)>> {
        let function = self.function;
        let data = &function.ops[op];
        if data.opcode != Opcode::Store {
            let behaviour = behaviour_of(self.module, function, op);
            let idle = data.regions.is_empty()
                && !(behaviour.reads || behaviour.writes || behaviour.stops);
            return idle.then_some(None);
        }
        let (other, start) = split_address(function, data.address());
        let size = i128::from(function.ty(data.value()).bytes());
        let is_object = |base: Value| {
            let made = function.def_op(base).map(|(op, _)| function.ops[op].opcode);
            matches!(made, Some(Opcode::Stack | Opcode::Alloc))
        };
        match other == base {
            true => Some(Some((start, size))),
            false => (is_object(base) && is_object(other)).then_some(None),
        }
    }

    /// Whether two parts come from one word at least on one of the ways on which they come.
    fn finds_word(&self, parts: Parts) -> bool {
        self.finds_word_unseen(parts, &mut FxHashSet::default())
    }

    fn finds_word_unseen(&self, parts: Parts, seen: &mut FxHashSet<Parts>) -> bool {
        if !seen.insert(parts) {
            return false;
        }
        match self.origin(parts) {
            Origin::Word { .. } | Origin::Loads { .. } => true,
            Origin::Constant(_) | Origin::Apart => false,
            Origin::Selections {
                then, otherwise, ..
            } => self.finds_word_unseen(then, seen) || self.finds_word_unseen(otherwise, seen),
            Origin::Results { op, low, high } | Origin::Carried { op, low, high } => {
                let mut sources = given(self.function, op, low, high);
                sources.extend(initial(self.function, op, low, high));
                let mut sources = sources.into_iter();
                sources.any(|from| self.finds_word_unseen(from, seen))
            }
        }
    }

    fn origin(&self, parts: Parts) -> Origin {
        let Parts { low, high } = parts;
        let function = self.function;
        if let (Some(low), Some(high)) = (constant(function, low), constant(function, high)) {
            return Origin::Constant(match (low, high) {
                (None, None) => Constant::Undef,
                (low, high) => {
                    let shift = bits(function, parts.low);
                    Constant::Bits(low.unwrap_or(0) | high.unwrap_or(0) << shift)
                }
            });
        }
        if let (
            &ValueDef::Argument { region, index: low },
            &ValueDef::Argument {
                region: other,
                index: high,
            },
        ) = (&function.values[low].def, &function.values[high].def)
        {
            return match self.structure.op_of(region).filter(|_| region == other) {
                Some(op) => self.carried(op, low as usize, high as usize),
                None => Origin::Apart,
            };
        }
        let (Some((first, low)), Some((second, high))) =
            (function.def_op(low), function.def_op(high))
        else {
            return Origin::Apart;
        };
        let opcodes = (function.ops[first].opcode, function.ops[second].opcode);
        if first == second {
            return match opcodes.0 {
                Opcode::If | Opcode::Switch | Opcode::For | Opcode::Loop => Origin::Results {
                    op: first,
                    low,
                    high,
                },
                _ => Origin::Apart,
            };
        }
        match opcodes {
            (Opcode::TruncInt, Opcode::TruncInt) => self.taken_from(parts, first, second),
            (Opcode::Load, Opcode::Load) => self.neighbours(first, second),
            (Opcode::Select, Opcode::Select) => self.selections(first, second),
            _ => Origin::Apart,
        }
    }

    /// Two arguments of a loop's body.
    fn carried(&self, op: Op, low: usize, high: usize) -> Origin {
        let first = first_carried(self.function.ops[op].opcode);
        match (low.checked_sub(first), high.checked_sub(first)) {
            (Some(low), Some(high)) => Origin::Carried { op, low, high },
            _ => Origin::Apart,
        }
    }

    /// `trunc_int %word` and `trunc_int (lshr %word, bits)`.
    fn taken_from(&self, parts: Parts, low: Op, high: Op) -> Origin {
        let function = self.function;
        let ((word, from), (other, next)) = (taken(function, low), taken(function, high));
        if word != other || from + bits(function, parts.low) != next {
            return Origin::Apart;
        }
        let is_later = self.structure.order(low) > self.structure.order(high);
        Origin::Word {
            word,
            from,
            last: if is_later { low } else { high },
        }
    }

    /// Loads in one region with nothing written between them, the second from where the first ends.
    fn neighbours(&self, low: Op, high: Op) -> Origin {
        let function = self.function;
        let place = |load: Op| split_address(function, function.ops[load].address());
        let ((base, at), (other, next)) = (place(low), place(high));
        let bytes = i128::from(function.ty(function.result(low)).bytes());
        let Some(region) = self.structure.region_of(low) else {
            return Origin::Apart;
        };
        if base != other || at + bytes != next || self.structure.region_of(high) != Some(region) {
            return Origin::Apart;
        }
        let ops = &function.regions[region].ops;
        let position = |op| ops.iter().position(|&other| other == op);
        let (Some(first), Some(second)) = (position(low), position(high)) else {
            return Origin::Apart;
        };
        let between = &ops[first.min(second)..first.max(second)];
        match between
            .iter()
            .any(|&op| behaviour_of(self.module, function, op).writes)
        {
            true => Origin::Apart,
            false => Origin::Loads {
                low,
                last: ops[first.max(second)],
            },
        }
    }

    fn selections(&self, low: Op, high: Op) -> Origin {
        let ops = &self.function.ops;
        let (first, second) = (&ops[low].operands, &ops[high].operands);
        if first[0] != second[0] || self.structure.region_of(low) != self.structure.region_of(high)
        {
            return Origin::Apart;
        }
        let is_later = self.structure.order(low) > self.structure.order(high);
        Origin::Selections {
            condition: first[0],
            then: Parts {
                low: first[1],
                high: second[1],
            },
            otherwise: Parts {
                low: first[2],
                high: second[2],
            },
            last: if is_later { low } else { high },
        }
    }
}

struct Joiner<'a> {
    module: &'a Module,
    function: &'a mut Function,
    structure: &'a Structure,
    words: FxHashMap<Parts, Value>,
}

impl Joiner<'_> {
    /// The word that two parts make, which both are known at a spot.
    fn join(&mut self, parts: Parts, spot: Spot) -> Value {
        if let Some(&word) = self.words.get(&parts) {
            return word;
        }
        let search = Search::new(self.module, self.function, self.structure);
        let ty = parts.word(self.function);
        let word = match search.origin(parts) {
            Origin::Word { word, from, .. } if from == 0 && self.function.ty(word) == ty => word,
            Origin::Word { word, from, last } => {
                let region = self.structure.region_of(last).expect("an op of the body");
                self.put(region, last, After, |b| {
                    let shift = b.function.int(b.ty(word), i128::from(from));
                    let word = match from {
                        0 => word,
                        _ => b.binary(Opcode::Lshr, word, shift),
                    };
                    b.cast(Opcode::TruncInt, word, ty)
                })
            }
            Origin::Constant(constant) => self.function.constant(ty, constant),
            Origin::Loads { low, last } => {
                let data = &self.function.ops[low];
                let (address, payload) = (data.address(), data.payload.clone());
                let region = self.structure.region_of(last).expect("a load of the body");
                self.put(region, last, After, |b| {
                    b.value(Opcode::Load, &[address], payload, ty)
                })
            }
            Origin::Selections {
                condition,
                then,
                otherwise,
                last,
            } => {
                let region = self.structure.region_of(last).expect("an op of the body");
                let here = Spot {
                    region,
                    before: last,
                };
                let (then, otherwise) = (self.join(then, here), self.join(otherwise, here));
                self.put(region, last, After, |b| {
                    b.select(condition, then, otherwise)
                })
            }
            Origin::Results { op, low, high } | Origin::Carried { op, low, high } => {
                self.join_given(op, low, high);
                self.words[&parts]
            }
            // What differs from way to way is put together where it is given, not here: elsewhere another word may be meant.
            Origin::Apart => return self.put_together(parts, spot),
        };
        self.words.insert(parts, word);
        word
    }

    /// Makes a `select`, branch or loop yield the whole word, too.
    fn join_given(&mut self, op: Op, low: usize, high: usize) {
        let results = &self.function.ops[op].results;
        let result = Parts {
            low: results[low],
            high: results[high],
        };
        let ty = result.word(self.function);
        match initial(self.function, op, low, high) {
            Some(start) => {
                let region = self.structure.region_of(op).expect("an op of the body");
                let start = self.join(start, Spot { region, before: op });
                let (argument, word) = add_carried(self.function, op, start);
                let carried = self.function.carried(op);
                let carried = Parts {
                    low: carried[low],
                    high: carried[high],
                };
                self.words.insert(carried, argument);
                self.words.insert(result, word);
            }
            None => {
                let word = self.function.add_result(op, ty);
                self.words.insert(result, word);
            }
        }
        for region in self.function.ops[op].regions.clone() {
            let Some(values) = yielded(self.function, region) else {
                continue;
            };
            let parts = Parts {
                low: values[low],
                high: values[high],
            };
            let before = self.function.terminator(region);
            let word = self.join(parts, Spot { region, before });
            add_yielded(self.function, region, word);
        }
    }

    fn put_together(&mut self, parts: Parts, spot: Spot) -> Value {
        let ty = parts.word(self.function);
        let shift = bits(self.function, parts.low);
        self.put(spot.region, spot.before, Before, |b| {
            let (low, high) = (
                b.cast(Opcode::Zext, parts.low, ty),
                b.cast(Opcode::Zext, parts.high, ty),
            );
            let factor = b.function.int(ty, 1 << shift);
            let high = b.binary(Opcode::Mul, high, factor);
            b.binary(Opcode::Add, high, low)
        })
    }

    /// Builds operations before or after another of a region.
    fn put(
        &mut self,
        region: Region,
        op: Op,
        side: Side,
        build: impl FnOnce(&mut Builder<'_>) -> Value,
    ) -> Value {
        let place = match side {
            Before => Cursor::before(self.function, region, op),
            After => Cursor::after(self.function, region, op),
        };
        let mut b = Builder::at(self.function, place);
        b.location = b.function.ops[op].location;
        build(&mut b)
    }
}

enum Side {
    Before,
    After,
}
use Side::{After, Before};

/// The parts of which an operation makes a word: `add (mul (zext %high), 2^bits), (zext %low)`, and what is the same.
fn put_together(function: &Function, op: Op) -> Option<Parts> {
    let data = &function.ops[op];
    if let OpView::Cast(Opcode::Bitcast, vector) = function.view(op) {
        return lanes_of_word(function, vector, function.ty(data.results[0]));
    }
    if !matches!(data.opcode, Opcode::Add | Opcode::Or) {
        return None;
    }
    let ty = function.ty(data.results[0]);
    if !ty.is_int() || ty.is_vector() {
        return None;
    }
    let [a, b] = data.both();
    [(a, b), (b, a)].into_iter().find_map(|(upper, lower)| {
        let (upper, shift) = match with_constant(function, upper, Opcode::Mul) {
            Some((upper, factor)) => {
                let shift = factor.trailing_zeros();
                (
                    upper,
                    (factor > 0 && factor == 1 << shift).then_some(shift)?,
                )
            }
            None => {
                let (upper, shift) = with_constant(function, upper, Opcode::Shl)?;
                (upper, u32::try_from(shift).ok()?)
            }
        };
        let parts = Parts {
            low: extended(function, lower)?,
            high: extended(function, upper)?,
        };
        let whole = bits(function, parts.low) == shift && parts.word(function) == ty;
        (whole && shift % 8 == 0).then_some(parts)
    })
}

/// The two lanes of a vector that is taken for one word: LLVM shuffles doubles as pairs of integers.
fn lanes_of_word(function: &Function, vector: Value, word: Type) -> Option<Parts> {
    let ty = function.ty(vector);
    if word.is_vector() || !ty.is_vector() || ty.lanes() != 2 || !ty.scalar().is_int() {
        return None;
    }
    let mut lanes = [None; 2];
    let mut rest = vector;
    while let Some(OpView::Insert {
        vector,
        scalar,
        lane,
    }) = function.definition(rest)
    {
        let lane = usize::try_from(function.int_of(lane)?).ok()?;
        lanes.get_mut(lane)?.get_or_insert(scalar);
        rest = vector;
    }
    let [Some(low), Some(high)] = lanes else {
        return None;
    };
    bits(function, low)
        .is_multiple_of(8)
        .then_some(Parts { low, high })
}

/// The operands of a branch's or loop's terminators for two of its results, in each region.
fn given(function: &Function, op: Op, low: usize, high: usize) -> Vec<Parts> {
    let regions = function.ops[op].regions.iter();
    let yields = regions.filter_map(|&region| yielded(function, region));
    yields
        .map(|values| Parts {
            low: values[low],
            high: values[high],
        })
        .collect()
}

/// What a loop starts with for two of the values that it carries; none if the operation is no loop.
fn initial(function: &Function, op: Op, low: usize, high: usize) -> Option<Parts> {
    match function.view(op) {
        OpView::For { initial, .. } | OpView::Loop { initial, .. } => Some(Parts {
            low: initial[low],
            high: initial[high],
        }),
        _ => None,
    }
}

/// The bits of a constant; none for other values.
fn constant(function: &Function, value: Value) -> Option<Option<u128>> {
    match function.constant_of(value)? {
        Constant::Bits(raw) => Some(Some(*raw)),
        Constant::Undef => Some(None),
        _ => None,
    }
}

/// The word from which an operation extracts a part, and the first bit.
fn taken(function: &Function, op: Op) -> (Value, u32) {
    let whole = function.ops[op].operand();
    match with_constant(function, whole, Opcode::Lshr) {
        Some((word, shift)) => (word, shift.clamp(0, 128) as u32),
        None => (whole, 0),
    }
}

/// The base of an address and its constant offset.
fn split_address(function: &Function, address: Value) -> (Value, i128) {
    let (mut base, mut at) = (address, 0);
    while let Some(OpView::Offset {
        base: next,
        index,
        scale,
    }) = function.definition(base)
        && let Some(index) = function.int_of(index)
    {
        at += index * i128::from(scale);
        base = next;
    }
    (base, at)
}

fn extended(function: &Function, value: Value) -> Option<Value> {
    match function.definition(value)? {
        OpView::Cast(Opcode::Zext, narrow) => Some(narrow),
        _ => None,
    }
}

fn bits(function: &Function, value: Value) -> u32 {
    match function.ty(value).scalar() {
        Scalar::Int(bits) => u32::from(bits),
        other => 8 * other.bytes() as u32,
    }
}

fn integer(bits: u32) -> Type {
    Type::scalar_of(Scalar::Int(bits as u8))
}
