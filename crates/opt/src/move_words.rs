//! Makes integers of words whose type is not known where they are.
//!
//! ```text
//! %p = load ptr %from align 8                %p = load i64 %from align 8
//! store ptr %p, %to align 8           →      store i64 %p, %to align 8
//! ```
//!
//! The word of an `enum` is a float in one variant and a pointer in another, and only its tag tells. A compiler may choose any type where such words are moved: a float is moved as a pointer, or a
//! pointer as a float, also in branches and loops. The points-to analysis finds out what an integer carries, and its derivative moves along; a pointer has no derivative, and a float
//! leads nowhere.
//!
//! ```text
//! %word = if %c -> (ptr) {                   %word = if %c -> (i64) {
//!   %bits = bitcast f64 %x to i64              %bits = bitcast f64 %x to i64
//!   %taken = inttoptr i64 %bits to ptr         yield %bits
//!   yield %taken                        →    } else {
//! } else {                                     %made = alloc 8 align 8
//!   %made = alloc 8 align 8                    %address = ptrtoint ptr %made to i64
//!   yield %made                                yield %address
//! }                                          }
//! store ptr %word, %to align 8               store i64 %word, %to align 8
//! ```
//!
//! A float becomes an integer if
//! - a pointer may be moved to it, and it may be moved on to a pointer or to memory,
//! - or it may come from memory and go to memory where pointers are loaded or stored as well. (Of other floats the type may be all that is known of the bytes.)
//!
//! A pointer becomes one if
//! - a float may be moved to it, or is loaded or stored at the same number of bytes behind the same value as it, and it may be moved on to a float or to memory,
//! - or it is loaded and does nothing but go elsewhere: its type is arbitrary.
//!
//! Where a word is used as a float or pointer, it is cast.

use crate::carried::{first_initial, first_yielded};
use crate::with_function::with_function;
use crate::word_moves::{reached_by_moves, reversed_moves, word_moves};
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Builder, Constant, Function, FunctionId, Module, Op, OpView, Opcode, Region, Type, Value,
    ValueDef, all_ops, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Makes integers of words that may be floats or pointers; gives how many.
pub fn move_words(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let ops = all_ops(function);
        let found = find(function, &ops);
        let count = found.words.iter().chain(found.cast.iter()).count();
        if count > 0 {
            Retyping::run(function, &found);
        }
        count
    })
}

/// The words that become integers.
struct Found {
    /// What is loaded, chosen or handed on.
    words: EntitySet<Value>,
    /// What is cast from an integer only to be stored.
    cast: EntitySet<Value>,
}

fn find(function: &Function, ops: &[Op]) -> Found {
    let mut words = EntitySet::new();
    words.extend(moved_pointers(function, ops));
    let has_type =
        |value: Value, ty: Type| function.ty(value) == ty && !function.is_constant(value);
    let is_word = |value| {
        [Type::F64, Type::PTR, Type::I64]
            .iter()
            .any(|&ty| has_type(value, ty))
    };
    let moves = word_moves(function, is_word);
    let back = reversed_moves(&moves);
    let all = |ty| {
        function
            .values
            .keys()
            .filter(move |&value| has_type(value, ty))
    };
    let from_pointers = reached_by_moves(&moves, all(Type::PTR));
    let places = Places::of_function(function, ops);
    let taken_for_pointers = pointers_among_floats(function, ops, &places);
    let from_floats = reached_by_moves(&moves, all(Type::F64).chain(taken_for_pointers));
    let to_pointers = reached_by_moves(&back, all(Type::PTR));
    let to_floats = reached_by_moves(&back, all(Type::F64));

    let mut memory = Memory::of(function, ops, &moves, &places);
    let (mut loaded, mut stored, mut stored_there) = (Vec::new(), Vec::new(), Vec::new());
    for &op in ops {
        match function.view(op) {
            OpView::Load { address, .. } if memory.may_hold_pointers(address) => {
                loaded.push(function.result(op));
            }
            OpView::Store { value, address, .. } => {
                stored.push(value);
                if memory.may_hold_pointers(address) {
                    stored_there.push(value);
                }
            }
            _ => {}
        }
    }
    let to_memory = reached_by_moves(&back, stored.iter().copied());
    let to_mixed = reached_by_moves(&back, stored_there);
    let from_mixed = reached_by_moves(&moves, loaded);
    let may_be_other = |value: Value| match function.ty(value) {
        Type::F64 => {
            let moved = from_pointers.contains(&value)
                && (to_pointers.contains(&value) || to_memory.contains(&value));
            moved || from_mixed.contains(&value) && to_mixed.contains(&value)
        }
        Type::PTR => {
            from_floats.contains(&value)
                && (to_floats.contains(&value) || to_memory.contains(&value))
        }
        _ => false,
    };
    let handed_on = (function.values.keys())
        .filter(|&value| is_word(value) && may_be_other(value) && is_handed_on(function, value));
    words.extend(handed_on);
    let is_cast = |value: Value| {
        let definition = function.definition(value);
        matches!(
            definition,
            Some(OpView::Cast(Opcode::Inttoptr | Opcode::Bitcast, _))
        )
    };
    let mut cast = EntitySet::new();
    cast.extend((stored.into_iter()).filter(|&value| is_cast(value) && may_be_other(value)));
    // What a loop carries has the type of its result.
    for &op in ops {
        let data = &function.ops[op];
        if matches!(data.opcode, Opcode::For | Opcode::Loop) {
            for (&carried, &result) in function.carried(op).iter().zip(&data.results) {
                if words.contains(carried) || words.contains(result) {
                    words.extend([carried, result]);
                }
            }
        }
    }
    Found { words, cast }
}

/// Whether a value is loaded, chosen, or handed on by a branch or loop.
fn is_handed_on(function: &Function, value: Value) -> bool {
    match &function.values[value].def {
        ValueDef::Argument { region, .. } => Some(*region) != function.body,
        _ => function.def_op(value).is_some_and(|(op, _)| {
            let data = &function.ops[op];
            matches!(data.opcode, Opcode::Load | Opcode::Select) || !data.regions.is_empty()
        }),
    }
}

/// Pointers that are loaded and only stored elsewhere, as far as the function returns.
fn moved_pointers(function: &Function, ops: &[Op]) -> Vec<Value> {
    let (mut stored, mut used) = (EntitySet::new(), EntitySet::new());
    for op in returning_ops(function) {
        let data = &function.ops[op];
        for &operand in &data.operands {
            match data.opcode == Opcode::Store && operand == data.value() {
                true => stored.insert(operand),
                false => used.insert(operand),
            };
        }
    }
    let loaded = ops
        .iter()
        .filter(|&&op| function.ops[op].opcode == Opcode::Load);
    loaded
        .map(|&op| function.result(op))
        .filter(|&word| {
            function.ty(word) == Type::PTR && stored.contains(word) && !used.contains(word)
        })
        .collect()
}

/// Pointers that are loaded from where floats are loaded or stored as well: at the same number of bytes behind the same value.
fn pointers_among_floats(function: &Function, ops: &[Op], places: &Places) -> Vec<Value> {
    let accessed = |ty: Type| {
        let accesses = accesses(function, ops).filter(move |&(_, word, _)| function.ty(word) == ty);
        accesses.map(|(op, _, address)| (op, places.of(address)))
    };
    let with_floats: FxHashSet<Place> = accessed(Type::F64)
        .map(|(_, place)| place)
        .filter(|(_, bytes)| bytes.is_some())
        .collect();
    accessed(Type::PTR)
        .filter(|(op, place)| {
            function.ops[*op].opcode == Opcode::Load && with_floats.contains(place)
        })
        .map(|(op, _)| function.result(op))
        .collect()
}

/// The loads and stores, with what is loaded or stored, and where.
fn accesses<'f>(
    function: &'f Function,
    ops: &'f [Op],
) -> impl Iterator<Item = (Op, Value, Value)> + 'f {
    ops.iter().filter_map(|&op| match function.view(op) {
        OpView::Load { address, .. } => Some((op, function.result(op), address)),
        OpView::Store { value, address, .. } => Some((op, value, address)),
        _ => None,
    })
}

/// A pointer, and how many bytes behind it, if that is known.
type Place = (Value, Option<i128>);

/// What addresses are counted from.
struct Places {
    offsets: FxHashMap<Value, Place>,
}

impl Places {
    fn of_function(function: &Function, ops: &[Op]) -> Places {
        let mut places = Places {
            offsets: FxHashMap::default(),
        };
        for &op in ops {
            if let OpView::Offset { base, index, scale } = function.view(op) {
                let (root, bytes) = places.of(base);
                let more = function
                    .int_of(index)
                    .map(|index| index * i128::from(scale));
                let bytes = bytes.zip(more).map(|(bytes, more)| bytes + more);
                places.offsets.insert(function.result(op), (root, bytes));
            }
        }
        places
    }

    fn of(&self, address: Value) -> Place {
        let place = self.offsets.get(&address).copied();
        place.unwrap_or((address, Some(0)))
    }
}

/// Where pointers are loaded or stored.
struct Memory<'p> {
    places: &'p Places,
    /// Pointers that others may be, by these.
    sources: FxHashMap<Value, Vec<Value>>,
    /// What a pointer may be counted from.
    roots: FxHashMap<Value, Vec<Place>>,
    /// How many bytes behind each root there are pointers; none for anywhere.
    with_pointers: FxHashMap<Value, FxHashSet<Option<i128>>>,
}

impl<'p> Memory<'p> {
    fn of(
        function: &Function,
        ops: &[Op],
        moves: &[(Value, Value)],
        places: &'p Places,
    ) -> Memory<'p> {
        let mut sources: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for &(from, to) in moves {
            if function.ty(from).is_ptr() && function.ty(to).is_ptr() {
                sources.entry(to).or_default().push(from);
            }
        }
        let mut memory = Memory {
            places,
            sources,
            roots: FxHashMap::default(),
            with_pointers: FxHashMap::default(),
        };
        for (_, word, address) in accesses(function, ops) {
            if function.ty(word) == Type::PTR {
                for (root, bytes) in memory.roots_of(address) {
                    memory.with_pointers.entry(root).or_default().insert(bytes);
                }
            }
        }
        memory
    }

    fn may_hold_pointers(&mut self, address: Value) -> bool {
        !self.with_pointers.is_empty()
            && self.roots_of(address).into_iter().any(|(root, bytes)| {
                let pointers = self.with_pointers.get(&root);
                pointers.is_some_and(|pointers| {
                    bytes.is_none() || pointers.contains(&bytes) || pointers.contains(&None)
                })
            })
    }

    /// The places that an address may be.
    fn roots_of(&mut self, address: Value) -> Vec<Place> {
        let (base, bytes) = self.places.of(address);
        if !self.roots.contains_key(&base) {
            let roots = self.find_roots(base);
            self.roots.insert(base, roots);
        }
        let behind = |&(root, more): &Place| (root, bytes.zip(more).map(|(a, b)| a + b));
        self.roots[&base].iter().map(behind).collect()
    }

    fn find_roots(&self, base: Value) -> Vec<Place> {
        let mut found: FxHashMap<Value, Option<i128>> = FxHashMap::default();
        let mut order = Vec::new();
        let mut open = vec![(base, Some(0))];
        while let Some((root, bytes)) = open.pop() {
            // A pointer that a loop moves on is anywhere.
            let known = match found.get(&root) {
                Some(&known) if known == bytes || known.is_none() => continue,
                Some(_) => None,
                None => {
                    order.push(root);
                    bytes
                }
            };
            found.insert(root, known);
            for &source in self.sources.get(&root).into_iter().flatten() {
                let (next, more) = self.places.of(source);
                open.push((next, known.zip(more).map(|(a, b)| a + b)));
            }
        }
        order.into_iter().map(|root| (root, found[&root])).collect()
    }
}

/// Makes integers of words, with casts where something else is handed to them or they are used as what they were.
struct Retyping<'f> {
    function: &'f mut Function,
    found: &'f Found,
    /// What words were.
    types: FxHashMap<Value, Type>,
    /// What were casts of words to integers, and the words.
    casts_away: FxHashMap<Value, Value>,
}

impl Retyping<'_> {
    fn run(function: &mut Function, found: &Found) {
        let words = || found.words.iter();
        let types = words().map(|word| (word, function.ty(word))).collect();
        for word in words() {
            function.values[word].ty = Type::I64;
        }
        let mut retyping = Retyping {
            function,
            found,
            types,
            casts_away: FxHashMap::default(),
        };
        if let Some(body) = retyping.function.body {
            retyping.visit(body, None);
        }
        let Retyping {
            function,
            casts_away,
            ..
        } = retyping;
        function.replace_operands(&casts_away);
    }

    /// Rewrites the operations of a region of an operation.
    fn visit(&mut self, region: Region, outer: Option<Op>) {
        // Each value is cast once in each region.
        let mut cast: FxHashMap<Value, Value> = FxHashMap::default();
        for op in self.function.take_ops(region) {
            if self.is_cast_away(op) {
                continue;
            }
            let receivers = receivers(self.function, outer, op);
            for (position, receiver) in receivers.into_iter().enumerate() {
                let operand = self.function.ops[op].operands[position];
                if !self.must_be_cast(operand, receiver) {
                    continue;
                }
                let new = match cast.get(&operand) {
                    Some(&known) => known,
                    None => self.cast(region, op, operand),
                };
                cast.insert(operand, new);
                self.function.ops[op].operands[position] = new;
            }
            for inner in self.function.ops[op].regions.clone() {
                self.visit(inner, Some(op));
            }
            self.function.append(region, op);
        }
    }

    /// Whether an operation makes an integer of what is one now. Conversions of numbers are none of these.
    fn is_cast_away(&mut self, op: Op) -> bool {
        let OpView::Cast(Opcode::Bitcast | Opcode::Ptrtoint, word) = self.function.view(op) else {
            return false;
        };
        let result = self.function.result(op);
        let is_same = self.found.words.contains(word) && self.function.ty(result) == Type::I64;
        if is_same {
            self.casts_away.insert(result, word);
        }
        is_same
    }

    fn must_be_cast(&self, operand: Value, receiver: Receiver) -> bool {
        let is_word = self.found.words.contains(operand);
        let wants_word = match receiver {
            Receiver::Value(value) => self.function.ty(value) == Type::I64,
            Receiver::Memory => is_word || self.found.cast.contains(operand),
            Receiver::Other => false,
        };
        match is_word {
            true => !wants_word,
            false => wants_word && self.function.ty(operand) != Type::I64,
        }
    }

    /// A word as what it was, or something else as an integer, before an operation at the end of a region.
    fn cast(&mut self, region: Region, op: Op, value: Value) -> Value {
        let (opcode, to) = match self.types.get(&value) {
            Some(&ty) if ty.is_ptr() => (Opcode::Inttoptr, ty),
            Some(&ty) => (Opcode::Bitcast, ty),
            None => {
                if let Some(integer) = self.integer_of(value) {
                    return integer;
                }
                match self.function.ty(value).is_ptr() {
                    true => (Opcode::Ptrtoint, Type::I64),
                    false => (Opcode::Bitcast, Type::I64),
                }
            }
        };
        let location = self.function.ops[op].location;
        let mut builder = Builder::new(self.function, region);
        builder.location = location;
        builder.cast(opcode, value, to)
    }

    /// The integer that a float or pointer is, or was made of.
    fn integer_of(&mut self, value: Value) -> Option<Value> {
        if let Some(constant) = self.function.constant_of(value)
            && let constant @ (Constant::Bits(_) | Constant::Undef) = constant.clone()
        {
            return Some(self.function.constant(Type::I64, constant));
        }
        match self.function.definition(value)? {
            OpView::Cast(Opcode::Bitcast | Opcode::Inttoptr, integer)
                if self.function.ty(integer) == Type::I64 =>
            {
                Some(integer)
            }
            _ => None,
        }
    }
}

/// Where an operand goes.
#[derive(Clone, Copy)]
enum Receiver {
    /// It becomes this value.
    Value(Value),
    /// To memory, of which the type does not matter.
    Memory,
    /// Something is done with it that depends on its type.
    Other,
}

/// Where the operands of an operation go, in a region of `outer`.
fn receivers(function: &Function, outer: Option<Op>, op: Op) -> Vec<Receiver> {
    let data = &function.ops[op];
    let mut receivers = vec![Receiver::Other; data.operands.len()];
    match data.opcode {
        Opcode::Select => {
            receivers[1] = Receiver::Value(data.results[0]);
            receivers[2] = Receiver::Value(data.results[0]);
        }
        Opcode::Store => {
            let mut operands = data.operands.iter();
            let value = operands.position(|&operand| operand == data.value());
            receivers[value.expect("a store has a value")] = Receiver::Memory;
        }
        Opcode::For | Opcode::Loop => {
            let first = first_initial(data.opcode);
            for (place, &carried) in function.carried(op).iter().enumerate() {
                receivers[first + place] = Receiver::Value(carried);
            }
        }
        Opcode::Yield | Opcode::Again => {
            if let Some(outer) = outer {
                let first = first_yielded(data.opcode);
                for (place, &result) in function.ops[outer].results.iter().enumerate() {
                    receivers[first + place] = Receiver::Value(result);
                }
            }
        }
        _ => {}
    }
    receivers
}
