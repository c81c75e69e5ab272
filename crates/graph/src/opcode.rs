//! The table of operations.
//!
//! A row holds all properties of an operation: its name, operands, payload and regions, its effect, its documentation, the types of its results, how it is
//! interpreted, its derivative, and how it is lowered. Printer, parser and verifier follow from it, and the rules are in the files that the row names. The functions
//! that are applied element by element are those of the Loop IR, so one row stands for all of them.
//!
//! The textual name of an operation is its enum name in snake case; that of an elementwise operation is the name of its function.

use crate::backward::{Vjp, rules};
use crate::graph::{Graph, OpData};
use crate::infer;
use crate::interpret::{self, Array};
use crate::lower::{ElementRule, WholeRule, arithmetic, source, view};
use crate::types::TensorType;
use smallvec::SmallVec;
use std::fmt;

/// A row of the table.
pub struct Row {
    /// The operation.
    pub opcode: Opcode,
    /// The name in the text form.
    pub name: &'static str,
    /// Names of the operands. `..more` is any number of them and is the last name.
    pub operands: &'static [&'static str],
    /// The kind of its payload.
    pub payload: PayloadKind,
    /// For each region, the word before it in the text form.
    pub regions: &'static [&'static str],
    /// What it does besides computing its results.
    pub effect: Effect,
    /// The types of its results, or why there are none: operands and payload do not fit.
    pub infer: fn(&Graph, &OpData) -> Result<Types, String>,
    /// The elements of its result in row-major order, if they depend on nothing but the operands; otherwise the interpreter's machine carries it out.
    pub evaluate: Option<Evaluate>,
    /// The adjoints of its operands, if it is differentiable and has one result.
    pub vjp: Option<Vjp>,
    /// How an element of its result is computed from elements of its operands.
    pub element: Option<ElementRule>,
    /// How its result is computed as a whole, if not element by element.
    pub whole: Option<WholeRule>,
    /// The documentation.
    pub documentation: &'static str,
}

/// The types of an operation's results.
pub type Types = SmallVec<[TensorType; 1]>;

/// The elements of the one result of an operation, given its type and the operands.
pub type Evaluate = fn(&OpData, &[&Array], &TensorType) -> Result<Vec<f64>, String>;

/// What an operation does besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Nothing: it may be repeated, moved and removed.
    Pure,
    /// As `Pure`, but some operands make it fail: it must not run where it did not before.
    Partial,
    /// It reads the state of a parameter.
    Read,
    /// It changes the state of a parameter.
    Write,
    /// It exchanges data with the host, in order.
    Exchange,
    /// The effects of its regions.
    Regions,
}

macro_rules! operations {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $text:literal ($($operand:literal),*) $payload:ident $([$($region:literal),+])? $effect:ident {
            infer: $infer:path $(, evaluate: $evaluate:path)? $(, vjp: $vjp:path)? $(, element: $element:path)? $(, whole: $whole:path)?
        };
    )*) => {
        /// The kind of operation.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Opcode { $($(#[doc = $doc])+ $name,)* }

        static ROWS: &[Row] = &[$(Row {
            opcode: Opcode::$name,
            name: $text,
            operands: &[$($operand),*],
            payload: PayloadKind::$payload,
            regions: &[$($($region),+)?],
            effect: Effect::$effect,
            infer: $infer,
            evaluate: [$(Some($evaluate as Evaluate),)? None][0],
            vjp: [$(Some($vjp as Vjp),)? None][0],
            element: [$(Some($element as ElementRule),)? None][0],
            whole: [$(Some($whole as WholeRule),)? None][0],
            documentation: concat!($($doc, "\n",)+),
        },)*];
    };
}

macro_rules! payload_kinds {
    ($($name:ident,)*) => {
        /// The variants of [`Payload`](crate::Payload), which describes them.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum PayloadKind { None, $($name,)* }

        impl crate::Payload {
            /// Its kind.
            pub fn kind(&self) -> PayloadKind {
                match self {
                    crate::Payload::None => PayloadKind::None,
                    $(crate::Payload::$name { .. } => PayloadKind::$name,)*
                }
            }
        }
    };
}

payload_kinds! {
    Parameter, Constant, Iota, Random, Feed, Receive, Call, Type, Permutation, Broadcast, Slice, Pad, Axis, Reduce, Contract, Function,
}

operations! {
    // ---- sources and sinks

    /// `%w = parameter @w : f32[2, 3]`: the value that a parameter has here.
    Parameter "parameter" () Parameter Read { infer: infer::parameter };
    /// `update @w %v`: gives a parameter another value.
    Update "update" ("value") Parameter Write { infer: infer::update };
    /// `%c = constant 0.5 : f32[2, 3]`, `%c = constant [1.0, 2.0] : f32[2]`: a tensor of one number, or of these in row-major order.
    Constant "constant" () Constant Pure { infer: infer::constant, evaluate: interpret::source::constant, element: source::constant };
    /// `%i = iota 0 : i32[5]`: counts from 0 along an axis.
    Iota "iota" () Iota Pure { infer: infer::iota, evaluate: interpret::source::iota, element: source::iota };
    /// `%u = random 7 %counter : f32[5]`: uniform in [0, 1), made of the seed, the counter (`i32[]`) and the position of the element: the same for the same ones.
    Random "random" ("counter") Random Pure { infer: infer::random, evaluate: interpret::source::random, element: source::random };
    /// `%x = feed "x" : f32[2, 3]`: the next tensor that the host feeds.
    Feed "feed" () Feed Exchange { infer: infer::feed };
    /// `receive "y" %y, %z`: hands tensors to the host.
    Receive "receive" ("tensor", "..more") Receive Exchange { infer: infer::receive };

    // ---- functions of the host

    /// `%y, %z = call "law" %a, %b : f32[2], f64[]`: the results of a Rust function of this name, which must depend on nothing but the operands.
    Call "call" ("operand", "..more") Call Partial { infer: infer::call };
    /// `%da, %db = call_vjp "law" %a, %b, %dy, %dz : f32[2], f32[3]`: from the operands of a call and the adjoints of its results the adjoints of those operands that are floats.
    CallVjp "call_vjp" ("operand", "..more") Call Partial { infer: infer::call_vjp };

    // ---- views

    /// `%b = reshape %a : f32[6]`: the same elements in row-major order, in another shape.
    Reshape "reshape" ("tensor") Type Pure { infer: infer::reshape, evaluate: interpret::view::reshape, vjp: rules::reshape, element: view::reshape };
    /// `%b = permute %a [1, 0] : f32[3, 2]`: other order of axes. Axis `i` of the result is the axis of the operand that stands at `i`.
    Permute "permute" ("tensor") Permutation Pure { infer: infer::permute, evaluate: interpret::view::permute, vjp: rules::permute, element: view::permute };
    /// `%b = broadcast %a [0: 2] : f32[2, 3]`: new axes, with their positions in the result and their sizes, along which the elements repeat.
    Broadcast "broadcast" ("tensor") Broadcast Pure { infer: infer::broadcast, evaluate: interpret::view::broadcast, vjp: rules::broadcast, element: view::broadcast };
    /// `%b = slice %a [0:2, 1:5:2] : f32[2, 2]`: of each axis the elements from a first to before an end, each or each so many.
    Slice "slice" ("tensor") Slice Pure { infer: infer::slice, evaluate: interpret::view::slice, vjp: rules::slice, element: view::slice };
    /// `%b = pad %a [1:0, 0:1:2] : f32[3, 5]`: zeros along each axis: before the first, after the last and between each two elements.
    Pad "pad" ("tensor") Pad Pure { infer: infer::pad, evaluate: interpret::view::pad, vjp: rules::pad, element: view::pad };
    /// `%c = concat %a, %b axis 0 : f32[5, 3]`: one after the other along an axis.
    Concat "concat" ("part", "..more") Axis Pure { infer: infer::concat, evaluate: interpret::view::concat, vjp: rules::concat, element: view::concat };
    /// `%b = gather %a, %i axis 0 : f32[4, 3]`: the elements along an axis that indices (`i32`) name; the axes of the indices take the place of that axis.
    /// An index out of range is an error.
    Gather "gather" ("tensor", "indices") Axis Partial { infer: infer::gather, evaluate: interpret::view::gather, vjp: rules::gather, element: view::gather };
    /// `%b = scatter_add %a, %i, %v axis 0 : f32[5, 3]`: `%a` with `%v`, of the shape that `gather` gives, added where the indices say.
    /// An index out of range is an error.
    ScatterAdd "scatter_add" ("tensor", "indices", "values") Axis Partial { infer: infer::scatter_add, evaluate: interpret::view::scatter_add, vjp: rules::scatter_add, whole: view::scatter_add };

    /// `%b = detach %a : f32[2, 3]`: the same elements, which gradients do not go through: in derivatives it is a constant.
    Detach "detach" ("tensor") None Pure { infer: infer::detach, evaluate: interpret::view::detach, element: view::detach };

    // ---- arithmetic

    /// `%c = fadd %a, %b : f32[2, 3]`: a function of the Loop IR, element by element, on tensors of one shape: mathematical functions, operations
    /// on integers and conditions, comparisons (`fcmp olt %a, %b`), `select %condition, %a, %b`.
    Elementwise "elementwise" ("operand", "..more") Function Pure { infer: infer::elementwise, evaluate: interpret::elementwise, vjp: rules::elementwise, element: arithmetic::elementwise };
    /// `%b = cast %a : f64[2, 3]`: the same numbers as other elements. Floats become integers towards zero, limited to their range, and conditions by comparison with zero.
    Cast "cast" ("tensor") Type Pure { infer: infer::cast, evaluate: interpret::cast, vjp: rules::cast, element: arithmetic::cast };
    /// `%b = reduce sum %a [0, 2] : f32[3]`: `sum`, `max`, `min` or `argmax` over axes, which go away.
    Reduce "reduce" ("tensor") Reduce Pure { infer: infer::reduce, evaluate: interpret::reduce, vjp: rules::reduce, element: arithmetic::reduce };
    /// `%c = contract %a, %b (ab, bc -> ac) : f32[2, 4]`: products of elements, summed over the indices that the result does not have, in any order.
    Contract "contract" ("left", "right") Contract Pure { infer: infer::contract, evaluate: interpret::contract, vjp: rules::contract, whole: arithmetic::contract };

    // ---- control

    /// `%r = for %n, %a0 (%i: i32[], %a: f32[2]) { … yield %a1 } : f32[2]`: runs the body `%n` times (`i32[]`; never if that is negative), with the
    /// number of the iteration and carried tensors, which become what the body yields. Their last values are the results.
    For "for" ("count", "..initial") None [""] Regions { infer: infer::for_ };
    /// `%r = while %a0 (%a: f32[]) { … yield %condition } do (%a: f32[]) { … yield %a1 } : f32[]`: runs the second region as long as the first yields a condition that holds.
    While "while" ("..initial") None ["", "do"] Regions { infer: infer::while_ };
    /// `%r = if %c { … yield %a } else { … yield %b } : f32[2]`: one of two regions.
    If "if" ("condition") None ["", "else"] Regions { infer: infer::if_ };
}

impl Opcode {
    /// All operations, in the order of the table.
    pub fn all() -> impl Iterator<Item = Opcode> {
        ROWS.iter().map(|row| row.opcode)
    }

    /// Its row.
    pub fn row(self) -> &'static Row {
        // Rows and variants come from one list.
        &ROWS[self as usize]
    }

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The operation of this name. Elementwise operations are named after their functions.
    pub fn from_name(name: &str) -> Option<Opcode> {
        let mut opcodes = Opcode::all().filter(|&opcode| opcode != Opcode::Elementwise);
        opcodes.find(|opcode| opcode.name() == name)
    }
}

impl Row {
    /// Whether it takes this number of operands.
    pub fn takes(&self, operands: usize) -> bool {
        let fixed = self
            .operands
            .iter()
            .take_while(|name| !name.starts_with('.'))
            .count();
        match self.operands.len() > fixed {
            true => operands >= fixed,
            false => operands == fixed,
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_enum() {
        for opcode in Opcode::all() {
            let mut snake = String::new();
            for character in format!("{opcode:?}").chars() {
                if character.is_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.extend(character.to_lowercase());
            }
            assert_eq!(opcode.name(), snake);
            // A name means one thing: no function of the Loop IR that is applied to elements has it.
            let function = ferrozyme_ir::Opcode::from_name(&snake);
            assert!(function.and_then(crate::Function::from_opcode).is_none());
        }
    }

    #[test]
    fn operations_without_effect_that_are_not_of_the_host_can_be_evaluated_and_lowered() {
        for opcode in Opcode::all() {
            let row = opcode.row();
            let of_host = row.payload == PayloadKind::Call;
            let pure = matches!(row.effect, Effect::Pure | Effect::Partial) && !of_host;
            assert_eq!(row.evaluate.is_some(), pure, "{opcode}");
            let lowered = u32::from(row.element.is_some()) + u32::from(row.whole.is_some());
            assert_eq!(lowered, u32::from(pure), "{opcode}");
        }
    }
}
