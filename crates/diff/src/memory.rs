//! Shadows of memory ranges: what `copy`, `move` and `fill` of memory with floats and pointers do to shadows.
//!
//! Floats of a shadow are adjoints, which flow backwards in the reverse sweep; pointers and integers of a shadow belong to
//! its shape, which the forward sweep keeps like the primal's. So each field of a copied structure is treated by its type:
//!
//! ```text
//! copy %to, %from, 16       ; {f64, ptr}
//!   forward sweep:   %to'.ptr ← %from'.ptr
//!   reverse sweep:   %from'.f64 += %to'.f64;  %to'.f64 ← 0
//! ```

use crate::objects::{self, Kind, Objects, Source};
use crate::unions;
use ferrozyme_ir::{
    Alignment, Builder, FloatPredicate, Function, IntPredicate, Opcode, Payload, Scalar, Type,
    Value,
};
use ferrozyme_refusal::{Refusal, UnknownBytes};

/// Whether the memory at an address is certainly not its own shadow. Memory of integers is, and a callee that gets a pointer to it need not know its contents.
pub(crate) fn has_shadow_apart(objects: &Objects, function: &Function, address: Value) -> bool {
    let class = objects.class_of(function, address).map(|(class, _)| class);
    class.is_some_and(|class| {
        let mut sources = objects.sources(class);
        objects.is_made_here(class) && sources.all(|source| matches!(source, Source::Alloc(_)))
    })
}

/// Releases a shadow that is memory of its own.
pub(crate) fn release_shadow(
    b: &mut Builder<'_>,
    (address, shadow): (Value, Value),
    is_apart: bool,
    release: impl FnOnce(&mut Builder<'_>),
) {
    if is_apart {
        return release(b);
    }
    let differs = b.icmp(IntPredicate::Ne, shadow, address);
    unions::when(b, differs, release);
}

/// The kinds of the bytes from an address on: first the head, then the body repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cells {
    /// Fields before the repetition, by ascending offset.
    head: Vec<CellField>,
    /// Where the repetition starts.
    head_bytes: u64,
    /// Fields of one period, by ascending offset from its start.
    body: Vec<CellField>,
    /// After how many bytes the fields repeat; 0 if they do not.
    period: u64,
}

/// One field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CellField {
    /// Where it starts.
    offset: u64,
    /// How many bytes it has.
    bytes: u64,
    /// What it is.
    what: What,
}

/// What a field is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Float(Scalar),
    /// A union word, or part of one.
    Union,
    /// A pointer or an integer.
    Other,
    /// Unknown bytes, which are set to zero.
    Unknown,
}

impl Cells {
    /// The kinds of the bytes behind a pointer that is the destination of a copy, or why they are unknown.
    pub(crate) fn at(
        objects: &Objects,
        function: &Function,
        to: Value,
        from: Option<Value>,
        bytes: Value,
    ) -> Result<Cells, UnknownBytes> {
        let (class, start) = objects.class_of(function, to).ok_or(UnknownBytes::Memory)?;
        // Bytes from memory that was allocated here, and that no code here has written as floats, are inactive: copies of unknown bytes from
        // elsewhere are refused. Bytes that are never read from their destination are inactive too.
        let unknown = match from {
            Some(from) if is_made_here(objects, function, from) => Unknown::Ignored,
            _ if is_last_stop(objects, function, to) => Unknown::Ignored,
            _ => Unknown::Refused,
        };
        let reach = objects.reach_of_copy(function, to, bytes);
        let cells = objects.cells(class, start);
        if unknown == Unknown::Refused && !cells.covers(reach) {
            return Err(UnknownBytes::Rest);
        }
        Cells::read(&cells, unknown)
    }

    /// The kinds of the bytes behind a pointer that are set to zero.
    ///
    /// Zero is the same in every type, and its derivative is zero; nothing more need be known.
    pub(crate) fn of_zeros(
        objects: &Objects,
        function: &Function,
        to: Value,
    ) -> Result<Cells, UnknownBytes> {
        let (class, start) = objects.class_of(function, to).ok_or(UnknownBytes::Memory)?;
        Cells::read(&objects.cells(class, start), Unknown::Kept)
    }

    fn read(cells: &objects::Cells, unknown: Unknown) -> Result<Cells, UnknownBytes> {
        let base = cells.head_bytes();
        let read = |fields: &[objects::Bytes], base: u64| {
            let mut found = Vec::new();
            for field in fields {
                let what = match field.kind {
                    Kind::Float(scalar) => What::Float(scalar),
                    Kind::Pointer(_) | Kind::Integer => What::Other,
                    Kind::Padding => continue,
                    kind if kind.is_union(field.bytes) => What::Union,
                    Kind::Unknown | Kind::Conflict(_) if unknown == Unknown::Kept => What::Unknown,
                    Kind::Unknown if unknown == Unknown::Ignored => continue,
                    Kind::Unknown => {
                        return Err(UnknownBytes::Offset(field.offset));
                    }
                    Kind::Conflict(_) => {
                        return Err(UnknownBytes::Conflict(field.offset));
                    }
                };
                found.push(CellField {
                    offset: field.offset as u64 - base,
                    bytes: field.bytes,
                    what,
                });
            }
            Ok(found)
        };
        Ok(Cells {
            head: read(&cells.head, 0)?,
            head_bytes: base,
            body: read(&cells.body, base)?,
            period: cells.period,
        })
    }

    fn fields(&self) -> impl Iterator<Item = &CellField> {
        self.head.iter().chain(&self.body)
    }

    /// Whether there are floats among the fields, or may be.
    pub(crate) fn has_floats(&self) -> bool {
        self.fields().any(|field| field.what != What::Other)
    }

    fn has_others(&self) -> bool {
        self.fields().any(|field| field.what == What::Other)
    }

    /// Whether there are fields that may be floats or something else.
    pub(crate) fn has_unions(&self) -> bool {
        self.fields().any(|field| field.what == What::Union)
    }

    /// Whether all bytes are floats of one type, one after the other.
    fn is_uniform(&self) -> bool {
        self.head.is_empty()
            && matches!(&self.body[..], [field] if matches!(field.what, What::Float(_)) && field.bytes == self.period)
    }
}

/// The contents of memory that is freed.
pub(crate) enum Released {
    /// No known floats.
    NoFloats,
    /// Floats, and where they are.
    Floats(Cells),
    /// Union words.
    Unclear,
}

impl Released {
    /// The contents behind a pointer.
    pub(crate) fn at(objects: &Objects, function: &Function, pointer: Value) -> Released {
        let Some((class, start)) = objects.class_of(function, pointer) else {
            return Released::NoFloats;
        };
        if objects.has_unions(class) {
            return Released::Unclear;
        }
        match Cells::read(&objects.cells(class, start), Unknown::Ignored) {
            Ok(cells) if cells.has_floats() => Released::Floats(cells),
            Ok(_) => Released::NoFloats,
            Err(_) => Released::Unclear,
        }
    }
}

/// Whether all memory that a pointer may address was allocated by this function or its callees.
fn is_made_here(objects: &Objects, function: &Function, pointer: Value) -> bool {
    objects
        .class_of(function, pointer)
        .is_none_or(|(class, _)| objects.is_made_here(class))
}

/// Whether only loads of this function read the memory that a pointer addresses, or the memory that it is copied to.
fn is_last_stop(objects: &Objects, function: &Function, pointer: Value) -> bool {
    let class_of = |value: Value| Some(objects.class_of(function, value)?.0);
    let Some(class) = class_of(pointer) else {
        return true;
    };
    let mut stops = vec![class];
    let mut grown = true;
    while grown {
        grown = false;
        if stops.len() > MOST_STOPS || !stops.iter().all(|&class| objects.is_local(class)) {
            return false;
        }
        let is_stop =
            |stops: &[_], value: Value| class_of(value).is_some_and(|class| stops.contains(&class));
        // All operations there are: while a sweep is being built, not all of them are in their places.
        for data in function.ops.values() {
            match data.opcode {
                Opcode::Copy | Opcode::Move if is_stop(&stops, data.source()) => {
                    let Some(next) = class_of(data.destination()) else {
                        return false;
                    };
                    if !stops.contains(&next) {
                        stops.push(next);
                        grown = true;
                    }
                }
                Opcode::Call | Opcode::CallIndirect
                    if data
                        .operands
                        .iter()
                        .any(|&operand| is_stop(&stops, operand)) =>
                {
                    return false;
                }
                _ => {}
            }
        }
    }
    true
}

/// How many pieces of memory a copy is followed through.
const MOST_STOPS: usize = 8;

/// The treatment of unknown bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Ignored,
    Kept,
    Refused,
}

fn is_float(what: What) -> bool {
    matches!(what, What::Float(_))
}

/// Forward sweep of a copy: pointers and integers of the shadow.
pub(crate) fn copy_other_fields(
    b: &mut Builder<'_>,
    cells: &Cells,
    to: Value,
    from: Value,
    bytes: Value,
    overlapping: bool,
) {
    if !cells.has_others() {
        return;
    }
    if !cells.has_floats() {
        let opcode = if overlapping {
            Opcode::Move
        } else {
            Opcode::Copy
        };
        b.op(
            opcode,
            &[to, from, bytes],
            Payload::Align(Alignment::ONE),
            &[],
        );
        return;
    }
    let source = if overlapping {
        temporary_copy(b, from, bytes)
    } else {
        from
    };
    for_each_field(
        b,
        cells,
        bytes,
        |what| what == What::Other,
        &mut |b, field, at| {
            let from = b.offset(source, at, 1);
            let to = b.offset(to, at, 1);
            let width = b.i64(field.bytes as i64);
            b.copy(to, from, width, Alignment::ONE);
        },
    );
    if overlapping {
        b.free(source);
    }
}

/// Reverse sweep of a copy: floats go back from `to` to `from`, and leave zeros behind.
pub(crate) fn return_floats(
    b: &mut Builder<'_>,
    cells: &Cells,
    to: Value,
    from: Option<Value>,
    bytes: Value,
    overlapping: bool,
) {
    let Some(from) = from else {
        return zero_floats(b, cells, to, bytes);
    };
    let taken = if overlapping {
        let taken = temporary_copy(b, to, bytes);
        zero_floats(b, cells, to, bytes);
        taken
    } else {
        to
    };
    for_each_field(b, cells, bytes, is_float, &mut |b, field, at| {
        let What::Float(scalar) = field.what else {
            unreachable!("only floats are asked for")
        };
        let ty = Type::scalar_of(scalar);
        // A copy promises nothing about where its fields lie.
        let align = Alignment::ONE;
        let taken_at = b.offset(taken, at, 1);
        let adjoint = b.load(ty, taken_at, align);
        if !overlapping {
            let zero = b.zero(ty);
            b.store(zero, taken_at, align);
        }
        let from_at = b.offset(from, at, 1);
        let before = b.load(ty, from_at, align);
        let after = b.binary(Opcode::Fadd, before, adjoint);
        b.store(after, from_at, align);
    });
    if overlapping {
        b.free(taken);
    }
}

/// Emits a trap for the case that a float of a shadow is not zero.
pub(crate) fn stop_unless_zero(
    b: &mut Builder<'_>,
    cells: &Cells,
    shadow: Value,
    bytes: Value,
    refusal: &Refusal,
) {
    for_each_field(b, cells, bytes, is_float, &mut |b, field, at| {
        let What::Float(scalar) = field.what else {
            unreachable!("only floats are asked for")
        };
        let ty = Type::scalar_of(scalar);
        let at = b.offset(shadow, at, 1);
        let (float, zero) = (b.load(ty, at, Alignment::ONE), b.zero(ty));
        let differs = b.fcmp(FloatPredicate::Une, float, zero);
        stop_if(b, differs, refusal);
    });
}

/// Emits a trap under a condition.
pub(crate) fn stop_if(b: &mut Builder<'_>, condition: Value, refusal: &Refusal) {
    let (_, then_region, else_region) = b.if_else(condition, &[]);
    b.inside(then_region, |b| {
        b.trap(&refusal.stop_text());
    });
    b.inside(else_region, |b| b.yields(&[]));
}

/// Forward mode, or the reverse of a fill: floats of a shadow become zero.
pub(crate) fn zero_floats(b: &mut Builder<'_>, cells: &Cells, to: Value, bytes: Value) {
    if !cells.has_others() && cells.is_uniform() {
        let zero = b.zero(Type::I8);
        b.fill(to, zero, bytes, Alignment::ONE);
        return;
    }
    let wanted = |what: What| what != What::Other;
    for_each_field(b, cells, bytes, wanted, &mut |b, field, at| {
        let to = b.offset(to, at, 1);
        match field.what {
            What::Float(scalar) => {
                let zero = b.zero(Type::scalar_of(scalar));
                b.store(zero, to, Alignment::ONE);
            }
            _ => {
                let (zero, width) = (b.zero(Type::I8), b.i64(field.bytes as i64));
                b.fill(to, zero, width, Alignment::ONE);
            }
        }
    });
}

/// Forward sweep of a fill: pointers and integers of the shadow.
pub(crate) fn fill_other_fields(
    b: &mut Builder<'_>,
    cells: &Cells,
    to: Value,
    byte: Value,
    bytes: Value,
) {
    if !cells.has_others() {
        return;
    }
    if !cells.has_floats() {
        b.fill(to, byte, bytes, Alignment::ONE);
        return;
    }
    for_each_field(
        b,
        cells,
        bytes,
        |what| what == What::Other,
        &mut |b, field, at| {
            let to = b.offset(to, at, 1);
            let width = b.i64(field.bytes as i64);
            b.fill(to, byte, width, Alignment::ONE);
        },
    );
}

fn temporary_copy(b: &mut Builder<'_>, from: Value, bytes: Value) -> Value {
    let copy = b.alloc(bytes, Alignment::natural(Type::F64), false);
    b.copy(copy, from, bytes, Alignment::ONE);
    copy
}

/// Builds a loop over the fields that `wanted` names; `visit` gets the offset of each from the start, in bytes.
fn for_each_field(
    b: &mut Builder<'_>,
    cells: &Cells,
    bytes: Value,
    wanted: impl Fn(What) -> bool,
    visit: &mut dyn FnMut(&mut Builder<'_>, CellField, Value),
) {
    let length = b.function.int_of(bytes);
    for &field in &cells.head {
        if wanted(field.what) {
            visit_guarded(b, field, None, bytes, length, visit);
        }
    }
    if !cells.body.iter().any(|field| wanted(field.what)) {
        return;
    }
    let period = b.i64(cells.period as i64);
    // A last period that is not whole counts too; each of its fields is checked.
    let whole = cells.is_uniform();
    let before = cells.head_bytes as i64;
    let count = if whole {
        b.binary(Opcode::Udiv, bytes, period)
    } else {
        let rounding = b.i64(cells.period as i64 - 1 - before);
        let rounded = b.binary(Opcode::Add, bytes, rounding);
        b.binary(Opcode::Sdiv, rounded, period)
    };
    let (zero, one) = (b.i64(0), b.i64(1));
    let (_, body) = b.for_loop(zero, count, one, &[]);
    let counter = b.function.regions[body].args[0];
    b.inside(body, |b| {
        let mut start = b.binary(Opcode::Mul, counter, period);
        if before > 0 {
            let before = b.i64(before);
            start = b.binary(Opcode::Add, start, before);
        }
        for &field in &cells.body {
            if !wanted(field.what) {
                continue;
            }
            if whole {
                visit(b, field, start);
            } else {
                visit_guarded(b, field, Some(start), bytes, None, visit);
            }
        }
        b.yields(&[]);
    });
}

/// Visits a field if it lies within the bytes in question.
fn visit_guarded(
    b: &mut Builder<'_>,
    field: CellField,
    start: Option<Value>,
    bytes: Value,
    length: Option<i128>,
    visit: &mut dyn FnMut(&mut Builder<'_>, CellField, Value),
) {
    let end = i128::from(field.offset + field.bytes);
    let offset = b.i64(field.offset as i64);
    let at = match start {
        Some(start) => b.binary(Opcode::Add, start, offset),
        None => offset,
    };
    if let (None, Some(length)) = (start, length) {
        if end <= length {
            visit(b, field, at);
        }
        return;
    }
    let width = b.i64(field.bytes as i64);
    let end = b.binary(Opcode::Add, at, width);
    let inside = b.icmp(IntPredicate::Sle, end, bytes);
    let (_, then_region, else_region) = b.if_else(inside, &[]);
    b.inside(then_region, |b| {
        visit(b, field, at);
        b.yields(&[]);
    });
    b.inside(else_region, |b| b.yields(&[]));
}
