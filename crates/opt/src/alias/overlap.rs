//! Whether two places behind one root share a byte, in one iteration or in two.

use super::{Access, Aliases};
use crate::indices::{Counted, Indices, is_tight};
use crate::inequalities::Inequalities;
use crate::interval::Interval;
use crate::symbolic::{Monomial, Symbolic, Term, greatest_common_divisor};
use ferrozyme_ir::{Op, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

impl<'m> Aliases<'m> {
    /// Whether `a` and `b`, the latter seen from another iteration if one is given, may share a byte of one root.
    pub(super) fn may_overlap<'a>(
        &'a self,
        known: &mut Inequalities<'a, 'm>,
        a: &Access,
        b: &Access,
        mut other: Option<Iteration<'a, 'm>>,
        assume: &mut dyn FnMut(&mut Inequalities<'a, 'm>, Option<&mut Iteration<'a, 'm>>),
    ) -> bool {
        let (Some(a_size), Some(b_size)) = (&a.size, &b.size) else {
            return true;
        };
        let rename = |known: &mut Inequalities<'a, 'm>,
                      other: &mut Option<Iteration<'a, 'm>>,
                      expression: &Symbolic| match other {
            Some(iteration) => iteration.rename(known, expression),
            None => Some(expression.clone()),
        };
        let (Some(b_offset), Some(b_size)) = (
            rename(known, &mut other, &b.offset),
            rename(known, &mut other, b_size),
        ) else {
            return true;
        };
        let Some(distance) = b_offset.sub(&a.offset) else {
            return true;
        };
        let sizes = (a_size.is_constant(), b_size.is_constant());
        if let (Some(distance), (Some(a_size), Some(b_size))) = (distance.is_constant(), sizes) {
            return constants_overlap(distance, a_size, b_size);
        }
        if self.may_wrap(known, &distance) {
            return true;
        }
        if let (Some(a_size), Some(b_size)) = sizes {
            if apart_by_remainder(&distance, a_size, b_size) {
                return false;
            }
            if (self.has_strides(&a.offset) || self.has_strides(&b.offset))
                && let (Some(a_strided), Some(b_strided)) =
                    (self.in_strides(&a.offset), self.in_strides(&b.offset))
                && let Some(b_strided) = match &mut other {
                    Some(iteration) => iteration.rename_strided(known, &b_strided),
                    None => Some(b_strided),
                }
                && let Some(distance) = b_strided.sub(&a_strided)
                && apart_by_remainder(&distance, a_size, b_size)
            {
                return false;
            }
        }
        assume(known, other.as_mut());
        // Where one of the two is empty, they share nothing.
        for size in [a_size, &b_size] {
            if let Some(rest) = size.plus(-1) {
                known.assume(&rest);
            }
        }
        let behind = distance.sub(a_size);
        if behind.is_some_and(|behind| known.prove_at_least(&behind, 0)) {
            return false;
        }
        let before = distance.add(&b_size);
        if before.is_some_and(|before| known.prove_at_most(&before, 0)) {
            return false;
        }
        !apart_by_column(known, &distance, a_size, &b_size)
    }

    /// Whether the numbers say that a distance may exceed what addresses can tell apart.
    fn may_wrap(&self, known: &Inequalities, distance: &Symbolic) -> bool {
        let interval = |variable| known.interval_of_variable(variable);
        // Where a variable has no limit but its type's, the assumption of this file has to do.
        distance
            .variables()
            .all(|variable| is_tight(interval(variable)))
            && !self
                .indices
                .interval_of(distance, interval)
                .is_within(Interval::of_bits(63))
    }

    /// Whether an offset mentions a counter of a step other than ±1.
    fn has_strides(&self, offset: &Symbolic) -> bool {
        offset.variables().any(|variable| {
            self.indices.counted_by(variable).is_some_and(|counted| {
                counted
                    .constant_step()
                    .is_some_and(|step| step.unsigned_abs() > 1)
            })
        })
    }

    /// An offset with every counter of a step other than ±1 replaced by first value + step · iteration, where the
    /// iteration's number goes by the counter's name.
    fn in_strides(&self, offset: &Symbolic) -> Option<Symbolic> {
        let mut strided: SmallVec<[Value; 4]> = SmallVec::new();
        let mut replaced = offset.clone();
        loop {
            // The bound of an inner counter may mention outer ones, which then have to be replaced too; the counter
            // defined last goes first, so that no name has two meanings.
            let next = replaced
                .variables()
                .filter(|variable| !strided.contains(variable))
                .filter_map(|variable| {
                    let counted = self.indices.counted_by(variable)?;
                    let step = counted.constant_step()?;
                    (step.unsigned_abs() > 1).then_some((counted, step))
                })
                .max_by_key(|(counted, _)| self.indices.rank(counted.counter));
            let Some((counted, step)) = next else {
                break;
            };
            strided.push(counted.counter);
            let value = Symbolic::of_value(counted.counter)
                .scale(step)?
                .add(&counted.from)?;
            replaced = replaced.substitute(counted.counter, &value)?;
        }
        Some(replaced)
    }
}

/// Another iteration of a loop: what the names of one are called in the other.
pub(super) struct Iteration<'a, 'f> {
    indices: &'a Indices<'f>,
    loop_op: Op,
    names: FxHashMap<Value, Symbolic>,
    /// The same where counters stand for numbers of iterations.
    strided_names: FxHashMap<Value, Symbolic>,
}

impl<'a, 'f> Iteration<'a, 'f> {
    /// A later iteration, `distance` of them after, or with nothing given any iteration.
    pub(super) fn new(
        indices: &'a Indices<'f>,
        loop_op: Op,
        distance: Option<(&Counted, Value)>,
    ) -> Iteration<'a, 'f> {
        let mut names = FxHashMap::default();
        let mut strided_names = FxHashMap::default();
        if let Some((counted, distance)) = distance {
            let counter = Symbolic::of_value(counted.counter);
            let distance = Symbolic::of_value(distance);
            let later = distance
                .mul(&counted.step)
                .and_then(|passed| counter.add(&passed));
            if let Some(later) = later {
                names.insert(counted.counter, later);
            }
            // A step of ±1 leaves the counter itself in place, otherwise it numbers the iterations.
            let strided = match counted.constant_step() {
                Some(-1) => counter.sub(&distance),
                _ => counter.add(&distance),
            };
            if let (Some(strided), Some(_)) = (strided, counted.constant_step()) {
                strided_names.insert(counted.counter, strided);
            }
        }
        Iteration {
            indices,
            loop_op,
            names,
            strided_names,
        }
    }

    pub(super) fn rename(
        &mut self,
        known: &mut Inequalities<'a, 'f>,
        expression: &Symbolic,
    ) -> Option<Symbolic> {
        rename(
            self.indices,
            self.loop_op,
            &mut self.names,
            known,
            expression,
        )
    }

    fn rename_strided(
        &mut self,
        known: &mut Inequalities<'a, 'f>,
        expression: &Symbolic,
    ) -> Option<Symbolic> {
        rename(
            self.indices,
            self.loop_op,
            &mut self.strided_names,
            known,
            expression,
        )
    }
}

fn rename<'a, 'f>(
    indices: &'a Indices<'f>,
    loop_op: Op,
    names: &mut FxHashMap<Value, Symbolic>,
    known: &mut Inequalities<'a, 'f>,
    expression: &Symbolic,
) -> Option<Symbolic> {
    for variable in expression.variables() {
        if !names.contains_key(&variable) && indices.varies_in(variable, loop_op) {
            let name = known.invent_like(variable);
            names.insert(variable, Symbolic::of_value(name));
        }
    }
    expression.substitute_all(names)
}

/// Whether two places of a matrix are apart because their columns are, whatever their rows.
///
/// For some length `s` of a row, the distance is `s·q + r`, where `q` may be anything. If `a_size ≤ r ≤ s - b_size`, it is at
/// least `a_size` for `q ≥ 0` and at most `-b_size` for `q < 0`. The same goes for `r + s` in place of `r`.
fn apart_by_column(
    known: &Inequalities,
    distance: &Symbolic,
    a_size: &Symbolic,
    b_size: &Symbolic,
) -> bool {
    row_lengths(distance).into_iter().any(|row| {
        let apart = || {
            let mut remainder = Symbolic::constant(distance.constant_part());
            let (length, factor) = (row.to_symbolic(), row.coefficient);
            for term in distance.terms() {
                let divides = term.coefficient % factor == 0
                    && without(&term.monomial, &row.monomial).is_some();
                if !divides {
                    remainder = remainder.add(&term.to_symbolic())?;
                }
            }
            let at_least = |a: &Symbolic, b: &Symbolic| {
                a.sub(b)
                    .is_some_and(|difference| known.prove_at_least(&difference, 0))
            };
            let (behind, shifted) = (length.sub(b_size)?, remainder.add(&length)?);
            Some(
                (at_least(&remainder, a_size) && at_least(&behind, &remainder))
                    || (at_least(&shifted, a_size) && at_least(&behind, &shifted)),
            )
        };
        apart().unwrap_or(false)
    })
}

/// What may be the length of a row: the products in a distance with one factor taken out, a few at most.
fn row_lengths(distance: &Symbolic) -> SmallVec<[Term; 4]> {
    let mut rows: SmallVec<[Term; 4]> = SmallVec::new();
    for term in distance.terms() {
        for &variable in &term.monomial {
            let monomial = without(&term.monomial, &[variable]).unwrap_or_default();
            if monomial.is_empty() {
                continue;
            }
            let Ok(factor) = i64::try_from(term.coefficient.unsigned_abs()) else {
                continue;
            };
            if let Some(row) = rows.iter_mut().find(|row| row.monomial == monomial) {
                let common =
                    greatest_common_divisor(row.coefficient.unsigned_abs(), factor.unsigned_abs());
                row.coefficient = i64::try_from(common).unwrap_or(row.coefficient);
            } else if rows.len() < MAX_ROWS {
                rows.push(Term {
                    coefficient: factor,
                    monomial,
                });
            }
        }
    }
    rows
}

/// How many lengths of rows are tried.
const MAX_ROWS: usize = 4;

/// A product without some of its factors, if it has them all.
fn without(monomial: &[Value], factors: &[Value]) -> Option<Monomial> {
    let mut rest = Monomial::from_slice(monomial);
    for factor in factors {
        let position = rest.iter().position(|other| other == factor)?;
        rest.remove(position);
    }
    Some(rest)
}

/// Whether `a_size` bytes at 0 and `b_size` bytes at `distance` share one, modulo 2⁶⁴.
fn constants_overlap(distance: i64, a_size: i64, b_size: i64) -> bool {
    if a_size < 0 || b_size < 0 {
        return true;
    }
    let distance = i128::from(distance);
    distance < i128::from(a_size) && distance + i128::from(b_size) > 0
}

/// Whether the distance, whatever its variables are, leaves room for both modulo the divisor of its coefficients.
fn apart_by_remainder(distance: &Symbolic, a_size: i64, b_size: i64) -> bool {
    let divisor = i128::from(distance.common_divisor());
    if divisor == 0 || a_size < 0 || b_size < 0 {
        return false;
    }
    let remainder = i128::from(distance.constant_part()).rem_euclid(divisor);
    remainder >= i128::from(a_size) && remainder + i128::from(b_size) <= divisor
}
