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
//! - a float may be moved to it, or is loaded or stored where it is loaded, and it may be moved on to a float or to memory,
//! - or it is loaded and does nothing but go elsewhere: its type is arbitrary.
//!
//! Where a word is used as a float or pointer, it is cast.

use crate::carried::{first_initial, first_yielded};
use crate::with_function::with_function;
use crate::word_moves::word_moves;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Builder, Constant, Cursor, Function, FunctionId, Module, Op, OpView, Opcode, Structure, Type,
    Value, ValueDef, all_ops, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Makes integers of words that may be floats or pointers; gives how many.
pub fn move_words(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let ops = all_ops(function);
        let found = find(function, &ops);
        let count = found.words.iter().chain(found.cast.iter()).count();
        if count > 0 {
            retype(function, &ops, &found);
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
    let back: Vec<(Value, Value)> = moves.iter().rev().map(|&(from, to)| (to, from)).collect();
    let all = |ty| {
        function
            .values
            .keys()
            .filter(move |&value| has_type(value, ty))
    };
    let from_pointers = reached(&moves, all(Type::PTR));
    let taken_for_pointers = pointers_among_floats(function, ops);
    let from_floats = reached(&moves, all(Type::F64).chain(taken_for_pointers));
    let to_pointers = reached(&back, all(Type::PTR));
    let to_floats = reached(&back, all(Type::F64));

    let memory = Memory::of(function, ops, &moves);
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
    let to_memory = reached(&back, stored.iter().copied());
    let to_mixed = reached(&back, stored_there.into_iter());
    let from_mixed = reached(&moves, loaded.into_iter());
    let may_be_other = |value: Value| match function.ty(value) {
        Type::F64 => {
            let moved = from_pointers.contains(value)
                && (to_pointers.contains(value) || to_memory.contains(value));
            moved || from_mixed.contains(value) && to_mixed.contains(value)
        }
        Type::PTR => {
            from_floats.contains(value) && (to_floats.contains(value) || to_memory.contains(value))
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

/// Some values, and all that they may be moved to.
fn reached(moves: &[(Value, Value)], from: impl Iterator<Item = Value>) -> EntitySet<Value> {
    let mut reached = EntitySet::new();
    reached.extend(from);
    loop {
        let mut grown = false;
        for &(from, to) in moves {
            grown |= reached.contains(from) && reached.insert(to);
        }
        if !grown {
            return reached;
        }
    }
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

/// Pointers that are loaded from where floats are loaded or stored as well.
fn pointers_among_floats(function: &Function, ops: &[Op]) -> Vec<Value> {
    let accessed = |ty: Type| {
        ops.iter().filter_map(move |&op| match function.view(op) {
            OpView::Load { address, .. } if function.ty(function.result(op)) == ty => {
                Some((op, place_of(function, address)))
            }
            OpView::Store { value, address, .. } if function.ty(value) == ty => {
                Some((op, place_of(function, address)))
            }
            _ => None,
        })
    };
    let with_floats: FxHashSet<(Value, i128)> =
        accessed(Type::F64).map(|(_, place)| place).collect();
    accessed(Type::PTR)
        .filter(|(op, place)| {
            function.ops[*op].opcode == Opcode::Load && with_floats.contains(place)
        })
        .map(|(op, _)| function.result(op))
        .collect()
}

/// A pointer and how many bytes behind it an address is.
fn place_of(function: &Function, address: Value) -> (Value, i128) {
    let (mut base, mut bytes) = (address, 0);
    while let Some(OpView::Offset {
        base: next,
        index,
        scale,
    }) = function.definition(base)
        && let Some(index) = function.int_of(index)
    {
        bytes += index * i128::from(scale);
        base = next;
    }
    (base, bytes)
}

/// Where pointers are loaded or stored, by the pointers that addresses there are counted from.
struct Memory<'f> {
    function: &'f Function,
    /// Pointers that others may be, by these.
    sources: FxHashMap<Value, Vec<Value>>,
    with_pointers: FxHashSet<Value>,
}

impl<'f> Memory<'f> {
    fn of(function: &'f Function, ops: &[Op], moves: &[(Value, Value)]) -> Memory<'f> {
        let mut sources: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for &(from, to) in moves {
            if function.ty(from).is_ptr() && function.ty(to).is_ptr() {
                sources.entry(to).or_default().push(from);
            }
        }
        let mut memory = Memory {
            function,
            sources,
            with_pointers: FxHashSet::default(),
        };
        let accessed = ops.iter().filter_map(|&op| match function.view(op) {
            OpView::Load { address, .. } => Some((function.result(op), address)),
            OpView::Store { value, address, .. } => Some((value, address)),
            _ => None,
        });
        for (_, address) in accessed.filter(|&(word, _)| function.ty(word) == Type::PTR) {
            let roots = memory.roots(address);
            memory.with_pointers.extend(roots);
        }
        memory
    }

    fn may_hold_pointers(&self, address: Value) -> bool {
        let mut roots = self.roots(address).into_iter();
        roots.any(|root| self.with_pointers.contains(&root))
    }

    /// The pointers that an address may be counted from.
    fn roots(&self, address: Value) -> FxHashSet<Value> {
        let mut roots = FxHashSet::default();
        let mut open = vec![address];
        while let Some(pointer) = open.pop() {
            let mut root = pointer;
            while let Some(OpView::Offset { base, .. }) = self.function.definition(root) {
                root = base;
            }
            if roots.insert(root) {
                open.extend(self.sources.get(&root).into_iter().flatten());
            }
        }
        roots
    }
}

/// Makes integers of words, with casts where something else is handed to them or they are used as what they were.
fn retype(function: &mut Function, ops: &[Op], found: &Found) {
    let Found { words, cast } = found;
    let structure = Structure::of(function);
    let types: FxHashMap<Value, Type> = (words.iter())
        .map(|word| (word, function.ty(word)))
        .collect();
    for word in words.iter() {
        function.values[word].ty = Type::I64;
    }
    let mut casts_away = FxHashMap::default();
    for &op in ops {
        let data = &function.ops[op];
        if let OpView::Cast(_, word) = data.view()
            && words.contains(word)
            && function.ty(data.results[0]) == Type::I64
        {
            casts_away.insert(data.results[0], word);
            place(function, &structure, op).remove(function);
            continue;
        }
        let receivers = receivers(function, &structure, op);
        for (position, receiver) in receivers.into_iter().enumerate() {
            let operand = function.ops[op].operands[position];
            let is_word = words.contains(operand);
            let wants_word = match receiver {
                Receiver::Value(value) => function.ty(value) == Type::I64,
                Receiver::Memory => is_word || cast.contains(operand),
                Receiver::Other => false,
            };
            let new = match (is_word, wants_word) {
                (true, false) => cast_back(function, &structure, op, operand, types[&operand]),
                (false, true) if function.ty(operand) != Type::I64 => {
                    as_integer(function, &structure, op, operand)
                }
                _ => continue,
            };
            function.ops[op].operands[position] = new;
        }
    }
    function.replace_operands(&casts_away);
}

/// Where an operand goes.
enum Receiver {
    /// To a value, as it is.
    Value(Value),
    /// To memory, as it is.
    Memory,
    /// Something is done with it that depends on its type.
    Other,
}

/// Where the operands of an operation go.
fn receivers(function: &Function, structure: &Structure, op: Op) -> Vec<Receiver> {
    let data = &function.ops[op];
    let mut receivers: Vec<Receiver> = data.operands.iter().map(|_| Receiver::Other).collect();
    match data.opcode {
        Opcode::Select => {
            receivers[1] = Receiver::Value(data.results[0]);
            receivers[2] = Receiver::Value(data.results[0]);
        }
        Opcode::Store => {
            let value = data
                .operands
                .iter()
                .position(|&operand| operand == data.value());
            receivers[value.expect("a store has a value")] = Receiver::Memory;
        }
        Opcode::For | Opcode::Loop => {
            let first = first_initial(data.opcode);
            for (place, &carried) in function.carried(op).iter().enumerate() {
                receivers[first + place] = Receiver::Value(carried);
            }
        }
        Opcode::Yield | Opcode::Again => {
            let outer = structure
                .region_of(op)
                .and_then(|region| structure.op_of(region));
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

/// A word as what it was before, for an operation.
fn cast_back(
    function: &mut Function,
    structure: &Structure,
    op: Op,
    word: Value,
    ty: Type,
) -> Value {
    let opcode = match ty.is_ptr() {
        true => Opcode::Inttoptr,
        false => Opcode::Bitcast,
    };
    before(function, structure, op).cast(opcode, word, ty)
}

/// A float or pointer as an integer, for an operation.
fn as_integer(function: &mut Function, structure: &Structure, op: Op, value: Value) -> Value {
    if let Some(constant) = function.constant_of(value)
        && let constant @ (Constant::Bits(_) | Constant::Undef) = constant.clone()
    {
        return function.constant(Type::I64, constant);
    }
    if let Some(OpView::Cast(Opcode::Bitcast | Opcode::Inttoptr, integer)) =
        function.definition(value)
        && function.ty(integer) == Type::I64
    {
        return integer;
    }
    let opcode = match function.ty(value).is_ptr() {
        true => Opcode::Ptrtoint,
        false => Opcode::Bitcast,
    };
    before(function, structure, op).cast(opcode, value, Type::I64)
}

fn place(function: &Function, structure: &Structure, op: Op) -> Cursor {
    let region = structure.region_of(op).expect("operations are in regions");
    Cursor::before(function, region, op)
}

fn before<'f>(function: &'f mut Function, structure: &Structure, op: Op) -> Builder<'f> {
    let cursor = place(function, structure, op);
    let location = function.ops[op].location;
    let mut builder = Builder::at(function, cursor);
    builder.location = location;
    builder
}
