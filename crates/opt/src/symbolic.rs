//! Polynomials over integer values: the language of index expressions, trip counts and byte offsets.
//!
//! `8·i·n + 8·j + 16` is a [`Symbolic`]. A variable is a [`Value`] and stands for the value's bits read as a signed
//! number; values narrower than 64 bits may occur, and mean their sign extension.
//!
//! Coefficients are `i64`. An operation whose coefficients would overflow, or whose result would grow beyond a fixed
//! size, gives `None`, and the caller treats the result as a variable of its own. Two expressions that are equal here are
//! equal modulo 2⁶⁴ whatever the values of their variables, so the difference of two addresses is exact even where
//! the arithmetic of the program wraps around.

use ferrozyme_ir::{Builder, Names, Opcode, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;

/// The variables of a product, sorted; a square lists its variable twice.
pub type Monomial = SmallVec<[Value; 2]>;

/// One product of an expression, with its coefficient.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The coefficient; never 0.
    pub coefficient: i64,
    /// The variables; at least one.
    pub monomial: Monomial,
}

impl Term {
    /// The term as an expression.
    pub(crate) fn to_symbolic(&self) -> Symbolic {
        Symbolic {
            constant: 0,
            terms: smallvec::smallvec![self.clone()],
        }
    }
}

/// A polynomial with `i64` coefficients over integer values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Symbolic {
    constant: i64,
    /// Sorted by monomial, without duplicates.
    terms: SmallVec<[Term; 1]>,
}

/// More terms than this make an expression useless for proofs and slow for everybody.
const MAX_TERMS: usize = 24;
/// The same for the number of factors of a term.
const MAX_DEGREE: usize = 6;

impl Symbolic {
    /// A number.
    pub fn constant(constant: i64) -> Symbolic {
        Symbolic {
            constant,
            terms: SmallVec::new(),
        }
    }

    /// The value itself.
    pub fn of_value(value: Value) -> Symbolic {
        Symbolic {
            constant: 0,
            terms: smallvec::smallvec![Term {
                coefficient: 1,
                monomial: smallvec::smallvec![value],
            }],
        }
    }

    /// The number that this is, if it has no variables.
    pub fn is_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The value that this is, if it is a single variable.
    pub fn is_value(&self) -> Option<Value> {
        match (self.constant, self.terms.as_slice()) {
            (0, [term]) if term.coefficient == 1 && term.monomial.len() == 1 => {
                Some(term.monomial[0])
            }
            _ => None,
        }
    }

    /// The part without variables.
    pub fn constant_part(&self) -> i64 {
        self.constant
    }

    /// The products of variables, sorted by monomial.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Every variable, as often as it occurs.
    pub fn variables(&self) -> impl Iterator<Item = Value> + '_ {
        self.terms
            .iter()
            .flat_map(|term| term.monomial.iter().copied())
    }

    /// Whether a value occurs.
    pub fn mentions(&self, value: Value) -> bool {
        self.variables().any(|variable| variable == value)
    }

    /// The sum.
    pub fn add(&self, other: &Symbolic) -> Option<Symbolic> {
        self.combine(other, 1)
    }

    /// The difference.
    pub fn sub(&self, other: &Symbolic) -> Option<Symbolic> {
        self.combine(other, -1)
    }

    /// The sum with a number.
    pub fn plus(&self, number: i64) -> Option<Symbolic> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(number)?;
        Some(sum)
    }

    /// The multiple by a number.
    pub fn scale(&self, factor: i64) -> Option<Symbolic> {
        if factor == 0 {
            return Some(Symbolic::default());
        }
        let mut product = self.clone();
        product.constant = product.constant.checked_mul(factor)?;
        for term in &mut product.terms {
            term.coefficient = term.coefficient.checked_mul(factor)?;
        }
        Some(product)
    }

    /// The quotient by a number, where that leaves no remainder in any coefficient.
    pub fn divide_exactly(&self, divisor: i64) -> Option<Symbolic> {
        let divide = |number: i64| {
            (number.checked_rem(divisor)? == 0).then_some(number.checked_div(divisor)?)
        };
        let mut quotient = self.clone();
        quotient.constant = divide(quotient.constant)?;
        for term in &mut quotient.terms {
            term.coefficient = divide(term.coefficient)?;
        }
        Some(quotient)
    }

    /// The product.
    pub fn mul(&self, other: &Symbolic) -> Option<Symbolic> {
        if let Some(factor) = self.is_constant() {
            return other.scale(factor);
        }
        if let Some(factor) = other.is_constant() {
            return self.scale(factor);
        }
        let mut terms: Vec<Term> = Vec::new();
        for left in &self.terms {
            for right in &other.terms {
                let mut monomial = left.monomial.clone();
                monomial.extend_from_slice(&right.monomial);
                if monomial.len() > MAX_DEGREE {
                    return None;
                }
                monomial.sort_unstable();
                terms.push(Term {
                    coefficient: left.coefficient.checked_mul(right.coefficient)?,
                    monomial,
                });
            }
        }
        for (side, constant) in [(self, other.constant), (other, self.constant)] {
            if constant != 0 {
                for term in &side.terms {
                    terms.push(Term {
                        coefficient: term.coefficient.checked_mul(constant)?,
                        monomial: term.monomial.clone(),
                    });
                }
            }
        }
        Symbolic::collect(self.constant.checked_mul(other.constant)?, terms)
    }

    /// This with a variable replaced.
    pub fn substitute(&self, value: Value, replacement: &Symbolic) -> Option<Symbolic> {
        if !self.mentions(value) {
            return Some(self.clone());
        }
        let map = FxHashMap::from_iter([(value, replacement.clone())]);
        self.substitute_all(&map)
    }

    /// This with variables replaced, all at once.
    pub fn substitute_all(&self, replacements: &FxHashMap<Value, Symbolic>) -> Option<Symbolic> {
        if !self
            .variables()
            .any(|variable| replacements.contains_key(&variable))
        {
            return Some(self.clone());
        }
        let mut sum = Symbolic::constant(self.constant);
        for term in &self.terms {
            let mut product = Symbolic::constant(term.coefficient);
            for &variable in &term.monomial {
                product = match replacements.get(&variable) {
                    Some(replacement) => product.mul(replacement)?,
                    None => product.mul(&Symbolic::of_value(variable))?,
                };
            }
            sum = sum.add(&product)?;
        }
        Some(sum)
    }

    /// The factors of one variable: `(q, rest)` with `self = value·q + rest`, where `rest` does not mention `value`.
    pub fn split(&self, value: Value) -> (Symbolic, Symbolic) {
        let mut quotient = Symbolic::default();
        let mut rest = Symbolic::constant(self.constant);
        let mut factors = Vec::new();
        for term in &self.terms {
            match term.monomial.iter().position(|&factor| factor == value) {
                Some(_) if term.monomial.len() == 1 => quotient.constant = term.coefficient,
                Some(position) => {
                    let mut term = term.clone();
                    term.monomial.remove(position);
                    factors.push(term);
                }
                None => rest.terms.push(term.clone()),
            }
        }
        // Taking the same factor out of different monomials leaves different ones, in an order that may have changed.
        factors.sort_by(|a, b| a.monomial.cmp(&b.monomial));
        quotient.terms = factors.into();
        (quotient, rest)
    }

    /// The greatest number that divides the coefficients of all terms (not the constant part); 0 without terms.
    pub fn common_divisor(&self) -> u64 {
        self.terms.iter().fold(0, |divisor, term| {
            greatest_common_divisor(divisor, term.coefficient.unsigned_abs())
        })
    }

    /// Writes it with these names for the variables.
    pub fn write_with(
        &self,
        f: &mut impl fmt::Write,
        mut name: impl FnMut(Value) -> String,
    ) -> fmt::Result {
        let mut first = true;
        for term in &self.terms {
            let magnitude = term.coefficient.unsigned_abs();
            f.write_str(match (first, term.coefficient < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            })?;
            first = false;
            if magnitude != 1 {
                write!(f, "{magnitude}*")?;
            }
            for (index, &variable) in term.monomial.iter().enumerate() {
                let separator = if index > 0 { "*" } else { "" };
                write!(f, "{separator}{}", name(variable))?;
            }
        }
        match (first, self.constant) {
            (true, constant) => write!(f, "{constant}"),
            (false, 0) => Ok(()),
            (false, constant) => {
                let sign = if constant < 0 { '-' } else { '+' };
                write!(f, " {sign} {}", constant.unsigned_abs())
            }
        }
    }

    /// The expression with the names of the text form.
    pub fn to_text(&self, names: &Names) -> String {
        let mut text = String::new();
        self.write_with(&mut text, |value| match names.get(value) {
            Some(name) => name.to_owned(),
            None => value.to_string(),
        })
        .expect("writing into a string does not fail");
        text
    }

    /// Builds the operations that compute this as an `i64`, from variables that are visible there.
    ///
    /// Gives `None` if a variable is not a scalar integer of at most 64 bits (the offset of a pointer that could not be
    /// expressed is a variable too); see [`Indices::can_emit`](crate::indices::Indices::can_emit).
    pub fn emit(&self, b: &mut Builder) -> Option<Value> {
        let fits = |value: Value| {
            let ty = b.ty(value);
            ty.is_int() && !ty.is_vector() && ty.scalar().bits() <= 64
        };
        if !self.variables().all(fits) {
            return None;
        }
        let mut sum: Option<Value> = None;
        for term in &self.terms {
            let mut product: Option<Value> = None;
            for &variable in &term.monomial {
                let factor = match b.ty(variable) {
                    Type::I64 => variable,
                    _ => b.cast(Opcode::Sext, variable, Type::I64),
                };
                product = Some(match product {
                    Some(product) => b.binary(Opcode::Mul, product, factor),
                    None => factor,
                });
            }
            let mut product = product.expect("a term has at least one factor");
            // Subtracting reads better than adding a negative multiple.
            let subtract = term.coefficient < 0 && sum.is_some();
            let coefficient = if subtract {
                term.coefficient.wrapping_neg()
            } else {
                term.coefficient
            };
            if coefficient != 1 {
                let factor = b.i64(coefficient);
                product = b.binary(Opcode::Mul, product, factor);
            }
            sum = Some(match sum {
                Some(sum) if subtract => b.binary(Opcode::Sub, sum, product),
                Some(sum) => b.binary(Opcode::Add, sum, product),
                None => product,
            });
        }
        Some(match sum {
            None => b.i64(self.constant),
            Some(sum) if self.constant == 0 => sum,
            Some(sum) => {
                let constant = b.i64(self.constant);
                b.binary(Opcode::Add, sum, constant)
            }
        })
    }

    fn combine(&self, other: &Symbolic, sign: i64) -> Option<Symbolic> {
        let constant = match sign {
            1 => self.constant.checked_add(other.constant)?,
            _ => self.constant.checked_sub(other.constant)?,
        };
        let mut terms: SmallVec<[Term; 1]> = SmallVec::new();
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.monomial.cmp(&b.monomial),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            let mut coefficient = 0i64;
            let mut monomial = None;
            if order.is_le()
                && let Some(term) = left.next()
            {
                coefficient = term.coefficient;
                monomial = Some(&term.monomial);
            }
            if order.is_ge()
                && let Some(term) = right.next()
            {
                coefficient = coefficient.checked_add(term.coefficient.checked_mul(sign)?)?;
                monomial = Some(&term.monomial);
            }
            if let Some(monomial) = monomial
                && coefficient != 0
            {
                terms.push(Term {
                    coefficient,
                    monomial: monomial.clone(),
                });
            }
        }
        (terms.len() <= MAX_TERMS).then_some(Symbolic { constant, terms })
    }

    fn collect(constant: i64, mut terms: Vec<Term>) -> Option<Symbolic> {
        terms.sort_by(|a, b| a.monomial.cmp(&b.monomial));
        let mut merged: SmallVec<[Term; 1]> = SmallVec::new();
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.monomial == term.monomial => {
                    last.coefficient = last.coefficient.checked_add(term.coefficient)?;
                }
                _ => merged.push(term),
            }
        }
        merged.retain(|term| term.coefficient != 0);
        (merged.len() <= MAX_TERMS).then_some(Symbolic {
            constant,
            terms: merged,
        })
    }
}

impl From<i64> for Symbolic {
    fn from(constant: i64) -> Symbolic {
        Symbolic::constant(constant)
    }
}

impl From<Value> for Symbolic {
    fn from(value: Value) -> Symbolic {
        Symbolic::of_value(value)
    }
}

impl fmt::Display for Symbolic {
    /// Writes it with the numbers of the values; [`Symbolic::write_with`] takes names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_with(f, |value| value.to_string())
    }
}

/// The greatest number that divides both; the other one where one is 0.
pub(crate) fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(number: u32) -> Symbolic {
        Symbolic::of_value(Value::from_u32(number))
    }

    #[test]
    fn polynomials_have_one_form() {
        let (a, b) = (v(0), v(1));
        let sum = a.add(&b).unwrap();
        let difference = a.sub(&b).unwrap();
        let product = sum.mul(&difference).unwrap();
        let squares = a.mul(&a).unwrap().sub(&b.mul(&b).unwrap()).unwrap();
        assert_eq!(product, squares);
        assert_eq!(product.to_string(), "v0*v0 - v1*v1");
        assert_eq!(a.sub(&a).unwrap().is_constant(), Some(0));
        assert_eq!(
            sum.plus(3).unwrap().scale(-8).unwrap().to_string(),
            "-8*v0 - 8*v1 - 24"
        );
    }

    #[test]
    fn split_takes_one_factor_out() {
        // 2*a*b + a - 3*c + 7 = a*(2*b + 1) + (7 - 3*c)
        let (a, b, c) = (v(0), v(1), v(2));
        let p = a
            .mul(&b)
            .unwrap()
            .scale(2)
            .unwrap()
            .add(&a)
            .unwrap()
            .sub(&c.scale(3).unwrap())
            .unwrap()
            .plus(7)
            .unwrap();
        let (quotient, rest) = p.split(Value::from_u32(0));
        assert_eq!(quotient.to_string(), "2*v1 + 1");
        assert_eq!(rest.to_string(), "-3*v2 + 7");
        let again = quotient.mul(&a).unwrap().add(&rest).unwrap();
        assert_eq!(again, p);
    }

    #[test]
    fn split_keeps_the_canonical_order() {
        // Taking v1 out of v0*v1 and v1*v1 and v1*v0*v0 must leave sorted monomials.
        let (a, b) = (v(0), v(1));
        let p = a
            .mul(&b)
            .unwrap()
            .add(&b.mul(&b).unwrap())
            .unwrap()
            .add(&a.mul(&a).unwrap().mul(&b).unwrap())
            .unwrap();
        let (quotient, rest) = p.split(Value::from_u32(1));
        assert_eq!(rest.is_constant(), Some(0));
        let expected = a.add(&b).unwrap().add(&a.mul(&a).unwrap()).unwrap();
        assert_eq!(quotient, expected);
    }

    #[test]
    fn substitution_is_simultaneous() {
        let (a, b) = (v(0), v(1));
        let p = a.scale(2).unwrap().add(&b).unwrap();
        let swap = FxHashMap::from_iter([
            (Value::from_u32(0), b.clone()),
            (Value::from_u32(1), a.clone()),
        ]);
        assert_eq!(
            p.substitute_all(&swap).unwrap(),
            b.scale(2).unwrap().add(&a).unwrap()
        );
    }

    #[test]
    fn overflow_gives_up() {
        let big = v(0).scale(i64::MAX).unwrap();
        assert_eq!(big.scale(2), None);
        assert_eq!(big.add(&v(0)), None);
        assert_eq!(Symbolic::constant(i64::MIN).scale(-1), None);
        assert_eq!(v(0).scale(i64::MIN).unwrap().divide_exactly(-1), None);
        assert_eq!(Symbolic::constant(i64::MAX).plus(1), None);
    }

    #[test]
    fn growth_gives_up() {
        let mut sum = Symbolic::default();
        let mut steps = 0;
        while let Some(next) = sum.add(&v(steps)) {
            sum = next;
            steps += 1;
        }
        assert_eq!(steps as usize, MAX_TERMS);
    }

    #[test]
    fn divisors() {
        let p = v(0)
            .scale(12)
            .unwrap()
            .add(&v(1).scale(-18).unwrap())
            .unwrap()
            .plus(5)
            .unwrap();
        assert_eq!(p.common_divisor(), 6);
        assert_eq!(p.divide_exactly(6), None);
        assert_eq!(
            p.plus(1).unwrap().divide_exactly(6).unwrap().to_string(),
            "2*v0 - 3*v1 + 1"
        );
    }
}
