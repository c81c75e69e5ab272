//! The table of operations that compute floats from floats, lane by lane: arithmetic and mathematical functions.
//!
//! A row holds all properties of a function: its value, its derivative, where that is infinite, its cost, its names in LLVM, C and Rust. All
//! else follows: the operation and its text form (`opcode.rs`), constant folding and the interpreter, derivatives (`diff::rules`), what is hoisted, cached and
//! recomputed (`opt::speculation`, `opt::cost`), import and export (`import`, `export`), random programs (`gen`), the page `docs/mathematics.md`, and the tests that
//! compare values with compiled code and derivatives with finite differences.
//!
//! Conventions where there is no derivative, or more than one: `√` at 0 has derivative 0; a tie of `fmax` goes to the
//! first operand, a tie of `fmin` to the second; `|x|` at a zero has the sign of that zero as its derivative, which is the side that the zero comes from;
//! `0^y` for `y ≥ 0` does not vary with `y`; `hypot` at the origin has derivative 0. Where one operand of `fmin` or `fmax` is NaN, the other is the result
//! and gets the derivative. Elsewhere the formula is evaluated as written, and infinity or NaN says that there is no derivative.
//!
//! Of several formulas for a derivative, the table has the one that reads the fewest values (`exp` and
//! `sqrt` read their result), unless that costs accuracy. Products are written so that factors shared by partial
//! derivatives come first, and are computed once.

mod rows;
mod special;
#[cfg(test)]
mod tests;

use crate::formula::*;
use crate::opcode::Opcode;
pub(crate) use rows::with_functions;
use std::f64::consts::{FRAC_1_PI, FRAC_2_SQRT_PI, FRAC_PI_2, LN_2, LN_10, LOG2_E, LOG10_E, PI};
use std::fmt;
use std::sync::LazyLock;

/// All numbers, or those between two.
pub type Interval = (f64, f64);

const ALL: Interval = (f64::NEG_INFINITY, f64::INFINITY);
/// Not −0, which is below.
const NOT_NEGATIVE: Interval = (0.0, f64::INFINITY);
const FROM_ONE: Interval = (1.0, f64::INFINITY);
const UNIT: Interval = (-1.0, 1.0);

/// A row of the table.
#[derive(Debug)]
pub struct MathFunction {
    /// The operation that computes it.
    pub opcode: Opcode,
    /// Its value, in double precision.
    pub value: MathValue,
    derivative: fn() -> Derivative,
    /// What its derivative can be.
    pub slope: Slope,
    /// All that its (first) result can be, NaN aside.
    pub image: Interval,
    /// Its cost.
    pub cost: MathCost,
    /// LLVM's intrinsics for it, without `llvm.` and types. The first is used for export.
    pub llvm: &'static [&'static str],
    /// Names in C's library, in double precision. The first is used for export if LLVM has no intrinsic.
    pub c: &'static [&'static str],
    /// Further names in C's library that the standard leaves to programs, which may mean something else by them.
    pub not_reserved: &'static [&'static str],
    /// The method of `f64` that computes it.
    pub rust: Option<&'static str>,
    /// For each operand, where it is smooth and moderate, with its derivatives: where tests and random programs apply it. Empty for arithmetic, and for what has kinks or jumps
    /// everywhere.
    pub domain: &'static [Interval],
}

/// How a function is computed. Narrower floats are computed in double precision and rounded.
#[derive(Clone, Copy, Debug)]
pub enum MathValue {
    /// Of one float.
    FloatUnary(fn(f64) -> f64),
    /// Of one float, by a formula in other functions, for which no library is needed.
    Composite(fn() -> Formula),
    /// Of two floats, in the same way.
    CompositeBinary(fn() -> Formula),
    /// Of two floats.
    FloatBinary(fn(f64, f64) -> f64),
    /// Of three floats.
    FloatTernary(fn(f64, f64, f64) -> f64),
    /// Of a float and an integer.
    FloatAndInt(fn(f64, i32) -> f64),
    /// Of a float and an integer, which comes first in C's library and here.
    IntAndFloat(fn(i32, f64) -> f64),
    /// A float to an integer.
    FloatToExponent(fn(f64) -> i32),
    /// A float to a float and an integer.
    FloatSplit(fn(f64) -> (f64, i32)),
    /// A float to two floats.
    FloatPair(fn(f64) -> (f64, f64)),
}

/// How the results vary with the operands.
#[derive(Clone, PartialEq, Debug)]
pub enum Derivative {
    /// For each result, the partial derivative by each float operand.
    Partials(Vec<Vec<Formula>>),
    /// It is constant between its jumps: the derivative is zero almost everywhere.
    Steps,
}

/// Whether a derivative may be infinite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slope {
    /// Bounded, and the function is so cheap that it may be computed for nothing.
    Bounded,
    /// Finite for finite operands.
    Finite,
    /// Infinite, or no number: where.
    Infinite(&'static str),
}

/// The cost of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MathCost {
    /// An instruction.
    Simple,
    /// A slow instruction, or several.
    Slow,
    /// The implementation of a function, for one number at a time.
    Call,
}

impl Opcode {
    /// The row of the table, if this operation computes floats from floats.
    #[inline]
    pub fn math(self) -> Option<&'static MathFunction> {
        // They are the first operations.
        ROWS.get(self as usize)
    }
}

impl MathFunction {
    /// All rows.
    pub fn all() -> impl Iterator<Item = &'static MathFunction> {
        ROWS.iter()
    }

    /// The function of this name in C's library, in double precision.
    pub fn named_in_c(name: &str) -> Option<&'static MathFunction> {
        ROWS.iter()
            .find(|row| row.c.contains(&name) || row.not_reserved.contains(&name))
    }

    /// The function that an intrinsic of LLVM's computes, by its name without `llvm.` and types.
    pub fn named_in_llvm(name: &str) -> Option<&'static MathFunction> {
        ROWS.iter().find(|row| row.llvm.contains(&name))
    }

    /// How the results vary with the operands.
    pub fn derivative(&self) -> Derivative {
        (self.derivative)()
    }

    /// The results at a point, integers among operands and results as floats; the second is NaN where there is one only.
    pub fn at(&self, operands: &[f64]) -> (f64, f64) {
        let one = |value: f64| (value, f64::NAN);
        match (self.value, operands) {
            (MathValue::FloatUnary(f), &[x]) => one(f(x)),
            (MathValue::Composite(_), &[_]) | (MathValue::CompositeBinary(_), &[_, _]) => {
                one(self.composite(operands))
            }
            (MathValue::FloatBinary(f), &[x, y]) => one(f(x, y)),
            (MathValue::FloatTernary(f), &[x, y, z]) => one(f(x, y, z)),
            (MathValue::FloatAndInt(f), &[x, n]) => one(f(x, n as i32)),
            (MathValue::IntAndFloat(f), &[x, n]) => one(f(n as i32, x)),
            (MathValue::FloatToExponent(f), &[x]) => one(f64::from(f(x))),
            (MathValue::FloatSplit(f), &[x]) => {
                let (mantissa, exponent) = f(x);
                (mantissa, f64::from(exponent))
            }
            (MathValue::FloatPair(f), &[x]) => f(x),
            _ => unreachable!("{} has another number of operands", self.opcode),
        }
    }

    fn composite(&self, operands: &[f64]) -> f64 {
        static FORMULAS: LazyLock<Vec<Option<Formula>>> = LazyLock::new(|| {
            let formulas = ROWS.iter().map(|row| row.value.formula());
            formulas.collect()
        });
        let formula = &FORMULAS[self.opcode as usize];
        let value = formula.as_ref().map(|formula| formula.at(operands));
        value.unwrap_or(f64::NAN)
    }
}

impl MathValue {
    /// The formula in other functions by which it is computed, if there is one.
    pub fn formula(self) -> Option<Formula> {
        match self {
            MathValue::Composite(formula) | MathValue::CompositeBinary(formula) => Some(formula()),
            _ => None,
        }
    }
}

impl<const OPERANDS: usize> From<[Formula; OPERANDS]> for Derivative {
    fn from(partials: [Formula; OPERANDS]) -> Derivative {
        Derivative::Partials(vec![partials.to_vec()])
    }
}

impl<const OPERANDS: usize> From<[[Formula; OPERANDS]; 2]> for Derivative {
    fn from(partials: [[Formula; OPERANDS]; 2]) -> Derivative {
        Derivative::Partials(partials.map(|row| row.to_vec()).into())
    }
}

/// As `∂x = …, ∂y = …`.
impl fmt::Display for Derivative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Derivative::Partials(rows) = self else {
            return f.write_str("0 almost everywhere");
        };
        let mut separator = "";
        for (result, row) in ["r", "s"].iter().zip(rows) {
            for (operand, formula) in ["x", "y", "z"].iter().zip(row) {
                if rows.len() > 1 {
                    write!(f, "{separator}∂{result}/∂{operand} = {formula}")?;
                } else {
                    write!(f, "{separator}∂{operand} = {formula}")?;
                }
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// The result is the first operand where the condition holds, otherwise the second.
fn choice(first: Formula) -> [Formula; 2] {
    [where_(first.clone(), ONE, ZERO), where_(first, ZERO, ONE)]
}

fn inverse_or_zero(a: Formula) -> Formula {
    where_(equal(a.clone(), 0.0), ZERO, 1.0 / a)
}

/// `a` minus the nearest multiple of 2, which is exact: reduces the argument of functions of `π·a` to one period.
fn within_period(a: Formula) -> Formula {
    a.clone() - 2.0 * round_even(0.5 * a)
}

macro_rules! rows {
    (functions { $(
        $(#[doc = $doc:literal])+ $name:ident $text:ident $value:ident($($compute:tt)+) {
            derivative: $derivative:expr, slope: $slope:expr $(, image: $image:expr)?, cost: $cost:ident
            $(, llvm: [$($llvm:literal),+])? $(, c: [$($c:literal),+])? $(, not_reserved: [$($not_reserved:literal),+])?
            $(, rust: $rust:literal)? $(, domain: [$($domain:expr),+])?
        }
    )* }) => {
        static ROWS: &[MathFunction] = {
            use Slope::*;
            &[$(MathFunction {
                opcode: Opcode::$name,
                value: MathValue::$value($($compute)+),
                derivative: || ($derivative).into(),
                slope: $slope,
                image: [$($image,)? ALL][0],
                cost: MathCost::$cost,
                llvm: &[$($($llvm),+)?],
                c: &[$($($c),+)?],
                not_reserved: &[$($($not_reserved),+)?],
                rust: [$(Some($rust),)? None][0],
                domain: &[$($($domain),+)?],
            },)*]
        };
    };
}

with_functions! { rows! {} }
