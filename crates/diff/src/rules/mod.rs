//! Derivative rules, for forward and for reverse mode. Those of mathematical functions stand in their rows (`ir/src/mathematics/rows.rs`).
//!
//! A [`Rule`] says how the results of an operation vary with its operands. Most are [`Formula`]s of partial derivatives,
//! from which both modes follow: [`jvp`] multiplies them with tangents of the operands, [`vjp`] with adjoints of the results.
//! [`needs`] tells which values the reverse sweep will read, so that nothing else is kept for it.
//!
//! ```text
//! rule of fmul: ∂x = y, ∂y = x
//! %r = fmul f64 %x, %y           jvp:  %r' = %x'·%y + %y'·%x          vjp:  %x' += %r'·%y, %y' += %r'·%x
//! ```
//!
//! Assumes: the operation is verified, and [`refusal`] has nothing against it. A derivative that is `None` is zero.
//! Guarantees: only operations that have rules themselves are emitted, so derivatives can be differentiated again; where
//! a formula chooses, the branch not taken does not matter, not even if it is infinite or NaN.
//!
//! The derivative of a float has the float's own type. An integer that carries the bits of a float has a derivative too, of
//! that float type: see [`derivative_type`].

mod emit;
mod linear;
mod table;
#[cfg(test)]
mod tests;

pub use emit::{Linearisation, Lookup};
pub use table::rule;

use ferrozyme_ir::formula::{Formula, Known, Number, Place, Variable};
use ferrozyme_ir::{
    Builder, Constant, Derivative, Flags, Function, Op, Opcode, Payload, Scalar, Type, Value,
    float_from_bits, sign_extend,
};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;
use std::fmt;

/// How the results of an operation vary with its operands.
#[derive(Clone, PartialEq, Debug)]
pub enum Rule {
    /// Lane by lane: for each result, the partial derivative by each float operand (those come first).
    Partials(Vec<Vec<Formula>>),
    /// A linear operation that moves lanes or changes types; the text says how adjoints (`x'`, `r'`) flow back.
    Linear(&'static str),
    /// No result carries a derivative.
    Inactive(Zero),
    /// Memory, addresses, calls and control: the transformations themselves know what to do.
    Structural,
}

/// Why an operation has no derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zero {
    /// A function of floats that is constant between its jumps: the derivative is zero almost everywhere.
    Steps,
    /// It takes whole numbers, which do not vary by small amounts. (Where they carry the bits of a float that does, this
    /// rule does not apply: such arithmetic is an error, which the activity analysis reports.)
    Integers,
}

/// An operation as the rules see it, apart from the function that it stands in.
#[derive(Clone, Debug)]
pub struct Primal {
    /// What it does.
    pub opcode: Opcode,
    /// Its operands, in the function that it stands in.
    pub operands: SmallVec<[Value; 4]>,
    /// Its results, in the function that it stands in.
    pub results: SmallVec<[Value; 2]>,
    /// The types of the operands.
    pub operand_types: SmallVec<[Type; 4]>,
    /// The types of the results.
    pub result_types: SmallVec<[Type; 2]>,
    /// What else determines it.
    pub payload: Payload,
    /// Promises and permissions.
    pub flags: Flags,
    known: SmallVec<[Option<Number>; 4]>,
}

/// Values that a reverse rule reads, as sets of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Bit `k` for operand `k`. Constants are never needed.
    pub operands: u32,
    /// Bit `k` for result `k`.
    pub results: u32,
}

/// Which values the reverse rule reads when these operands are active (bit `k` for operand `k`).
pub fn needs(function: &Function, op: Op, active: u32) -> Needs {
    Primal::of(function, op).needs(active)
}

/// What each operand's adjoint grows by, given the adjoints of the results; nothing for operands that are not `active`.
///
/// `lookup` gives the value, where code is being emitted, of a value of the primal; it is asked for what [`needs`] tells
/// and for constants, once each.
///
/// # Panics
/// If the operation's rule is structural, or [`refusal`] has something against it.
pub fn vjp(
    b: &mut Builder<'_>,
    primal: &Primal,
    lookup: &mut Lookup<'_>,
    adjoints: &[Option<Value>],
    active: u32,
) -> SmallVec<[Option<Value>; 4]> {
    Linearisation::new(primal).vjp(b, lookup, adjoints, active)
}

/// The tangents of the results, given the tangents of the operands.
///
/// For several tangents at one point use [`Linearisation`], which computes what they share once.
///
/// # Panics
/// If the operation's rule is structural, or [`refusal`] has something against it.
pub fn jvp(
    b: &mut Builder<'_>,
    primal: &Primal,
    lookup: &mut Lookup<'_>,
    tangents: &[Option<Value>],
) -> SmallVec<[Option<Value>; 2]> {
    Linearisation::new(primal).jvp(b, lookup, tangents)
}

/// The type of a value's derivative: that of a float is itself; an integer of the width of a float is taken to carry one.
/// None for everything else; pointers have shadows instead.
///
/// Whether an integer does carry a float is for the activity analysis to say. 16 bits are taken as `f16`, never as `bf16`.
pub fn derivative_type(ty: Type) -> Option<Type> {
    match ty.scalar() {
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => Some(ty),
        Scalar::Int(64) => Some(ty.with_scalar(Scalar::F64)),
        Scalar::Int(32) => Some(ty.with_scalar(Scalar::F32)),
        Scalar::Int(16) => Some(ty.with_scalar(Scalar::F16)),
        Scalar::Int(_) | Scalar::Ptr => None,
    }
}

/// What stands against differentiating this operation where it is active, if anything does.
pub fn refusal(primal: &Primal) -> Option<Refusal> {
    match rule(primal.opcode) {
        Rule::Linear(_) => linear::refusal(primal),
        Rule::Partials(_) | Rule::Inactive(_) | Rule::Structural => None,
    }
}

impl Primal {
    /// An operation of a function.
    pub fn of(function: &Function, op: Op) -> Primal {
        let data = &function.ops[op];
        Primal {
            opcode: data.opcode,
            operands: data.operands.clone(),
            results: data.results.clone(),
            operand_types: data.operands.iter().map(|&v| function.ty(v)).collect(),
            result_types: data.results.iter().map(|&v| function.ty(v)).collect(),
            payload: data.payload.clone(),
            flags: data.flags,
            known: data
                .operands
                .iter()
                .map(|&v| number_of(function, v))
                .collect(),
        }
    }

    /// Which values the reverse rule reads when these operands are active (bit `k` for operand `k`).
    pub fn needs(&self, active: u32) -> Needs {
        match rule(self.opcode) {
            Rule::Partials(rows) => {
                let mut needs = Needs::default();
                let active_columns = |row: &'static Vec<Formula>| {
                    let columns = row.iter().enumerate();
                    columns.filter(move |(operand, _)| active >> operand & 1 == 1)
                };
                for (_, formula) in rows.iter().flat_map(active_columns) {
                    let mut add = |variable: Variable| match variable.place() {
                        Place::Operand(index) => needs.operands |= 1 << index,
                        Place::Result(index) => needs.results |= 1 << index,
                    };
                    self.partial(formula).for_each_variable(&mut add);
                }
                needs
            }
            Rule::Linear(_) => linear::needs(self, active),
            Rule::Inactive(_) | Rule::Structural => Needs::default(),
        }
    }

    /// A formula with this operation's constants put in.
    fn partial(&self, formula: &Formula) -> Formula {
        let no_nan = self.flags.contains(Flags::NNAN);
        if !no_nan && self.known.iter().all(Option::is_none) {
            return formula.clone();
        }
        formula.specialise(&Known {
            scalar: self.operand_types[0].scalar(),
            operands: &self.known,
            no_nan,
        })
    }

    fn is_known(&self, operand: usize) -> bool {
        self.known[operand].is_some()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Partials(rows) => Derivative::Partials(rows.clone()).fmt(f),
            Rule::Linear(text) => f.write_str(text),
            Rule::Inactive(Zero::Steps) => f.write_str("0 almost everywhere"),
            Rule::Inactive(Zero::Integers) => f.write_str("none: whole numbers"),
            Rule::Structural => f.write_str("structural"),
        }
    }
}

/// The constant that an operand is, if it is the same in all lanes.
fn number_of(function: &Function, value: Value) -> Option<Number> {
    let Some(Constant::Bits(raw)) = function.constant_of(value) else {
        return None;
    };
    match function.ty(value).scalar() {
        Scalar::Int(width) if width <= 64 => {
            let number = sign_extend(*raw, u32::from(width));
            Some(Number::Integer(i64::try_from(number).ok()?))
        }
        scalar => float_from_bits(scalar, *raw).map(Number::Float),
    }
}
