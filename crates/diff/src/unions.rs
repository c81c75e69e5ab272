//! Union words: a word holds a float at one time and a pointer or integer at another. Examples are variants of an `enum`, and objects of several types behind one pointer.
//!
//! The shadow tells what a word is. During the whole forward sweep the shadow of a float is zero, that of a pointer is the shadow pointer, and an integer is its
//! own shadow. So a copy of words copies their shadows in the same way, and the shadow tells what
//! was copied: the reverse sweep moves adjoints back only where it was zero. (An integer that is zero counts as a float, whose derivative is zero.)
//!
//! ```text
//! copy %to, %from, 16           forward:  %shape = what is at %from';  copy %to', %from', 16
//!                               reverse:  for each word: if %shape is a zero there, add the word at %to' to that at %from'
//!                                         fill %to', 0, 16
//! ```
//!
//! The zero has a sign: it is negative if the float itself is a positive zero. So the bytes of a float always differ from those of its shadow, and code
//! that accesses a part of a word can tell that it is part of an integer: there the two are equal.
//!
//! In forward mode the shadow of a float is its tangent, and words are copied without inspection. An integer is its own shadow if it is not large, and has a zero shadow otherwise: if a
//! word is used in arithmetic, its shadow must be one of those, or an address. As a float an address is denormal: a tangent that small counts as zero.
//!
//! Only floats of eight bytes at aligned addresses are supported. Words that are moved in any other way must be integers; otherwise the program stops.

use crate::memory;
use ferrozyme_ir::{Alignment, Builder, FloatPredicate, IntPredicate, Op, Opcode, Type, Value};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;

pub(crate) const WORD: i64 = 8;

/// Below, there is no memory: what is empty has small numbers for addresses.
const FIRST_ADDRESS: i64 = 1 << 12;

/// From here on, no program has memory on x86-64.
const LAST_ADDRESS: i64 = 1 << 47;

/// A zero with a sign.
const MARK: i128 = 1 << 63;

/// What is put into the shadow where a float is stored, as an integer: a zero with the sign that the float does not have, if that is zero.
pub(crate) fn shape_of_float(b: &mut Builder<'_>, float: Value) -> Value {
    let ty = b.ty(float);
    let bits = match ty.is_float() {
        true => b.cast(Opcode::Bitcast, float, integer_of(ty)),
        false => float,
    };
    let (zero, sign) = (b.zero(b.ty(bits)), sign_bit(b, bits));
    let is_zero = b.icmp(IntPredicate::Eq, bits, zero);
    b.select(is_zero, sign, zero)
}

/// Whether what was found in a shadow says that there is a float.
pub(crate) fn is_float(b: &mut Builder<'_>, shape: Value) -> Value {
    let shape = b.unary(Opcode::Freeze, shape);
    let (zero, sign) = (b.zero(b.ty(shape)), sign_bit(b, shape));
    let rest = b.binary(Opcode::And, shape, sign);
    let rest = b.binary(Opcode::Xor, shape, rest);
    b.icmp(IntPredicate::Eq, rest, zero)
}

/// Does the one or the other.
pub(crate) fn either(
    b: &mut Builder<'_>,
    condition: Value,
    then: impl FnOnce(&mut Builder<'_>),
    otherwise: impl FnOnce(&mut Builder<'_>),
) {
    let (_, then_region, else_region) = b.if_else(condition, &[]);
    b.inside(then_region, |b| {
        then(b);
        b.yields(&[]);
    });
    b.inside(else_region, |b| {
        otherwise(b);
        b.yields(&[]);
    });
}

/// Does something if a condition holds.
pub(crate) fn when(b: &mut Builder<'_>, condition: Value, then: impl FnOnce(&mut Builder<'_>)) {
    either(b, condition, then, |_| ());
}

/// Stops the program unless a part of a word is part of a number, which is its own shadow.
pub(crate) fn check_number(b: &mut Builder<'_>, part: Value, shadow: Value) {
    let differs = differ(b, part, shadow);
    stop_if(b, differs);
}

/// Stops the program if a part of a word that is moved is part of a float.
pub(crate) fn check_no_part_of_float(b: &mut Builder<'_>, part: Value, shadow: Value) {
    let differs = differ(b, part, shadow);
    let float = is_float(b, shadow);
    let no = b.zero(Type::I1);
    let float = b.select(differs, float, no);
    stop_if(b, float);
}

/// Stops the program if a word that is calculated with, or moved as a pointer, is a float. An address is as good as a number: only a float has a derivative to lose.
pub(crate) fn check_no_float(b: &mut Builder<'_>, word: Value, shadow: Value) {
    let (word, shadow) = (as_integer(b, word), as_integer(b, shadow));
    let differs = differ(b, word, shadow);
    let float = is_float(b, shadow);
    let no = b.zero(Type::I1);
    let float = b.select(differs, float, no);
    memory::stop_if(b, float, &Refusal::TakenForNumber);
}

/// Stops the program if a word that is moved as a float is an address: as a float it would be smaller than all but a few.
pub(crate) fn check_no_address(b: &mut Builder<'_>, word: Value) {
    let bits = as_integer(b, word);
    let bits = b.unary(Opcode::Freeze, bits);
    let (first, many) = (b.i64(-FIRST_ADDRESS), b.i64(LAST_ADDRESS - FIRST_ADDRESS));
    let above = b.binary(Opcode::Add, bits, first);
    let address = b.icmp(IntPredicate::Ult, above, many);
    memory::stop_if(b, address, &Refusal::MovedAsFloat);
}

/// Forward mode: stops the program if a word that is calculated with is a float with a tangent.
pub(crate) fn check_no_tangent(b: &mut Builder<'_>, word: Value, tangent: Value) {
    let (word, tangent) = (as_integer(b, word), as_integer(b, tangent));
    let (word, tangent) = (
        b.unary(Opcode::Freeze, word),
        b.unary(Opcode::Freeze, tangent),
    );
    let (least, most) = exponent_bounds(b, tangent);
    let same = b.icmp(IntPredicate::Eq, word, tangent);
    let most = b.binary(Opcode::And, same, most);
    let extreme = b.binary(Opcode::Or, least, most);
    let no = b.zero(Type::I1);
    let float = b.icmp(IntPredicate::Eq, extreme, no);
    memory::stop_if(b, float, &Refusal::TakenForNumber);
}

/// Forward mode: stops the program if what lies at an address is part of a float with a tangent. All of the word tells, not the part: half of a tangent may be zero.
pub(crate) fn check_part_of_number(b: &mut Builder<'_>, address: Value, shadow: Value) {
    let number = b.cast(Opcode::Ptrtoint, address, Type::I64);
    let mask = b.i64(WORD - 1);
    let within = b.binary(Opcode::And, number, mask);
    let zero = b.i64(0);
    let back = b.binary(Opcode::Sub, zero, within);
    let (start, shadow) = (b.offset(address, back, 1), b.offset(shadow, back, 1));
    let word = b.load(Type::I64, start, Alignment::ONE);
    let tangent = b.load(Type::I64, shadow, Alignment::ONE);
    check_no_tangent(b, word, tangent);
}

/// Forward mode: what a number has in the shadow where floats are at other times.
pub(crate) fn tangent_of_number(b: &mut Builder<'_>, number: Value) -> Value {
    let (least, most) = exponent_bounds(b, number);
    let small = b.binary(Opcode::Or, least, most);
    let zero = b.zero(Type::I64);
    b.select(small, number, zero)
}

/// Whether a word, taken for a float, has the least exponent, or the greatest: so have small numbers.
fn exponent_bounds(b: &mut Builder<'_>, word: Value) -> (Value, Value) {
    let mask = b.i64(f64::INFINITY.to_bits() as i64);
    let exponent = b.binary(Opcode::And, word, mask);
    let zero = b.i64(0);
    let least = b.icmp(IntPredicate::Eq, exponent, zero);
    let most = b.icmp(IntPredicate::Eq, exponent, mask);
    (least, most)
}

/// Memory with what is elsewhere, and the operation that reads it. Somebody has to release it.
pub(crate) fn copy_of(b: &mut Builder<'_>, from: Value, bytes: Value) -> (Value, Op) {
    let copy = b.alloc(bytes, Alignment::natural(Type::F64), false);
    let read = b.copy(copy, from, bytes, Alignment::ONE);
    (copy, read)
}

/// Before the shadow of some bytes is moved: what does not consist of whole words must be numbers. `moved` is where the bytes are now, `shadow` where their shadow still is, and `to` where it goes: by these two the reverse sweep tells the words. Gives what reads the shadow.
pub(crate) fn check_parts(
    b: &mut Builder<'_>,
    to: Value,
    moved: Value,
    shadow: Value,
    bytes: Value,
) -> SmallVec<[Op; 2]> {
    let words = words_within(b, to, shadow, bytes);
    let zero = b.i64(0);
    let mut reads = SmallVec::new();
    for (from, until) in [(zero, words.0), (words.1, bytes)] {
        let one = b.i64(1);
        let (_, body) = b.for_loop(from, until, one, &[]);
        let at = b.function.regions[body].args[0];
        b.inside(body, |b| {
            let (moved, shadow) = (b.offset(moved, at, 1), b.offset(shadow, at, 1));
            let moved = b.load(Type::I8, moved, Alignment::ONE);
            let shadow = b.load(Type::I8, shadow, Alignment::ONE);
            reads.extend(b.function.def_op(shadow).map(|(op, _)| op));
            check_number(b, moved, shadow);
            b.yields(&[]);
        });
    }
    reads
}

/// From where to where some bytes consist of whole words, if words lie alike in both places. Otherwise there are none, behind the last byte.
fn words_within(b: &mut Builder<'_>, to: Value, from: Value, bytes: Value) -> (Value, Value) {
    let to = b.cast(Opcode::Ptrtoint, to, Type::I64);
    let from = b.cast(Opcode::Ptrtoint, from, Type::I64);
    let (mask, zero) = (b.i64(WORD - 1), b.i64(0));
    let differ = b.binary(Opcode::Xor, to, from);
    let differ = b.binary(Opcode::And, differ, mask);
    let alike = b.icmp(IntPredicate::Eq, differ, zero);
    let first = b.binary(Opcode::Sub, zero, to);
    let first = b.binary(Opcode::And, first, mask);
    let fits = b.icmp(IntPredicate::Ule, first, bytes);
    let some = b.binary(Opcode::And, alike, fits);
    let first = b.select(some, first, bytes);
    let rest = b.binary(Opcode::Sub, bytes, first);
    let part = b.binary(Opcode::And, rest, mask);
    let last = b.binary(Opcode::Sub, bytes, part);
    (first, last)
}

/// Forward sweep of a copy of floats, for certain, to where other things are at other times.
pub(crate) fn put_shapes_of_floats(b: &mut Builder<'_>, to: Value, shadow: Value, bytes: Value) {
    stop_if_in_parts(b, to, shadow, bytes);
    put_shapes(b, to, shadow, bytes);
}

/// Stops the program unless some bytes consist of whole words, at both places.
pub(crate) fn stop_if_in_parts(b: &mut Builder<'_>, to: Value, from: Value, bytes: Value) {
    let parts = is_in_parts(b, to, from, bytes);
    let none = b.i64(0);
    let any = b.icmp(IntPredicate::Ne, bytes, none);
    let parts = b.binary(Opcode::And, parts, any);
    stop_if(b, parts);
}

/// Makes the shadow of floats of eight bytes what it is during the forward sweep where they share their place with other things.
pub fn put_shapes(b: &mut Builder<'_>, floats: Value, shadow: Value, bytes: Value) {
    for_each_word(b, bytes, &mut |b, at| {
        let (float, shadow) = (b.offset(floats, at, 1), b.offset(shadow, at, 1));
        let float = b.load(Type::I64, float, Alignment::ONE);
        let shape = shape_of_float(b, float);
        b.store(shape, shadow, Alignment::ONE);
    });
}

/// What stands in a shadow of forward mode for a word of constant memory that may be a float or an address: see `shadows/constants.rs`.
pub(crate) fn mark(b: &mut Builder<'_>, ty: Type) -> Value {
    let mark = b.function.int(Type::I64, MARK);
    match ty.is_ptr() {
        true => b.cast(Opcode::Inttoptr, mark, ty),
        false => mark,
    }
}

/// What stands there for some bytes at an address, which may be a part of a word.
pub(crate) fn mark_at(b: &mut Builder<'_>, address: Value, ty: Type) -> Value {
    match ty {
        Type::I64 | Type::PTR => mark(b, ty),
        _ => {
            let (sign, zero) = (
                b.function.int(ty, 1i128 << (8 * ty.bytes() - 1)),
                b.zero(ty),
            );
            let is_last = ends_word(b, address, ty.bytes());
            b.select(is_last, sign, zero)
        }
    }
}

/// Puts marks into a shadow.
pub(crate) fn put_marks(b: &mut Builder<'_>, to: Value, bytes: Value) {
    let whole = is_whole(b, to, to, bytes);
    either(
        b,
        whole,
        |b| {
            for_each_word(b, bytes, &mut |b, at| {
                let (to, mark) = (b.offset(to, at, 1), mark(b, Type::I64));
                b.store(mark, to, Alignment::ONE);
            });
        },
        |b| {
            let (zero, one) = (b.i64(0), b.i64(1));
            let (_, body) = b.for_loop(zero, bytes, one, &[]);
            let at = b.function.regions[body].args[0];
            b.inside(body, |b| {
                let to = b.offset(to, at, 1);
                let byte = mark_at(b, to, Type::I8);
                b.store(byte, to, Alignment::ONE);
                b.yields(&[]);
            });
        },
    );
}

/// Whether a word ends with some bytes at an address.
fn ends_word(b: &mut Builder<'_>, address: Value, bytes: u64) -> Value {
    let address = b.cast(Opcode::Ptrtoint, address, Type::I64);
    let (mask, rest) = (b.i64(WORD - 1), b.i64(WORD - bytes as i64));
    let place = b.binary(Opcode::And, address, mask);
    b.icmp(IntPredicate::Eq, place, rest)
}

/// Adds the derivatives in one shadow to those in another, all of them floats of eight bytes.
pub fn add_shadow(b: &mut Builder<'_>, from: Value, to: Value, bytes: Value) {
    for_each_word(b, bytes, &mut |b, at| {
        let (from, to) = (b.offset(from, at, 1), b.offset(to, at, 1));
        let adjoint = b.load(Type::F64, from, Alignment::ONE);
        return_word(b, adjoint, to, Alignment::ONE, None);
    });
}

/// Adds the derivative of a word to the shadow of the place that it was read from, if the word was a float. Without a `shape` it was one.
///
/// Where there is nothing to add, nothing is written: a zero of memory that is its own shadow, since it holds no floats, looks like a float.
pub(crate) fn return_word(
    b: &mut Builder<'_>,
    adjoint: Value,
    shadow: Value,
    align: Alignment,
    shape: Option<Value>,
) {
    let add = |b: &mut Builder<'_>| {
        let before = b.load(b.ty(adjoint), shadow, align);
        let after = b.binary(Opcode::Fadd, before, adjoint);
        b.store(after, shadow, align);
    };
    match shape {
        Some(shape) => {
            let float = is_float(b, shape);
            let zero = b.zero(b.ty(adjoint));
            let some = b.fcmp(FloatPredicate::Une, adjoint, zero);
            let both = b.binary(Opcode::And, float, some);
            when(b, both, add);
        }
        None => add(b),
    }
}

/// Reverse sweep of a copy: the derivatives of floats go back, unless they come from constant memory. Without a `shape` all words are floats.
pub(crate) fn return_words(
    b: &mut Builder<'_>,
    to: Value,
    (from, constant): (Option<Value>, Option<Value>),
    bytes: Value,
    shape: Option<Value>,
) {
    if let Some(from) = from {
        // The two may overlap.
        let (taken, _) = copy_of(b, to, bytes);
        forget(b, to, bytes);
        let (first, last) = words_within(b, to, from, bytes);
        let last = match constant {
            Some(constant) => b.select(constant, first, last),
            None => last,
        };
        for_words_between(b, (first, last), &mut |b, at| {
            let (from, taken) = (b.offset(from, at, 1), b.offset(taken, at, 1));
            let adjoint = b.load(Type::F64, taken, Alignment::ONE);
            let shape = shape.map(|shape| {
                let shape = b.offset(shape, at, 1);
                b.load(Type::I64, shape, Alignment::ONE)
            });
            return_word(b, adjoint, from, Alignment::ONE, shape);
        });
        b.free(taken);
    } else {
        forget(b, to, bytes);
    }
    if let Some(shape) = shape {
        b.free(shape);
    }
}

/// Reverse sweep of whatever overwrites some bytes: what was there before has no derivative yet.
pub(crate) fn forget(b: &mut Builder<'_>, to: Value, bytes: Value) {
    let zero = b.zero(Type::scalar_of(ferrozyme_ir::Scalar::Int(8)));
    b.fill(to, zero, bytes, Alignment::ONE);
}

fn for_each_word(
    b: &mut Builder<'_>,
    bytes: Value,
    visit: &mut dyn FnMut(&mut Builder<'_>, Value),
) {
    let zero = b.i64(0);
    for_words_between(b, (zero, bytes), visit);
}

fn for_words_between(
    b: &mut Builder<'_>,
    (first, last): (Value, Value),
    visit: &mut dyn FnMut(&mut Builder<'_>, Value),
) {
    let step = b.i64(WORD);
    let (_, body) = b.for_loop(first, last, step, &[]);
    let at = b.function.regions[body].args[0];
    b.inside(body, |b| {
        visit(b, at);
        b.yields(&[]);
    });
}

/// Whether some bytes consist of whole words, at both places.
fn is_whole(b: &mut Builder<'_>, to: Value, from: Value, bytes: Value) -> Value {
    let rest = parts_of_words(b, to, from, bytes);
    let zero = b.i64(0);
    b.icmp(IntPredicate::Eq, rest, zero)
}

fn is_in_parts(b: &mut Builder<'_>, to: Value, from: Value, bytes: Value) -> Value {
    let rest = parts_of_words(b, to, from, bytes);
    let zero = b.i64(0);
    b.icmp(IntPredicate::Ne, rest, zero)
}

fn parts_of_words(b: &mut Builder<'_>, to: Value, from: Value, bytes: Value) -> Value {
    let to = b.cast(Opcode::Ptrtoint, to, Type::I64);
    let from = b.cast(Opcode::Ptrtoint, from, Type::I64);
    let mask = b.i64(WORD - 1);
    let all = b.binary(Opcode::Or, to, from);
    let all = b.binary(Opcode::Or, all, bytes);
    b.binary(Opcode::And, all, mask)
}

fn stop_if(b: &mut Builder<'_>, condition: Value) {
    memory::stop_if(b, condition, &Refusal::MovedInParts);
}

/// Whether a word and its shadow differ. Both may never have been set: what then is found there is any number, which is no reason to go any way that the program has not.
pub(crate) fn differ(b: &mut Builder<'_>, word: Value, shadow: Value) -> Value {
    let (word, shadow) = (
        b.unary(Opcode::Freeze, word),
        b.unary(Opcode::Freeze, shadow),
    );
    b.icmp(IntPredicate::Ne, word, shadow)
}

fn as_integer(b: &mut Builder<'_>, word: Value) -> Value {
    match b.ty(word) {
        Type::PTR => b.cast(Opcode::Ptrtoint, word, Type::I64),
        Type::F64 => b.cast(Opcode::Bitcast, word, Type::I64),
        _ => word,
    }
}

fn integer_of(ty: Type) -> Type {
    Type::scalar_of(ferrozyme_ir::Scalar::Int(8 * ty.bytes() as u8))
}

fn sign_bit(b: &mut Builder<'_>, of: Value) -> Value {
    let ty = b.ty(of);
    b.function.int(ty, 1i128 << (8 * ty.bytes() - 1))
}
