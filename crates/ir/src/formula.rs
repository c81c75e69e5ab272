//! Formulas of derivatives: small expression trees that are written, printed and simplified like mathematics.
//!
//! A [`Formula`] is about one operation: its operands ([`X`], [`Y`], [`Z`], the integer [`N`]) and its
//! results ([`R`], [`S`], the exponent [`E`]). Operators build it, so that a table of them reads as a book would have it:
//!
//! ```
//! use ferrozyme_ir::formula::*;
//! assert_eq!((1.0 - R * R).to_string(), "1 - r·r");
//! assert_eq!(where_(less(X, 0.0), -ONE, ONE).to_string(), "where(x < 0, -1, 1)");
//! ```
//!
//! Constructors fold constants; `1·x` is `x` and, as a derivative requires, `0·x` is 0.
//! [`Formula::specialise`] replaces operands by constants, which shows what a derivative really depends on.

use crate::builder::Builder;
use crate::function::{Payload, Value, float_from_bits, float_to_bits};
use crate::mathematics::with_functions;
use crate::opcode::{FloatPredicate, Form, IntPredicate, Opcode};
use crate::types::{Scalar, Type};
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

/// A variable of a formula.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Variable {
    /// The first operand.
    X,
    /// The second operand.
    Y,
    /// The third operand.
    Z,
    /// The second operand, where that is a whole number.
    N,
    /// The first result.
    R,
    /// The second result.
    S,
    /// The second result, where that is a whole number.
    E,
}

/// The position of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Operand of this index.
    Operand(usize),
    /// Result of this index.
    Result(usize),
}

/// An expression in the operands and results of one operation, lane by lane.
#[derive(Clone, PartialEq, Debug)]
pub enum Formula {
    /// An operand or a result.
    Variable(Variable),
    /// A number of the operation's float type.
    Constant(f64),
    /// A whole number.
    Integer(i64),
    /// A condition that is known.
    Truth(bool),
    /// An operation of the IR on formulas.
    Apply(Opcode, Arc<[Formula]>),
    /// A comparison of floats.
    Compare(FloatPredicate, Arc<[Formula; 2]>),
    /// A comparison of whole numbers.
    CompareIntegers(IntPredicate, Arc<[Formula; 2]>),
    /// The second where the first, a condition, holds; otherwise the third. Only the chosen one matters.
    Where(Arc<[Formula; 3]>),
}

/// The first operand.
pub const X: Formula = Formula::Variable(Variable::X);
/// The second operand.
pub const Y: Formula = Formula::Variable(Variable::Y);
/// The third operand.
pub const Z: Formula = Formula::Variable(Variable::Z);
/// The second operand, where that is a whole number.
pub const N: Formula = Formula::Variable(Variable::N);
/// The first result.
pub const R: Formula = Formula::Variable(Variable::R);
/// The second result.
pub const S: Formula = Formula::Variable(Variable::S);
/// The second result, where that is a whole number.
pub const E: Formula = Formula::Variable(Variable::E);
/// The number 0: this operand does not matter.
pub const ZERO: Formula = Formula::Constant(0.0);
/// The number 1.
pub const ONE: Formula = Formula::Constant(1.0);

impl Variable {
    /// Where it is found.
    pub fn place(self) -> Place {
        match self {
            Variable::X => Place::Operand(0),
            Variable::Y | Variable::N => Place::Operand(1),
            Variable::Z => Place::Operand(2),
            Variable::R => Place::Result(0),
            Variable::S | Variable::E => Place::Result(1),
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, Variable::N | Variable::E)
    }
}

/// What is known of an operation when a formula is applied to it: types and constants.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// The type in which floats are computed.
    pub scalar: Scalar,
    /// The constant that each operand is, if it is one.
    pub operands: &'a [Option<Number>],
    /// Whether no operand is NaN.
    pub no_nan: bool,
}

/// A constant operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// A float, the same in all lanes.
    Float(f64),
    /// A whole number, the same in all lanes.
    Integer(i64),
}

impl Formula {
    /// Whether this is the number 0, so that nothing flows.
    pub fn is_zero(&self) -> bool {
        *self == ZERO
    }

    /// Calls `visit` for each occurrence of a variable.
    pub fn for_each_variable(&self, visit: &mut impl FnMut(Variable)) {
        if let Formula::Variable(variable) = self {
            visit(*variable);
        }
        for part in self.parts() {
            part.for_each_variable(visit);
        }
    }

    /// The direct subformulas.
    pub fn parts(&self) -> &[Formula] {
        match self {
            Formula::Apply(_, parts) => parts,
            Formula::Compare(_, parts) | Formula::CompareIntegers(_, parts) => &parts[..],
            Formula::Where(parts) => &parts[..],
            Formula::Variable(_)
            | Formula::Constant(_)
            | Formula::Integer(_)
            | Formula::Truth(_) => &[],
        }
    }

    /// The formula with known operands replaced, and folded.
    pub fn specialise(&self, known: &Known<'_>) -> Formula {
        match self {
            Formula::Variable(variable) => {
                let number = match variable.place() {
                    Place::Operand(index) => known.operands.get(index).copied().flatten(),
                    Place::Result(_) => None,
                };
                match number {
                    Some(Number::Float(value)) => Formula::Constant(value),
                    Some(Number::Integer(value)) => Formula::Integer(value),
                    None => self.clone(),
                }
            }
            Formula::Apply(opcode, parts) => {
                let parts: Vec<Formula> = parts.iter().map(|part| part.specialise(known)).collect();
                apply_rounded(*opcode, parts, known.scalar)
            }
            Formula::Compare(FloatPredicate::Uno, _) if known.no_nan => Formula::Truth(false),
            Formula::Compare(predicate, parts) => compare(
                *predicate,
                parts[0].specialise(known),
                parts[1].specialise(known),
            ),
            Formula::CompareIntegers(predicate, parts) => compare_integers(
                *predicate,
                parts[0].specialise(known),
                parts[1].specialise(known),
            ),
            Formula::Where(parts) => where_(
                parts[0].specialise(known),
                parts[1].specialise(known),
                parts[2].specialise(known),
            ),
            Formula::Constant(_) | Formula::Integer(_) | Formula::Truth(_) => self.clone(),
        }
    }

    /// The value of a formula in floats, the operands.
    pub fn at(&self, operands: &[f64]) -> f64 {
        let parts = self.parts().iter().map(|part| part.at(operands));
        let parts: SmallVec<[f64; 3]> = parts.collect();
        let number = |truth: bool| f64::from(u8::from(truth));
        match self {
            Formula::Variable(variable) => match variable.place() {
                Place::Operand(index) => operands.get(index).copied().unwrap_or(f64::NAN),
                Place::Result(_) => f64::NAN,
            },
            Formula::Constant(value) => *value,
            Formula::Integer(value) => *value as f64,
            Formula::Truth(value) => number(*value),
            Formula::Compare(predicate, _) => number(predicate.holds(parts[0], parts[1])),
            Formula::CompareIntegers(..) => f64::NAN,
            Formula::Where(_) => parts[if parts[0] == 1.0 { 1 } else { 2 }],
            Formula::Apply(opcode, _) => match opcode.math() {
                Some(function) => function.at(&parts).0,
                None => f64::NAN,
            },
        }
    }

    fn is_integer(&self) -> bool {
        match self {
            Formula::Variable(variable) => variable.is_integer(),
            Formula::Integer(_) => true,
            Formula::Apply(opcode, _) => matches!(opcode, Opcode::Add | Opcode::Sub),
            _ => false,
        }
    }
}

/// Applies an operation and rounds a folded constant as the operation itself would. A result that would become infinite or zero
/// by that is not folded.
fn apply_rounded(opcode: Opcode, parts: Vec<Formula>, scalar: Scalar) -> Formula {
    let unfolded = Formula::Apply(opcode, parts.clone().into());
    match apply(opcode, parts) {
        Formula::Constant(value) => {
            let rounded = float_from_bits(scalar, float_to_bits(scalar, value)).unwrap_or(value);
            let lost = (rounded.is_infinite() && value.is_finite())
                || (rounded == 0.0 && value != 0.0)
                || (opcode == Opcode::Fdiv && rounded != value);
            if lost {
                unfolded
            } else {
                Formula::Constant(rounded)
            }
        }
        other => other,
    }
}

/// An operation of the IR on formulas, folded where that changes nothing.
pub fn apply(opcode: Opcode, parts: Vec<Formula>) -> Formula {
    use Formula::{Constant, Integer, Truth};
    match (opcode, &parts[..]) {
        (Opcode::Fneg, [Constant(a)]) => Constant(-a),
        (Opcode::Fneg, [Formula::Apply(Opcode::Fneg, inner)]) => inner[0].clone(),
        (Opcode::Fadd, [Constant(a), Constant(b)]) => Constant(a + b),
        (Opcode::Fsub, [Constant(a), Constant(b)]) => Constant(a - b),
        (Opcode::Fmul, [Constant(a), Constant(b)]) => Constant(a * b),
        (Opcode::Fmul, [Constant(0.0), _] | [_, Constant(0.0)]) => ZERO,
        (Opcode::Fmul, [Constant(1.0), a] | [a, Constant(1.0)]) => a.clone(),
        (Opcode::Fmul, [Constant(-1.0), a] | [a, Constant(-1.0)]) => -a.clone(),
        (Opcode::Fdiv, [a, Constant(1.0)]) => a.clone(),
        (Opcode::Fdiv, [Constant(a), Constant(b)]) if (a / b).mul_add(*b, -a) == 0.0 => {
            Constant(a / b)
        }
        (Opcode::Add, [Integer(a), Integer(b)]) => Integer(a + b),
        (Opcode::Sub, [Integer(a), Integer(b)]) => Integer(a - b),
        (Opcode::Sitofp, [Integer(a)]) => Constant(*a as f64),
        (Opcode::Pow, [_, Constant(0.0)]) | (Opcode::Powi, [_, Integer(0)]) => ONE,
        (Opcode::Pow, [a, Constant(1.0)]) | (Opcode::Powi, [a, Integer(1)]) => a.clone(),
        (Opcode::And, [Truth(true), a] | [a, Truth(true)]) => a.clone(),
        (Opcode::And, [Truth(false), _] | [_, Truth(false)]) => Truth(false),
        (Opcode::Or, [Truth(false), a] | [a, Truth(false)]) => a.clone(),
        (Opcode::Or, [Truth(true), _] | [_, Truth(true)]) => Truth(true),
        _ => Formula::Apply(opcode, parts.into()),
    }
}

/// `a` where `condition` holds, else `b`.
pub fn where_(condition: Formula, a: impl Into<Formula>, b: impl Into<Formula>) -> Formula {
    match (condition, a.into(), b.into()) {
        (Formula::Truth(true), a, _) => a,
        (Formula::Truth(false), _, b) => b,
        (_, a, b) if a == b => a,
        (condition, a, b) => Formula::Where(Arc::new([condition, a, b])),
    }
}

/// `a < b`.
pub fn less(a: impl Into<Formula>, b: impl Into<Formula>) -> Formula {
    compare(FloatPredicate::Olt, a.into(), b.into())
}

/// `a > b`.
pub fn greater(a: impl Into<Formula>, b: impl Into<Formula>) -> Formula {
    compare(FloatPredicate::Ogt, a.into(), b.into())
}

/// `a ≥ b`.
pub fn at_least(a: impl Into<Formula>, b: impl Into<Formula>) -> Formula {
    compare(FloatPredicate::Oge, a.into(), b.into())
}

/// `a = b`.
pub fn equal(a: impl Into<Formula>, b: impl Into<Formula>) -> Formula {
    compare(FloatPredicate::Oeq, a.into(), b.into())
}

/// Whether a number is NaN.
pub fn is_nan(a: Formula) -> Formula {
    compare(FloatPredicate::Uno, a.clone(), a)
}

/// Whether an integer equals this one.
pub fn is_integer(a: Formula, number: i64) -> Formula {
    compare_integers(IntPredicate::Eq, a, Formula::Integer(number))
}

/// Whether both conditions hold.
pub fn and(a: Formula, b: Formula) -> Formula {
    apply(Opcode::And, vec![a, b])
}

/// Whether one of the conditions holds.
pub fn or(a: Formula, b: Formula) -> Formula {
    apply(Opcode::Or, vec![a, b])
}

/// A whole number as a float.
pub fn float(n: Formula) -> Formula {
    apply(Opcode::Sitofp, vec![n])
}

/// A function of the table on formulas.
macro_rules! function {
    (FloatUnary $name:ident $opcode:ident) => { function! { $name $opcode (a) } };
    (Composite $name:ident $opcode:ident) => { function! { $name $opcode (a) } };
    (FloatBinary $name:ident $opcode:ident) => { function! { $name $opcode (a, b) } };
    (CompositeBinary $name:ident $opcode:ident) => { function! { $name $opcode (a, b) } };
    (FloatAndInt $name:ident $opcode:ident) => { function! { $name $opcode (a, n) } };
    (IntAndFloat $name:ident $opcode:ident) => { function! { $name $opcode (a, n) } };
    ($name:ident $opcode:ident ($($part:ident),+)) => {
        #[doc = concat!("The operation `", stringify!($name), "`.")]
        pub fn $name($($part: impl Into<Formula>),+) -> Formula {
            apply(Opcode::$opcode, vec![$($part.into()),+])
        }
    };
    ($several_results:ident $name:ident $opcode:ident) => {};
}

macro_rules! functions {
    (functions { $($(#[doc = $doc:literal])+ $opcode:ident $name:ident $form:ident $value:tt $facts:tt)* }) => {
        $(function! { $form $name $opcode })*
    };
}

with_functions! { functions! {} }

impl From<f64> for Formula {
    fn from(value: f64) -> Formula {
        Formula::Constant(value)
    }
}

impl From<i64> for Formula {
    fn from(value: i64) -> Formula {
        Formula::Integer(value)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $opcode:ident;)*) => {
        $(
            impl $trait for Formula {
                type Output = Formula;
                fn $method(self, other: Formula) -> Formula {
                    apply(Opcode::$opcode, vec![self, other])
                }
            }

            impl $trait<f64> for Formula {
                type Output = Formula;
                fn $method(self, other: f64) -> Formula {
                    apply(Opcode::$opcode, vec![self, Formula::Constant(other)])
                }
            }

            impl $trait<Formula> for f64 {
                type Output = Formula;
                fn $method(self, other: Formula) -> Formula {
                    apply(Opcode::$opcode, vec![Formula::Constant(self), other])
                }
            }
        )*
    };
}

operators! {
    Add add Fadd;
    Sub sub Fsub;
    Mul mul Fmul;
    Div div Fdiv;
}

/// On whole numbers.
impl Add<i64> for Formula {
    type Output = Formula;
    fn add(self, other: i64) -> Formula {
        apply(Opcode::Add, vec![self, Formula::Integer(other)])
    }
}

/// On whole numbers.
impl Sub<i64> for Formula {
    type Output = Formula;
    fn sub(self, other: i64) -> Formula {
        apply(Opcode::Sub, vec![self, Formula::Integer(other)])
    }
}

/// On floats and on whole numbers.
impl Neg for Formula {
    type Output = Formula;
    fn neg(self) -> Formula {
        if self.is_integer() {
            apply(Opcode::Sub, vec![Formula::Integer(0), self])
        } else {
            apply(Opcode::Fneg, vec![self])
        }
    }
}

fn compare(predicate: FloatPredicate, a: Formula, b: Formula) -> Formula {
    match (&a, &b) {
        (Formula::Constant(left), Formula::Constant(right)) => {
            Formula::Truth(predicate.holds(*left, *right))
        }
        _ => Formula::Compare(predicate, Arc::new([a, b])),
    }
}

fn compare_integers(predicate: IntPredicate, a: Formula, b: Formula) -> Formula {
    match (predicate, &a, &b) {
        (IntPredicate::Eq, Formula::Integer(a), Formula::Integer(b)) => Formula::Truth(a == b),
        _ => Formula::CompareIntegers(predicate, Arc::new([a, b])),
    }
}

/// Emits formulas on values of one type, each part once.
#[derive(Debug)]
pub struct FormulaWriter {
    /// The type of the floats.
    ty: Type,
    emitted: Vec<(Formula, Value)>,
}

impl FormulaWriter {
    /// On floats of this type.
    pub fn new(ty: Type) -> FormulaWriter {
        FormulaWriter {
            ty,
            emitted: Vec::new(),
        }
    }

    /// The value of a formula, given the values of its variables. Earlier results are reused, so they must be visible.
    pub fn emit(
        &mut self,
        b: &mut Builder<'_>,
        variable: &mut dyn FnMut(&mut Builder<'_>, Variable) -> Value,
        formula: &Formula,
    ) -> Value {
        let integer = |bits: u8| self.ty.with_scalar(Scalar::Int(bits));
        match formula {
            Formula::Constant(value) => return b.float(self.ty, *value),
            Formula::Integer(value) => return b.function.int(integer(32), i128::from(*value)),
            Formula::Truth(value) => return b.function.int(integer(1), i128::from(*value)),
            _ => {}
        }
        if let Some((_, value)) = self.emitted.iter().find(|(other, _)| other == formula) {
            return *value;
        }
        let parts: SmallVec<[Value; 4]> = formula
            .parts()
            .iter()
            .map(|part| self.emit(b, variable, part))
            .collect();
        let value = match formula {
            Formula::Variable(name) => variable(b, *name),
            Formula::Compare(predicate, _) => b.fcmp(*predicate, parts[0], parts[1]),
            Formula::CompareIntegers(predicate, _) => b.icmp(*predicate, parts[0], parts[1]),
            Formula::Where(_) => b.select(parts[0], parts[1], parts[2]),
            Formula::Apply(opcode, _) => {
                let ty = match opcode.form() {
                    Form::IntBinary => b.ty(parts[0]),
                    _ => self.ty,
                };
                b.value(*opcode, &parts, Payload::None, ty)
            }
            Formula::Constant(_) | Formula::Integer(_) | Formula::Truth(_) => {
                unreachable!("constants are done above")
            }
        };
        self.emitted.push((formula.clone(), value));
        value
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_formula(f, self, Binding::Loosest)
    }
}

/// The binding strength of the context: an operator that binds less tightly needs parentheses there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Loosest,
    And,
    Compare,
    Sum,
    Product,
    /// The right side of a quotient, or the operand of a sign.
    Tight,
}

fn write_formula(f: &mut fmt::Formatter<'_>, formula: &Formula, around: Binding) -> fmt::Result {
    let infix = |f: &mut fmt::Formatter<'_>,
                 own: Binding,
                 left: &Formula,
                 sign: &str,
                 right: &Formula,
                 right_around: Binding| {
        let parentheses = own < around;
        if parentheses {
            f.write_str("(")?;
        }
        write_formula(f, left, own)?;
        f.write_str(sign)?;
        write_formula(f, right, right_around)?;
        if parentheses {
            f.write_str(")")?;
        }
        Ok(())
    };
    use Binding::*;
    match formula {
        Formula::Variable(variable) => f.write_str(match variable {
            Variable::X => "x",
            Variable::Y => "y",
            Variable::Z => "z",
            Variable::N => "n",
            Variable::R => "r",
            Variable::S => "s",
            Variable::E => "e",
        }),
        Formula::Constant(value) => write_number(f, *value),
        Formula::Integer(value) => write!(f, "{value}"),
        Formula::Truth(value) => write!(f, "{value}"),
        Formula::Where(parts) => write_call(f, "where", &parts[..]),
        Formula::Compare(FloatPredicate::Uno, parts) if parts[0] == parts[1] => {
            write_call(f, "is_nan", &parts[..1])
        }
        Formula::Compare(predicate, parts) => {
            let sign = match predicate {
                FloatPredicate::Oeq => " = ",
                FloatPredicate::Ogt => " > ",
                FloatPredicate::Oge => " ≥ ",
                FloatPredicate::Olt => " < ",
                FloatPredicate::Ole => " ≤ ",
                other => return write_call(f, other.name(), &parts[..]),
            };
            infix(f, Compare, &parts[0], sign, &parts[1], Compare)
        }
        Formula::CompareIntegers(predicate, parts) => match predicate {
            IntPredicate::Eq => infix(f, Compare, &parts[0], " = ", &parts[1], Compare),
            other => write_call(f, other.name(), &parts[..]),
        },
        Formula::Apply(opcode, parts) => match (opcode, &parts[..]) {
            (Opcode::Fneg, [a]) | (Opcode::Sub, [Formula::Integer(0), a]) => {
                f.write_str("-")?;
                write_formula(f, a, Tight)
            }
            (Opcode::Fadd | Opcode::Add, [a, b]) => infix(f, Sum, a, " + ", b, Sum),
            (Opcode::Fsub | Opcode::Sub, [a, b]) => infix(f, Sum, a, " - ", b, Product),
            (Opcode::Fmul, [a @ Formula::Apply(Opcode::Fdiv, _), b]) => {
                write!(f, "({a})·")?;
                write_formula(f, b, Tight)
            }
            (Opcode::Fmul, [a, b]) => infix(f, Product, a, "·", b, Tight),
            (Opcode::Fdiv, [a, b]) => infix(f, Product, a, "/", b, Tight),
            (Opcode::And, [a, b]) => infix(f, And, a, " and ", b, And),
            (Opcode::Or, [a, b]) => infix(f, Loosest, a, " or ", b, Loosest),
            (Opcode::Sitofp, [a]) => write_formula(f, a, around),
            _ => write_call(f, opcode.name(), parts),
        },
    }
}

fn write_call(f: &mut fmt::Formatter<'_>, name: &str, parts: &[Formula]) -> fmt::Result {
    write!(f, "{name}(")?;
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{part}")?;
    }
    f.write_str(")")
}

/// Constants with a name of their own are written by it.
fn write_number(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    use std::f64::consts;
    let named = [
        (consts::LN_2, "ln(2)"),
        (consts::LN_10, "ln(10)"),
        (consts::LOG2_E, "log2(e)"),
        (consts::LOG10_E, "log10(e)"),
        (consts::FRAC_2_SQRT_PI, "(2/√π)"),
        (-consts::FRAC_2_SQRT_PI, "-(2/√π)"),
        (consts::PI, "π"),
        (-consts::PI, "-π"),
    ];
    match named.iter().find(|(number, _)| *number == value) {
        Some((_, name)) => f.write_str(name),
        None => write!(f, "{value}"),
    }
}
