//! Steps: what the reverse sweep does for each operation of the forward sweep, and which values it needs for that.

use crate::activity::Activities;
use crate::augment::Augmented;
use crate::deferral::Manner;
use crate::memory::Cells;
use crate::plan::{active_operands, live_regions};
use crate::rules;
use ferrozyme_ir::{FunctionId, Op, Opcode, Type, Value};

/// What the reverse sweep does for an operation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Applies the rule of the table.
    Rule,
    /// Gives the adjoint of a value that a loop replaces now and then to what replaced it last.
    Update {
        /// What replaces it.
        replacement: Value,
        /// What it was before.
        kept: Value,
        /// The number of the iteration.
        number: Value,
        /// That of the last iteration that replaced it.
        last: Value,
    },
    /// Adds the adjoint of the loaded value to the shadow.
    Load {
        /// Where the shadow is.
        shadow: Value,
        /// What was found there, where that may be a pointer or number instead of a float: then only if it is zero.
        shape: Option<Value>,
    },
    /// Takes the adjoint of the stored value from the shadow, which becomes zero.
    Store {
        /// Where the shadow is.
        shadow: Value,
        /// What was stored.
        stored: Stored,
    },
    /// Adds what is in the shadow to the adjoint of the added value, and the adjoint of the old value to the shadow.
    AtomicAdd {
        /// Where the shadow is.
        shadow: Value,
    },
    /// Moves the shadow's floats back to where they came from.
    Copy {
        /// The shadow of the destination.
        to: Value,
        /// The shadow of the source, if that carries derivatives.
        from: Option<Value>,
        /// How many bytes.
        bytes: Value,
        /// What they are.
        copied: Copied,
        /// Whether what was copied is constant, where only the run can tell: then nothing goes back to it.
        constant: Option<Value>,
    },
    /// Zeroes the floats of the shadow.
    Fill {
        /// The shadow of the destination.
        to: Value,
        /// How many bytes.
        bytes: Value,
        /// What they are; none where floats share their place with something else.
        cells: Option<Cells>,
    },
    /// Runs the callee's reverse sweep.
    Call(CallStep),
    /// Reverses the regions.
    Regions,
    /// Releases memory that this operation made.
    Release {
        /// The memory and its shadow.
        pointers: Vec<Value>,
        /// The size that they were asked for with, if the allocator is told.
        size: Option<Value>,
        /// How they are released.
        manner: Manner,
    },
}

/// What was stored, as far as its adjoint is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    /// A float.
    Float,
    /// A word that is a float if this, which was put into the shadow, is zero; see `unions.rs`.
    Word(Value),
    /// A pointer or number, where floats are at other times.
    Other,
}

/// What was copied.
#[derive(Clone, Debug)]
pub(crate) enum Copied {
    /// Bytes of which it is known what they are.
    Cells {
        /// That.
        cells: Cells,
        /// Whether the two places may overlap.
        overlapping: bool,
    },
    /// Words that are floats at times, and at others something else; see `unions.rs`.
    Words {
        /// A copy of what was in the shadow; none if all are floats for certain.
        shape: Option<Value>,
    },
}

/// How a call is reversed.
#[derive(Clone, Debug)]
pub(crate) struct CallStep {
    /// The function that runs the reverse sweep.
    pub reverse: CallTarget,
    /// What it takes from the forward sweep, in order: arguments, shadows. `None` where it does not look.
    pub args: Vec<Option<Value>>,
    /// The type of each of those.
    pub arg_types: Vec<Type>,
    /// The results whose adjoints it takes, in order.
    pub seeds: Vec<Value>,
    /// What follows the seeds: the tape.
    pub tape: Option<Value>,
    /// A constant behind everything, for rules that users give: which arguments are active.
    pub mask: Option<i64>,
    /// The primal arguments whose adjoints it returns, in order.
    pub gradients: Vec<Value>,
}

/// Who is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallTarget {
    /// A function of the module.
    Direct(FunctionId),
    /// What a pointer leads to.
    Indirect(Value),
}

/// The values of the forward sweep that a step of the reverse sweep reads.
pub(crate) fn needed_by(
    augmented: &Augmented,
    activities: &Activities,
    op: Op,
    step: &Step,
) -> Vec<Value> {
    let function = &augmented.function;
    let data = &function.ops[op];
    match step {
        Step::Rule => {
            let needs = rules::needs(function, op, active_operands(function, activities, op));
            let operands = data.operands.iter().enumerate();
            let results = data.results.iter().enumerate();
            operands
                .filter(|(index, _)| needs.operands >> index & 1 == 1)
                .chain(results.filter(|(index, _)| needs.results >> index & 1 == 1))
                .map(|(_, &value)| value)
                .collect()
        }
        Step::Update { number, last, .. } => vec![*number, *last],
        Step::Load { shadow, shape } => [*shadow].into_iter().chain(*shape).collect(),
        Step::Store {
            shadow,
            stored: Stored::Word(shape),
        } => vec![*shadow, *shape],
        Step::Store { shadow, .. } | Step::AtomicAdd { shadow } => vec![*shadow],
        Step::Copy {
            to,
            from,
            bytes,
            copied,
            constant,
        } => {
            let shape = match copied {
                Copied::Words { shape } => *shape,
                Copied::Cells { .. } => None,
            };
            let all = [Some(*to), *from, Some(*bytes), shape, *constant];
            all.into_iter().flatten().collect()
        }
        Step::Fill { to, bytes, .. } => vec![*to, *bytes],
        Step::Call(call) => {
            let mut values: Vec<Value> = call.args.iter().flatten().copied().collect();
            values.extend(call.tape);
            if let CallTarget::Indirect(pointer) = call.reverse {
                values.push(pointer);
            }
            values
        }
        Step::Release { pointers, size, .. } => pointers.iter().chain(size).copied().collect(),
        Step::Regions => match data.opcode {
            Opcode::For => data.bounds().to_vec(),
            Opcode::Loop => vec![augmented.trips[&op].count],
            // Where all regions but one end in a trap there is nothing to choose.
            _ if live_regions(function, op).len() < 2 => Vec::new(),
            _ => vec![data.operands[0]],
        },
    }
}
