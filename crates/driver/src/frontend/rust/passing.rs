//! How the slots of a request become parameters of the function that is differentiated.
//!
//! A request passes everything in memory. Differentiated like that, each argument would be behind one more pointer, without facts about
//! the memory behind it. So each request gets a *root* function, whose parameters are the contents of the slots as the descriptor
//! describes them: references as pointers with facts, lengths as integers, floats as floats. Arguments without a description stay in their slots.

use super::descriptor::{Activity, Descriptor, Slot};
use crate::requests::Mode;
use ferrozyme_diff as diff;
use ferrozyme_ir::{Layout, Scalar};

/// How many words a slot may be split into.
const MAX_WORDS: usize = 4;

/// How the root takes one slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Passing {
    /// As its pointers and integers.
    Words(Vec<Word>),
    /// As a float; for the result: returned.
    Float(Scalar),
    /// As the address of the slot.
    Memory,
}

/// A pointer or integer in a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Word {
    /// Where it stands in the slot.
    pub(crate) offset: u64,
    /// A pointer or an integer.
    pub(crate) scalar: Scalar,
    /// What a pointer points to.
    pub(crate) pointee: Option<Layout>,
}

/// How the root takes a slot.
pub(crate) fn passing_of(slot: &Slot) -> Passing {
    let Some(layout) = slot
        .layout
        .as_ref()
        .filter(|layout| layout.stride == slot.size)
    else {
        return Passing::Memory;
    };
    if let [field] = layout.fields.as_slice()
        && field.offset == 0
        && matches!(field.scalar, Scalar::F32 | Scalar::F64)
    {
        return Passing::Float(field.scalar);
    }
    let words = layout.fields.len() <= MAX_WORDS
        && !layout.fields.is_empty()
        && layout.fields.iter().all(|field| !field.scalar.is_float());
    if slot.result || !words {
        return Passing::Memory;
    }
    let words = layout.fields.iter().map(|field| Word {
        offset: field.offset,
        scalar: field.scalar,
        pointee: field.pointee.as_deref().cloned(),
    });
    Passing::Words(words.collect())
}

/// The slot that a parameter of the root comes from.
pub(crate) fn slot_of(descriptor: &Descriptor, parameter: usize) -> Option<&Slot> {
    let mut first = 0;
    descriptor.slots.iter().find(|slot| {
        first += match passing_of(slot) {
            Passing::Words(words) => words.len(),
            Passing::Float(_) if slot.result => 0,
            Passing::Float(_) | Passing::Memory => 1,
        };
        parameter < first
    })
}

/// The request to the differentiator that a descriptor means, for the root `function`.
pub(crate) fn request_for(
    descriptor: &Descriptor,
    function: ferrozyme_ir::FunctionId,
) -> diff::Request {
    let reverse = descriptor.mode == Mode::Reverse;
    let mut request = diff::Request {
        function,
        args: Vec::new(),
        results: Vec::new(),
        primal: true,
        width: 1,
        discarded: Vec::new(),
        keep_order: false,
        shaped: Vec::new(),
        choices: diff::Choices::default(),
    };
    for slot in &descriptor.slots {
        let active = slot.activity != Activity::Const;
        let float = |active| match active {
            true => diff::Activity::Active,
            false => diff::Activity::Const,
        };
        let pointer = match active {
            true => diff::Activity::Duplicated,
            false => diff::Activity::Const,
        };
        match passing_of(slot) {
            Passing::Float(_) if slot.result => request.results.push(float(active)),
            Passing::Float(_) => request.args.push(float(active)),
            Passing::Memory => request.args.push(pointer),
            Passing::Words(words) => {
                for word in &words {
                    request.args.push(match word.scalar {
                        Scalar::Ptr => pointer,
                        _ => diff::Activity::Const,
                    });
                    // Nobody looks at the primal memory of these any more: what need not be computed for the derivative is not.
                    let only = reverse && slot.activity == Activity::DuplicatedOnly;
                    request.discarded.resize(request.args.len(), false);
                    request.discarded[request.args.len() - 1] = only && holds_only_floats(word);
                }
            }
        }
        request.discarded.resize(request.args.len(), false);
    }
    request
}

/// For each parameter of the root: whether its shadow can be made for the call, since it is only read and holds floats of eight bytes, as many as is known.
pub(crate) fn can_be_shaped(descriptor: &Descriptor) -> Vec<bool> {
    let mut can = Vec::new();
    for slot in &descriptor.slots {
        match passing_of(slot) {
            Passing::Words(words) => {
                let known = descriptor.mode == Mode::Reverse
                    && slot.shared
                    && slot.count.is_some()
                    && slot.activity != Activity::Const
                    && matches!(
                        words.as_slice(),
                        [_] | [
                            _,
                            Word {
                                scalar: Scalar::Int(64),
                                ..
                            }
                        ]
                    );
                can.extend(words.iter().map(|word| known && holds_only_doubles(word)));
            }
            Passing::Float(_) if slot.result => {}
            Passing::Float(_) | Passing::Memory => can.push(false),
        }
    }
    can
}

fn holds_only_doubles(word: &Word) -> bool {
    word.pointee.as_ref().is_some_and(|layout| {
        let doubles = layout
            .fields
            .iter()
            .filter(|field| field.scalar == Scalar::F64);
        doubles.count() as u64 * Scalar::F64.bytes() == layout.stride && layout.stride > 0
    })
}

/// Whether whoever owns what a word points to can do without it. A `Vec` could not: it must be released as it is in the end.
fn holds_only_floats(word: &Word) -> bool {
    let pointee = word.pointee.as_ref();
    pointee.is_some_and(|layout| layout.fields.iter().all(|field| field.scalar.is_float()))
}
