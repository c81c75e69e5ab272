//! Copies of memory that iterations add to, one for each block.
//!
//! A copy begins with the first byte that any iteration adds to, rounded down to a multiple of an element's size, and starts as zeros. When the loop is over the copies are added up in the order of the blocks, and what differs from zero is added to the
//! memory: other places need not even exist, where only some iterations add.

use super::strategies::SharedSum;
use crate::ranges::RangeBuilder;
use ferrozyme_ir::{Alignment, Builder, FloatPredicate, IntPredicate, Opcode, Type, Value};

/// The memory of which blocks have copies.
pub(super) struct Copied {
    /// The address of its first byte, as a number.
    pub(super) start: Value,
    /// How many elements it has.
    pub(super) elements: Value,
    /// How many bytes after the beginning of a copy the next one begins.
    pub(super) room: Value,
}

/// Copies begin in different lines of the cache.
const LINE: i64 = 64;

/// The most bytes that the copies of a block have together.
const MOST_BYTES: i64 = 1 << 28;

impl Copied {
    /// Builds what is known of it before the loop.
    pub(super) fn build(
        b: &mut Builder<'_>,
        ranges: &mut RangeBuilder<'_>,
        sum: &SharedSum,
    ) -> Copied {
        let size = sum.ty.bytes() as i64;
        // Where nothing is added the ends mean nothing, and the first one may be behind the last.
        let ends = ranges.build(b, sum.ranges.iter().cloned());
        let [start, end] = ends.map(|end| b.cast(Opcode::FptosiSat, end, Type::I64));
        let mask = b.i64(-size);
        let start = b.binary(Opcode::And, start, mask);
        let (zero, one, bytes) = (b.i64(0), b.i64(1), b.i64(size));
        let distance = b.binary(Opcode::Sub, end, start);
        let some = b.icmp(IntPredicate::Slt, start, end);
        let distance = b.select(some, distance, zero);
        // A larger one is as good as none: there will be no copies.
        let most = b.i64(MOST_BYTES);
        let distance = b.binary(Opcode::Umin, distance, most);
        let last = b.i64(size - 1);
        let rounded = b.binary(Opcode::Add, distance, last);
        let elements = b.binary(Opcode::Udiv, rounded, bytes);
        let taken = b.binary(Opcode::Mul, elements, bytes);
        let line = b.i64(LINE);
        let lines = b.binary(Opcode::Udiv, taken, line);
        let lines = b.binary(Opcode::Add, lines, one);
        let room = b.binary(Opcode::Mul, lines, line);
        Copied {
            start,
            elements,
            room,
        }
    }

    /// Builds whether copies for so many blocks can be had, and are worth it for a loop of so much work, if that matters.
    pub(super) fn build_test(
        &self,
        b: &mut Builder<'_>,
        blocks: Value,
        work: Option<Value>,
    ) -> Value {
        let most = b.i64(MOST_BYTES);
        let fits = b.icmp(IntPredicate::Slt, self.room, most);
        let Some(work) = work else {
            return fits;
        };
        let elements = b.binary(Opcode::Mul, self.elements, blocks);
        // To clear an element, to add it up, and to read it.
        let four = b.i64(4);
        let cost = b.binary(Opcode::Mul, elements, four);
        let cheap = b.icmp(IntPredicate::Sle, cost, work);
        b.binary(Opcode::And, fits, cheap)
    }

    /// Builds the memory of the copies.
    pub(super) fn build_memory(&self, b: &mut Builder<'_>, blocks: Value) -> Value {
        let bytes = b.binary(Opcode::Mul, self.room, blocks);
        let align = Alignment::new(LINE as u64).unwrap_or_default();
        b.alloc(bytes, align, true)
    }

    /// Adds up the copies, and adds them to the memory.
    pub(super) fn add_up(
        &self,
        b: &mut Builder<'_>,
        sum: &SharedSum,
        copies: Value,
        blocks: Value,
    ) {
        let ty = sum.ty;
        let (size, align) = (ty.bytes() as i64, Alignment::natural(ty));
        let (zero, one) = (b.i64(0), b.i64(1));
        let (_, others) = b.for_loop(one, blocks, one, &[]);
        b.inside(others, |b| {
            let block = b.function.regions[others].args[0];
            let distance = b.binary(Opcode::Mul, block, self.room);
            let copy = b.offset(copies, distance, 1);
            let (_, each) = b.for_loop(zero, self.elements, one, &[]);
            b.inside(each, |b| {
                let index = b.function.regions[each].args[0];
                let to = b.offset(copies, index, size);
                let from = b.offset(copy, index, size);
                let (so_far, more) = (b.load(ty, to, align), b.load(ty, from, align));
                let next = b.binary(Opcode::Fadd, so_far, more);
                b.store(next, to, align);
                b.yields(&[]);
            });
            b.yields(&[]);
        });
        let memory = self.build_address(b, sum);
        let (_, each) = b.for_loop(zero, self.elements, one, &[]);
        b.inside(each, |b| {
            let index = b.function.regions[each].args[0];
            let from = b.offset(copies, index, size);
            let more = b.load(ty, from, align);
            let nothing = b.zero(ty);
            let is_added = b.fcmp(FloatPredicate::Une, more, nothing);
            let (_, add, leave) = b.if_else(is_added, &[]);
            b.inside(add, |b| {
                let to = b.offset(memory, index, size);
                let old = b.load(ty, to, align);
                let new = b.binary(Opcode::Fadd, old, more);
                b.store(new, to, align);
                b.yields(&[]);
            });
            b.inside(leave, |b| b.yields(&[]));
            b.yields(&[]);
        });
        b.free(copies);
    }

    /// The address of the first byte, as a pointer of its object.
    fn build_address(&self, b: &mut Builder<'_>, sum: &SharedSum) -> Value {
        let root = b.cast(Opcode::Ptrtoint, sum.root, Type::I64);
        let distance = b.binary(Opcode::Sub, self.start, root);
        b.offset(sum.root, distance, 1)
    }
}
