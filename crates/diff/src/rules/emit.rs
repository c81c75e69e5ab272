//! Emits derivatives: products of tangents or adjoints with the formulas of the table.
//!
//! What is emitted has no needless operations: a factor 1 vanishes, −1 is a sign, signs merge into sums and differences, a factor
//! that all terms share is applied once to their sum, and a formula that chooses becomes a `select` of products, so that the
//! branch not taken never multiplies in:
//!
//! ```text
//! sqrt: ∂x = where(r = 0, 0, 0.5/r)        %c = fcmp oeq f64 %r, 0.0
//!                                          %h = fmul f64 %r', 0.5
//!                                          %q = fdiv f64 %h, %r
//!                                          %x' = select f64 %c, 0.0, %q
//! ```

use super::{Primal, Rule, linear, rule};
use ferrozyme_ir::formula::{Formula, FormulaWriter, Place, Variable};
use ferrozyme_ir::{Builder, FloatPredicate, Opcode, Type, Value};
use smallvec::SmallVec;

/// Gives the value, where code is being emitted, of a value of the primal. It may emit code to get it.
pub type Lookup<'l> = dyn FnMut(&mut Builder<'_>, Value) -> Value + 'l;

/// The derivative of one operation at one point, to be applied to any number of tangents or adjoints.
///
/// It remembers what it emitted, so all uses must be where that is visible: in one region, or in regions nested there.
pub struct Linearisation<'p> {
    primal: &'p Primal,
    writer: FormulaWriter,
    scaled: Vec<(Value, Formula, Signed)>,
}

/// Operations that compilers run ahead of the condition under which their result is used, because they are cheap and cannot fail.
const RUN_AHEAD: &[Opcode] = &[Opcode::Sqrt];

/// Zero instead of NaN where the result of an operation was not used: 0 times an infinite slope, or one that is not a number.
///
/// Only there: where the product is a number it must stay, since a second differentiation looks at it even where the adjoint is zero.
fn ignore_unused(b: &mut Builder<'_>, adjoint: Value, product: Value) -> Value {
    let zero = b.zero(b.ty(product));
    let unused = b.fcmp(FloatPredicate::Oeq, adjoint, zero);
    let undefined = b.fcmp(FloatPredicate::Uno, product, zero);
    let both = b.binary(Opcode::And, unused, undefined);
    b.select(both, zero, product)
}

/// A value, or its negative.
#[derive(Clone, Copy)]
struct Signed {
    value: Value,
    negative: bool,
}

impl<'p> Linearisation<'p> {
    /// Of this operation; emits nothing yet.
    pub fn new(primal: &'p Primal) -> Linearisation<'p> {
        let first = primal.operand_types.first().or(primal.result_types.first());
        Linearisation {
            primal,
            writer: FormulaWriter::new(first.copied().unwrap_or(Type::F64)),
            scaled: Vec::new(),
        }
    }

    /// See [`vjp`](super::vjp).
    ///
    /// # Panics
    /// As [`vjp`](super::vjp).
    pub fn vjp(
        &mut self,
        b: &mut Builder<'_>,
        lookup: &mut Lookup<'_>,
        adjoints: &[Option<Value>],
        active: u32,
    ) -> SmallVec<[Option<Value>; 4]> {
        let primal = self.primal;
        match rule(primal.opcode) {
            Rule::Partials(rows) => (0..primal.operands.len())
                .map(|operand| {
                    if active >> operand & 1 == 0 {
                        return None;
                    }
                    let terms = adjoints.iter().zip(rows).filter_map(|(adjoint, row)| {
                        Some(((*adjoint)?, primal.partial(row.get(operand)?)))
                    });
                    let terms: SmallVec<[_; 4]> = terms.collect();
                    let sum = self.sum_of_products(b, lookup, &terms);
                    sum.map(|sum| finish(b, sum)).map(|sum| match adjoints {
                        [Some(adjoint)] if RUN_AHEAD.contains(&primal.opcode) => {
                            ignore_unused(b, *adjoint, sum)
                        }
                        _ => sum,
                    })
                })
                .collect(),
            Rule::Linear(_) => linear::vjp(b, primal, lookup, adjoints, active),
            Rule::Inactive(_) => SmallVec::from_elem(None, primal.operands.len()),
            Rule::Structural => panic!("{} has no rule of its own", primal.opcode),
        }
    }

    /// See [`jvp`](super::jvp).
    ///
    /// # Panics
    /// As [`jvp`](super::jvp).
    pub fn jvp(
        &mut self,
        b: &mut Builder<'_>,
        lookup: &mut Lookup<'_>,
        tangents: &[Option<Value>],
    ) -> SmallVec<[Option<Value>; 2]> {
        let primal = self.primal;
        if tangents.iter().all(Option::is_none) {
            return SmallVec::from_elem(None, primal.results.len());
        }
        match rule(primal.opcode) {
            Rule::Partials(rows) => rows
                .iter()
                .map(|row| {
                    let terms = tangents.iter().zip(row).filter_map(|(tangent, formula)| {
                        Some(((*tangent)?, primal.partial(formula)))
                    });
                    let terms: SmallVec<[_; 4]> = terms.collect();
                    self.sum_of_products(b, lookup, &terms)
                        .map(|sum| finish(b, sum))
                })
                .collect(),
            Rule::Linear(_) => SmallVec::from_elem(linear::jvp(b, primal, lookup, tangents), 1),
            Rule::Inactive(_) => SmallVec::from_elem(None, primal.results.len()),
            Rule::Structural => panic!("{} has no rule of its own", primal.opcode),
        }
    }

    /// The sum of `factor·formula` over all terms; none where it is zero.
    fn sum_of_products(
        &mut self,
        b: &mut Builder<'_>,
        lookup: &mut Lookup<'_>,
        terms: &[(Value, Formula)],
    ) -> Option<Signed> {
        let terms: SmallVec<[&(Value, Formula); 4]> = terms
            .iter()
            .filter(|(_, formula)| !formula.is_zero())
            .collect();
        if terms.len() > 1 {
            if let Some(condition) = common(&terms, condition_of) {
                let branch = |index: usize| -> SmallVec<[(Value, Formula); 4]> {
                    let pick = |term: &&(Value, Formula)| (term.0, term.1.parts()[index].clone());
                    terms.iter().map(pick).collect()
                };
                let chosen = self.sum_of_products(b, lookup, &branch(1));
                let otherwise = self.sum_of_products(b, lookup, &branch(2));
                return self.choose(b, lookup, condition, chosen, otherwise);
            }
            if let Some(factor) = common(&terms, leading_factor) {
                let rest: SmallVec<[(Value, Formula); 4]> = terms
                    .iter()
                    .map(|term| (term.0, without_leading_factor(&term.1)))
                    .collect();
                let sum = self.sum_of_products(b, lookup, &rest)?;
                return self.scale(b, lookup, sum, factor);
            }
        }
        let mut sum = None;
        for (value, formula) in terms {
            let factor = Signed {
                value: *value,
                negative: false,
            };
            let product = self.scale(b, lookup, factor, formula);
            sum = match (sum, product) {
                (Some(a), Some(c)) => Some(add(b, a, c)),
                (one, other) => one.or(other),
            };
        }
        sum
    }

    /// `factor·formula`; none where it is zero.
    fn scale(
        &mut self,
        b: &mut Builder<'_>,
        lookup: &mut Lookup<'_>,
        factor: Signed,
        formula: &Formula,
    ) -> Option<Signed> {
        if formula.is_zero() {
            return None;
        }
        let before = self
            .scaled
            .iter()
            .find(|(v, f, _)| *v == factor.value && f == formula);
        if let Some((_, _, product)) = before {
            return Some(product.times_sign(factor.negative));
        }
        let plain = Signed {
            value: factor.value,
            negative: false,
        };
        let product = match formula {
            Formula::Constant(1.0) => plain,
            Formula::Constant(-1.0) => plain.times_sign(true),
            Formula::Apply(Opcode::Fneg, parts) => {
                self.scale(b, lookup, plain, &parts[0])?.times_sign(true)
            }
            Formula::Apply(Opcode::Fmul, parts) => {
                let first = self.scale(b, lookup, plain, &parts[0])?;
                self.scale(b, lookup, first, &parts[1])?
            }
            Formula::Apply(Opcode::Fdiv, parts) if matches!(parts[0], Formula::Constant(_)) => {
                let divisor = self.emit(b, lookup, &parts[1]);
                let dividend = self.scale(b, lookup, plain, &parts[0])?;
                Signed {
                    value: b.binary(Opcode::Fdiv, dividend.value, divisor),
                    ..dividend
                }
            }
            Formula::Apply(Opcode::Ldexp, parts) if parts[0] == Formula::Constant(1.0) => {
                let exponent = self.emit(b, lookup, &parts[1]);
                Signed {
                    value: b.binary(Opcode::Ldexp, plain.value, exponent),
                    ..plain
                }
            }
            Formula::Where(parts) => {
                let chosen = self.scale(b, lookup, plain, &parts[1]);
                let otherwise = self.scale(b, lookup, plain, &parts[2]);
                self.choose(b, lookup, &parts[0], chosen, otherwise)?
            }
            other => {
                let value = self.emit(b, lookup, other);
                Signed {
                    value: b.binary(Opcode::Fmul, plain.value, value),
                    ..plain
                }
            }
        };
        self.scaled.push((factor.value, formula.clone(), product));
        Some(product.times_sign(factor.negative))
    }

    /// One of two values; none where both are zero.
    fn choose(
        &mut self,
        b: &mut Builder<'_>,
        lookup: &mut Lookup<'_>,
        condition: &Formula,
        chosen: Option<Signed>,
        otherwise: Option<Signed>,
    ) -> Option<Signed> {
        let some = chosen.or(otherwise)?;
        // A sign that both have (a zero has any) is left for later.
        let negative = [chosen, otherwise]
            .iter()
            .flatten()
            .all(|value| value.negative);
        let zero = b.ty(some.value);
        let side = |b: &mut Builder<'_>, value: Option<Signed>| match value {
            Some(value) => finish(b, value.times_sign(negative)),
            None => b.zero(zero),
        };
        let chosen = side(b, chosen);
        let otherwise = side(b, otherwise);
        let condition = self.emit(b, lookup, condition);
        Some(Signed {
            value: b.select(condition, chosen, otherwise),
            negative,
        })
    }

    /// The value of a formula.
    fn emit(&mut self, b: &mut Builder<'_>, lookup: &mut Lookup<'_>, formula: &Formula) -> Value {
        let primal = self.primal;
        let mut variable = |b: &mut Builder<'_>, variable: Variable| match variable.place() {
            Place::Operand(index) => lookup(b, primal.operands[index]),
            Place::Result(index) => lookup(b, primal.results[index]),
        };
        self.writer.emit(b, &mut variable, formula)
    }
}

impl Signed {
    fn times_sign(self, negative: bool) -> Signed {
        Signed {
            negative: self.negative ^ negative,
            ..self
        }
    }
}

fn finish(b: &mut Builder<'_>, signed: Signed) -> Value {
    if signed.negative {
        b.unary(Opcode::Fneg, signed.value)
    } else {
        signed.value
    }
}

fn add(b: &mut Builder<'_>, left: Signed, right: Signed) -> Signed {
    let (opcode, a, c, negative) = match (left.negative, right.negative) {
        (false, false) => (Opcode::Fadd, left, right, false),
        (false, true) => (Opcode::Fsub, left, right, false),
        (true, false) => (Opcode::Fsub, right, left, false),
        (true, true) => (Opcode::Fadd, left, right, true),
    };
    Signed {
        value: b.binary(opcode, a.value, c.value),
        negative,
    }
}

/// What `of` finds in every term, if it is the same everywhere.
fn common<'t>(
    terms: &[&'t (Value, Formula)],
    of: impl Fn(&'t Formula) -> Option<&'t Formula>,
) -> Option<&'t Formula> {
    let first = of(&terms[0].1)?;
    terms[1..]
        .iter()
        .all(|term| of(&term.1) == Some(first))
        .then_some(first)
}

fn condition_of(formula: &Formula) -> Option<&Formula> {
    match formula {
        Formula::Where(parts) => Some(&parts[0]),
        _ => None,
    }
}

fn leading_factor(formula: &Formula) -> Option<&Formula> {
    match formula {
        Formula::Constant(_) => None,
        Formula::Apply(Opcode::Fmul, parts) => Some(&parts[0]),
        other => Some(other),
    }
}

fn without_leading_factor(formula: &Formula) -> Formula {
    match formula {
        Formula::Apply(Opcode::Fmul, parts) => parts[1].clone(),
        _ => Formula::Constant(1.0),
    }
}
