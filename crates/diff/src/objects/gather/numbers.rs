//! Integers: which of them transport floats or addresses, and which are plain integers.

use super::super::Source;
use super::super::graph::{CellId, Integer, Target};
use super::super::span::Span;
use super::Gather;
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{
    Constant, Form, Function, IntPredicate, Op, OpView, Opcode, Scalar, Type, Value, returning_ops,
    sign_extend,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Integers that are put together from smaller ones, or taken apart into them, as small structures are when they
/// are passed in registers. Nobody calculates with them.
pub(super) struct Packing {
    /// `or` or sum of a value and another that is shifted past it: the low and the high part.
    joined: FxHashMap<Op, (Value, Value)>,
    /// `trunc_int` of a value, or of a value shifted by whole bytes: the value, and from which byte on.
    taken: FxHashMap<Op, (Value, u64)>,
    /// The shifts and extensions that only serve these.
    serving: FxHashSet<Op>,
}

impl Packing {
    pub(super) fn of(function: &Function) -> Packing {
        let mut packing = Packing {
            joined: FxHashMap::default(),
            taken: FxHashMap::default(),
            serving: FxHashSet::default(),
        };
        let mut uses: SecondaryMap<Value, u32> = SecondaryMap::new();
        let mut served: FxHashMap<Value, u32> = FxHashMap::default();
        let ops = returning_ops(function);
        for &op in &ops {
            let data = &function.ops[op];
            for &operand in &data.operands {
                uses[operand] += 1;
            }
            if !matches!(data.opcode, Opcode::Or | Opcode::Add | Opcode::TruncInt) {
                continue;
            }
            let ty = function.ty(data.results[0]);
            if ty.is_vector() || !is_whole(ty) {
                continue;
            }
            if data.opcode == Opcode::TruncInt {
                let (value, from) = match shifted(function, data.operand(), Opcode::Lshr) {
                    Some((value, bits)) => {
                        // What is shifted for single bytes may as well be calculated with.
                        if ty.bytes() > 1 {
                            *served.entry(data.operand()).or_default() += 1;
                        }
                        (value, bits / 8)
                    }
                    None => (data.operand(), 0),
                };
                if is_whole(function.ty(value)) && from + ty.bytes() <= function.ty(value).bytes() {
                    packing.taken.insert(op, (value, from));
                }
            } else if let Some((low, high, inner)) = halves(function, data.both(), ty) {
                packing.joined.insert(op, (low, high));
                for value in inner {
                    *served.entry(value).or_default() += 1;
                }
            }
        }
        for (value, count) in served {
            if uses[value] == count
                && let Some((op, _)) = function.def_op(value)
            {
                packing.serving.insert(op);
            }
        }
        packing
    }

    /// Whether an operation on integers only moves them.
    pub(super) fn moves(&self, op: Op) -> bool {
        self.joined.contains_key(&op) || self.taken.contains_key(&op) || self.serving.contains(&op)
    }
}

/// Whether a type is an integer of whole bytes of which memory holds nothing but its bits.
fn is_whole(ty: Type) -> bool {
    ty.is_int() && !ty.is_vector() && u64::from(ty.scalar().bits()) == 8 * ty.bytes()
}

/// `value` and `bits` where the operand is `opcode value, bits`, by whole bytes.
fn shifted(function: &Function, operand: Value, opcode: Opcode) -> Option<(Value, u64)> {
    let (value, bits) = with_constant(function, operand, opcode)?;
    let bits = u64::try_from(bits).ok()?;
    (bits % 8 == 0 && bits > 0).then_some((value, bits))
}

/// As [`shifted`] to the left, where that is a product.
fn multiplied(function: &Function, operand: Value) -> Option<(Value, u64)> {
    let (value, factor) = with_constant(function, operand, Opcode::Mul)?;
    let bits = u64::from(factor.trailing_zeros());
    (factor == 1i128.checked_shl(bits as u32)? && bits % 8 == 0 && bits > 0)
        .then_some((value, bits))
}

/// `value` and `number` where the operand is `opcode value, number`.
fn with_constant(function: &Function, operand: Value, opcode: Opcode) -> Option<(Value, i128)> {
    match function.definition(operand)? {
        OpView::Binary(other, a, b) if other == opcode => Some((a, function.int_of(b)?)),
        _ => None,
    }
}

/// The narrower value that an operand is, filled with zeros.
fn extended(function: &Function, operand: Value) -> Option<Value> {
    match function.definition(operand)? {
        OpView::Cast(Opcode::Zext, narrow) if is_whole(function.ty(narrow)) => Some(narrow),
        _ => None,
    }
}

/// The two parts that an `or` or a sum puts together without overlap and rest, and the values in between.
fn halves(function: &Function, [a, b]: [Value; 2], ty: Type) -> Option<(Value, Value, [Value; 3])> {
    for (first, second) in [(a, b), (b, a)] {
        let Some((wide, bits)) =
            shifted(function, second, Opcode::Shl).or_else(|| multiplied(function, second))
        else {
            continue;
        };
        let (Some(low), Some(high)) = (extended(function, first), extended(function, wide)) else {
            continue;
        };
        let sizes = (function.ty(low).bytes(), function.ty(high).bytes());
        if 8 * sizes.0 == bits && sizes.0 + sizes.1 == ty.bytes() {
            return Some((low, high, [first, second, wide]));
        }
    }
    None
}

/// Whether an integer constant says that it is an integer: zero may be anything, and a large one the bits of a float. A single byte is
/// neither float nor pointer; where it is part of one, the memory says so.
pub(in crate::objects) fn is_telling(function: &Function, value: Value) -> bool {
    let ty = function.ty(value);
    let small = match ty.bytes() / u64::from(ty.lanes()) {
        0..2 => 1 << 8,
        2..4 => 1 << 8,
        4..8 => 1 << 20,
        _ => 1i128 << 32,
    };
    match (function.constant_of(value), ty.scalar()) {
        (Some(Constant::Bits(raw)), Scalar::Int(bits)) => {
            let number = sign_extend(*raw, u32::from(bits));
            number != 0 && number.abs() < small
        }
        _ => false,
    }
}

impl Gather<'_> {
    /// An operation that concerns only values: what it says about pointers, and about integers that carry something.
    pub(super) fn number(&mut self, b: usize, op: Op) {
        let function = self.bodies[b].function;
        let data = &function.ops[op];
        let Some(&result) = data.results.first() else {
            return;
        };
        let ty = function.ty(result);
        match data.opcode {
            Opcode::Bitcast => self.bitcast(b, op, data.operand(), result),
            Opcode::Ptrtoint => {
                let target = self.place_of(b, data.operand());
                if ty == Type::I64 {
                    self.assign(b, result, target);
                } else if let (Some(target), Some(cell)) = (target, self.cell_of(b, result))
                    && ty.scalar().bytes() == Scalar::Ptr.bytes()
                {
                    for lane in 0..u64::from(ty.lanes()) {
                        let part = self.graph.part(cell, 8 * lane, 8);
                        self.graph.set_pointer(part, target);
                    }
                }
            }
            Opcode::Inttoptr => self.make_address(b, op, data.operand(), result),
            Opcode::Add | Opcode::Sub | Opcode::And | Opcode::Or if ty == Type::I64 => {
                self.address_arithmetic(b, op);
                if let Some(&(low, high)) = self.bodies[b].packing.joined.get(&op)
                    && let Some(cell) = self.cell_of(b, result)
                {
                    self.join_halves(b, low, high, cell);
                }
            }
            Opcode::Or | Opcode::Add => {
                if let Some(&(low, high)) = self.bodies[b].packing.joined.get(&op)
                    && let Some(cell) = self.cell_of(b, result)
                {
                    self.join_halves(b, low, high, cell);
                }
            }
            Opcode::TruncInt => {
                if let Some((value, from)) = self.taken_by(b, op)
                    && let (Some(whole), Some(own)) =
                        (self.cell_of(b, value), self.cell_of(b, result))
                {
                    self.give_address(b, value, whole);
                    let part = self.graph.part(whole, from, ty.bytes());
                    self.graph.merge_cells(part, own);
                    self.take_address(b, result);
                }
            }
            Opcode::Splat | Opcode::Extract | Opcode::Insert | Opcode::Shuffle => {
                self.lanes(b, op);
            }
            _ => {}
        }
        if self.late && self.hides_address(b, op) {
            let operands = self.bodies[b].function.ops[op].operands.clone();
            let hidden = operands.iter().filter_map(|&value| self.place_of(b, value));
            let hidden: Vec<Target> = hidden.collect();
            self.hidden.extend(hidden);
        }
    }

    /// The value of which an operation takes a part, and from which byte on. A single byte is taken for a number, unless it is one of an address.
    fn taken_by(&mut self, b: usize, op: Op) -> Option<(Value, u64)> {
        let &(value, from) = self.bodies[b].packing.taken.get(&op)?;
        let function = self.bodies[b].function;
        let is_byte = function.ty(function.result(op)).bytes() == 1;
        (!is_byte || self.place_of(b, value).is_some()).then_some((value, from))
    }

    /// Whether an operation makes something of an address of which the address can be made again, though it carries none.
    ///
    /// Distances, the lowest bits, and remainders are numbers.
    fn hides_address(&mut self, b: usize, op: Op) -> bool {
        let body = &self.bodies[b];
        let data = &body.function.ops[op];
        let hides = match data.opcode {
            Opcode::TruncInt => self.taken_by(b, op).is_none(),
            Opcode::Lshr => !body.packing.serving.contains(&op),
            Opcode::Shl
            | Opcode::Ashr
            | Opcode::Mul
            | Opcode::Xor
            | Opcode::Bswap
            | Opcode::Bitreverse
            | Opcode::Zext
            | Opcode::Sext => true,
            _ => false,
        };
        let (operands, results) = (data.operands.clone(), data.results.clone());
        hides
            && results
                .iter()
                .all(|&value| self.place_of(b, value).is_none())
            && operands
                .iter()
                .any(|&value| self.place_of(b, value).is_some())
    }

    /// Addresses that are made of numbers may be any that were hidden in numbers.
    pub(super) fn find_hidden(&mut self) {
        let hidden = std::mem::take(&mut self.hidden);
        for index in 0..self.forged.len() {
            let (b, pointer) = self.forged[index];
            for &hidden in &hidden {
                self.bodies[b].forged.insert(pointer);
                if let Some(forged) = self.bodies[b].pointers[pointer].target {
                    let (forged, hidden) = (self.graph.resolve(forged), self.graph.resolve(hidden));
                    if forged.class != hidden.class {
                        self.graph.join(forged, hidden);
                    }
                }
            }
        }
    }

    fn join_halves(&mut self, b: usize, low: Value, high: Value, cell: CellId) {
        let size = self.bodies[b].function.ty(low).bytes();
        let (left, right) = self.graph.split(cell, size);
        for (half, part) in [(low, left), (high, right)] {
            self.same_integer(b, half, part);
            self.give_address(b, half, part);
        }
    }

    fn bitcast(&mut self, b: usize, op: Op, from: Value, to: Value) {
        let function = self.bodies[b].function;
        let (source, target) = (function.ty(from), function.ty(to));
        match (source.scalar(), target.scalar()) {
            (Scalar::Ptr, Scalar::Ptr) => self.choose(b, &[from], to),
            (Scalar::Int(_), Scalar::Int(_)) => {
                if let (Some(a), Some(z)) = (self.cell_of(b, from), self.cell_of(b, to))
                    && source.bytes() == target.bytes()
                {
                    self.give_address(b, from, a);
                    self.graph.merge_cells(a, z);
                    self.take_address(b, to);
                }
            }
            (Scalar::Int(_), Scalar::Ptr) => self.make_address(b, op, from, to),
            (Scalar::Ptr, Scalar::Int(_)) => {
                let place = self.place_of(b, from);
                if target == Type::I64 {
                    self.assign(b, to, place);
                } else if let (Some(place), Some(cell)) = (place, self.cell_of(b, to)) {
                    self.graph.set_pointer(cell, place);
                }
            }
            (Scalar::Int(_), float) if float.is_float() => {
                self.carries(b, from, to, Gather::comes_from);
            }
            (float, Scalar::Int(_)) if float.is_float() => {
                self.carries(b, to, from, Gather::goes_to);
                self.take_address(b, to);
            }
            _ => {}
        }
    }

    /// An integer holds the bits of floats, which come from it or go there.
    fn carries(
        &mut self,
        b: usize,
        integer: Value,
        bits: Value,
        moves: fn(&mut Self, usize, Value, CellId),
    ) {
        let Some(cell) = self.cell_of(b, integer) else {
            return;
        };
        let floats = self.bodies[b].function.ty(bits);
        let bytes = floats.scalar().bytes();
        if self.bodies[b].function.ty(integer).bytes() != floats.bytes() {
            return;
        }
        for lane in 0..u64::from(floats.lanes()) {
            let part = self.graph.part(cell, lane * bytes, bytes);
            self.graph.set_float(part, floats.scalar());
            moves(self, b, bits, part);
        }
        self.give_address(b, integer, cell);
    }

    fn make_address(&mut self, b: usize, op: Op, from: Value, to: Value) {
        let cell = self.cell_of(b, from);
        let known = self.place_of(b, from);
        let place = match cell {
            Some(cell) if known.is_none() => self.graph.address_of(cell),
            _ => known,
        };
        if place.is_some() {
            self.assign(b, to, place);
        } else if self.late {
            let made = self.made_by(b, op, 0, Source::Address(op));
            self.forged.push((b, to));
            if let (Some(made), Some(cell)) = (made, cell) {
                let leaves = self.graph.leaves(cell);
                if let [leaf] = leaves[..] {
                    self.graph.set_pointer(leaf, made);
                }
            }
        }
    }

    /// An address plus or minus a number is an address of the same memory.
    fn address_arithmetic(&mut self, b: usize, op: Op) {
        let data = &self.bodies[b].function.ops[op];
        let [left, right] = data.both();
        let (at_left, at_right) = (self.place_of(b, left), self.place_of(b, right));
        let (base, other) = match (at_left, at_right) {
            (Some(base), None) => (base, right),
            (None, Some(base)) if data.opcode != Opcode::Sub => (base, left),
            _ => return,
        };
        let distance = self.interval(b, other);
        // The low bits of an address are a number; all but the low bits are an address.
        if data.opcode == Opcode::And && distance.min >= 0 {
            return;
        }
        let span = match data.opcode {
            Opcode::Add => base.span.plus(distance, 1),
            Opcode::Sub => base.span.plus(-distance, 1),
            _ => Span::ANY,
        };
        let class = base.class;
        self.assign(b, data.results[0], Some(Target { class, span }));
    }

    /// Lanes of vectors.
    fn lanes(&mut self, b: usize, op: Op) {
        let function = self.bodies[b].function;
        let data = &function.ops[op];
        let operands = &data.operands;
        let result = data.results[0];
        let ty = function.ty(result);
        if ty.is_ptr() {
            let pointers: Vec<Value> = operands
                .iter()
                .copied()
                .filter(|&operand| function.ty(operand).is_ptr())
                .collect();
            self.choose(b, &pointers, result);
            return;
        }
        let Some(cell) = self.cell_of(b, result) else {
            return;
        };
        let bytes = ty.scalar().bytes();
        let count = u64::from(ty.lanes());
        match data.view() {
            OpView::Splat { scalar } => {
                for lane in 0..count {
                    let part = self.graph.part(cell, lane * bytes, bytes);
                    self.same_integer(b, scalar, part);
                    self.give_address(b, scalar, part);
                }
            }
            OpView::Extract { vector, lane } => {
                let lanes = function.ty(vector).lanes();
                let Some(vector) = self.cell_of(b, vector) else {
                    return;
                };
                let chosen = function.int_of(lane);
                for lane in 0..u64::from(lanes) {
                    if chosen.is_none_or(|chosen| chosen == i128::from(lane)) {
                        let part = self.graph.part(vector, lane * bytes, bytes);
                        self.graph.merge_cells(part, cell);
                    }
                }
                self.take_address(b, result);
            }
            OpView::Insert {
                vector,
                scalar,
                lane,
            } => {
                let chosen = function.int_of(lane);
                let vector = self.cell_of(b, vector);
                for lane in 0..count {
                    let part = self.graph.part(cell, lane * bytes, bytes);
                    if chosen.is_none_or(|chosen| chosen == i128::from(lane)) {
                        self.same_integer(b, scalar, part);
                        self.give_address(b, scalar, part);
                    }
                    if chosen != Some(i128::from(lane))
                        && let Some(vector) = vector
                    {
                        let old = self.graph.part(vector, lane * bytes, bytes);
                        self.graph.merge_cells(old, part);
                    }
                }
            }
            OpView::Shuffle { left, right, lanes } => {
                let width = u64::from(function.ty(left).lanes());
                for (lane, &from) in (0..count).zip(lanes) {
                    let from = u64::from(from);
                    let (operand, at) = if from < width {
                        (left, from)
                    } else {
                        (right, from - width)
                    };
                    if at < width
                        && let Some(vector) = self.cell_of(b, operand)
                    {
                        let old = self.graph.part(vector, at * bytes, bytes);
                        let part = self.graph.part(cell, lane * bytes, bytes);
                        self.graph.merge_cells(old, part);
                    }
                }
            }
            _ => {}
        }
    }

    // ---- what is an integer

    /// States of all integers of a function what their uses and origins say. Pointers must all be known.
    pub(super) fn tell_integers(&mut self, b: usize) {
        let function = self.bodies[b].function;
        let mut equalities = Vec::new();
        for index in 0..self.bodies[b].counted.len() {
            if self.bodies[b].counted[index] {
                self.made(b, function.arguments()[index]);
            }
        }
        for op in returning_ops(function) {
            let data = &function.ops[op];
            let operands = &data.operands;
            match data.opcode.form() {
                Form::IntUnary | Form::IntBinary => {
                    let packing = &self.bodies[b].packing;
                    let moved = packing.joined.contains_key(&op) || packing.serving.contains(&op);
                    if !moved && self.place_of(b, data.results[0]).is_none() {
                        self.used(b, operands);
                        self.made(b, data.results[0]);
                    }
                }
                Form::IntCompare => {
                    if let OpView::Icmp(IntPredicate::Eq | IntPredicate::Ne, left, right) =
                        data.view()
                    {
                        equalities.push((left, right));
                    } else {
                        self.used(b, operands);
                    }
                    self.made(b, data.results[0]);
                }
                Form::FloatCompare | Form::FloatToExponent => self.made(b, data.results[0]),
                Form::FloatSplit => self.made(b, data.results[1]),
                Form::FloatAndInt => self.used(b, &data.both()[1..]),
                Form::Cast => self.tell_cast(b, op),
                _ => match data.view() {
                    OpView::Offset { index: number, .. }
                    | OpView::Extract { lane: number, .. }
                    | OpView::Insert { lane: number, .. }
                    | OpView::Copy { size: number, .. }
                    | OpView::Move { size: number, .. }
                    | OpView::Stack { size: number, .. }
                    | OpView::Alloc { size: number, .. }
                    | OpView::Switch {
                        selector: number, ..
                    } => self.used(b, &[number]),
                    OpView::Fill {
                        destination,
                        byte,
                        size,
                        ..
                    } => {
                        self.used(b, &[byte, size]);
                        self.tell_fill(b, destination, byte, size);
                    }
                    OpView::AtomicAdd { value, .. } => {
                        self.used(b, &[value]);
                        self.made(b, data.results[0]);
                    }
                    OpView::For { .. } => {
                        self.used(b, &data.bounds());
                        self.made(b, function.counter(op));
                    }
                    _ => {}
                },
            }
        }
        // Anything can be compared for equality, but only with its like.
        for (left, right) in equalities {
            for (value, other) in [(left, right), (right, left)] {
                if is_telling(function, other) || self.is_integer(b, other) {
                    self.used(b, &[value]);
                }
            }
        }
    }

    /// Whether a value is known to be nothing but an integer by now.
    fn is_integer(&mut self, b: usize, value: Value) -> bool {
        self.cell_of(b, value).is_some_and(|cell| {
            self.graph.leaves(cell).iter().all(|&leaf| {
                let evidence = &self.graph.cell(leaf).evidence;
                evidence.integer != Integer::No
                    && evidence.float.is_none()
                    && evidence.pointer.is_none()
            })
        })
    }

    fn tell_cast(&mut self, b: usize, op: Op) {
        let moved = self.taken_by(b, op).is_some() || self.bodies[b].packing.serving.contains(&op);
        let data = &self.bodies[b].function.ops[op];
        match data.opcode {
            Opcode::TruncInt | Opcode::Zext | Opcode::Sext if !moved => {
                self.used(b, &data.operands);
                self.made(b, data.results[0]);
            }
            Opcode::Sitofp | Opcode::Uitofp => self.used(b, &data.operands),
            Opcode::Fptosi | Opcode::Fptoui | Opcode::FptosiSat | Opcode::FptouiSat => {
                self.made(b, data.results[0]);
            }
            _ => {}
        }
    }

    /// Bytes that are set one by one to something other than zero, and are nothing else, are numbers.
    fn tell_fill(&mut self, b: usize, to: Value, byte: Value, length: Value) {
        let (Some(place), Some(byte)) =
            (self.place_of(b, to), self.bodies[b].function.int_of(byte))
        else {
            return;
        };
        if byte == 0 {
            return;
        }
        let length = u64::try_from(self.interval(b, length).max.max(0)).unwrap_or(u64::MAX);
        let place = self.graph.resolve(place);
        let mut fields = std::collections::BTreeSet::new();
        self.graph
            .fields_from(place.class, place.span.lo, length, 0, &mut fields);
        for (offset, bytes) in fields {
            if bytes <= length - offset {
                let cell = self.graph.access_span(place, offset as i64, bytes);
                self.graph.set_integer(cell, Integer::Used);
            }
        }
    }

    pub(super) fn used(&mut self, b: usize, values: &[Value]) {
        for &value in values {
            if let Some(cell) = self.cell_of(b, value) {
                self.graph.set_integer(cell, Integer::Used);
            }
        }
    }

    fn made(&mut self, b: usize, value: Value) {
        self.bodies[b].numbers.insert(value);
        if let Some(cell) = self.cell_of(b, value) {
            self.graph.set_integer(cell, Integer::Certain);
        }
    }
}
