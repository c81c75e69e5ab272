//! Proofs that an expression is at least some number, from what is known where code runs.
//!
//! [`Inequalities`] collects what holds: within the body of `for i = a to b step 1`, `a ≤ i`, `i ≤ b - 1` and `a + 1 ≤ b` hold;
//! within the branches of `if`, its comparison does. A proof eliminates one variable after the other, the one defined
//! last first, since its bounds mention only earlier ones: `p = v·q + r` with `q ≥ 0` and `v ≥ l` is at least `l·q + r`, and with
//! `q ≤ 0` and `v ≤ u` at least `u·q + r`, where the sign of `q` is a proof of its own. What remains is settled by intervals.
//!
//! Where sizes are trusted, the larger of two numbers is at least both, a quotient times its divisor at most the dividend, and products that are sizes do not
//! wrap around. Their factors may be negative in pairs: a factor is known to be a size only where the others are, as those are that loops count to.
//!
//! A proof that succeeds holds under the assumptions of [`crate::indices`]; one that fails says nothing.

mod sources;

use sources::counted_inequalities;
pub(crate) use sources::inequalities_at;

use crate::indices::{Counted, Indices};
use crate::interval::Interval;
use crate::symbolic::{Monomial, Symbolic};
use ferrozyme_ir::{Op, OpView, Opcode, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Inequalities that hold together, somewhere in a function.
pub struct Inequalities<'a, 'f> {
    indices: &'a Indices<'f>,
    bounds: FxHashMap<Value, Bounds>,
    /// Products of several variables, and what they are at least: 0 or 1.
    products: Vec<(Monomial, i64)>,
    invented: Vec<Invented>,
    /// Whether sizes are taken to be less than 2⁶³.
    trusting: bool,
}

#[derive(Default)]
struct Bounds {
    lower: Side,
    upper: Side,
}

/// Bounds of a variable.
#[derive(Default)]
struct Side {
    number: Option<i64>,
    expressions: SmallVec<[Symbolic; 2]>,
}

/// A variable that is not a value of the function: a counter in another iteration, a number of iterations.
struct Invented {
    rank: u64,
    interval: Interval,
}

/// How many eliminations one proof may take.
const BUDGET: u32 = 400;

/// How many products are remembered.
const MAX_PRODUCTS: usize = 32;

impl<'a, 'f> Inequalities<'a, 'f> {
    /// No inequalities beyond the intervals of values.
    pub fn new(indices: &'a Indices<'f>) -> Inequalities<'a, 'f> {
        Inequalities {
            indices,
            bounds: FxHashMap::default(),
            products: Vec::new(),
            invented: Vec::new(),
            trusting: false,
        }
    }

    /// As [`Inequalities::new`], where sizes are taken to be less than 2⁶³: what is divided without sign, what `umin` and `umax` compare, and
    /// parameters that indices are checked against. Of memory that fits into a machine this is true.
    pub fn trusting(indices: &'a Indices<'f>) -> Inequalities<'a, 'f> {
        Inequalities {
            trusting: true,
            ..Inequalities::new(indices)
        }
    }

    /// What holds where an operation runs.
    pub fn at(indices: &'a Indices<'f>, op: Op) -> Inequalities<'a, 'f> {
        let mut inequalities = Inequalities::new(indices);
        let structure = indices.structure();
        // What holds farther out is known first.
        for (since, inequality) in inequalities_at(indices, structure.region_of(op), false)
            .into_iter()
            .rev()
        {
            if since <= structure.order(op) {
                inequalities.assume(&inequality);
            }
        }
        inequalities
    }

    /// Adds what holds within the body of a counted loop.
    pub fn assume_within(&mut self, counted: &Counted) {
        for inequality in counted_inequalities(counted) {
            self.assume(&inequality);
        }
    }

    /// Adds that an expression is at least 0.
    pub fn assume(&mut self, inequality: &Symbolic) {
        let Some(last) = self.last_variable(inequality) else {
            return;
        };
        self.assume_product(inequality);
        let mut seen: SmallVec<[Value; 4]> = SmallVec::new();
        for variable in inequality.variables() {
            if seen.contains(&variable) {
                continue;
            }
            seen.push(variable);
            let (factor, rest) = inequality.split(variable);
            let Some(factor) = factor.is_constant().filter(|&factor| factor != 0) else {
                continue;
            };
            // factor·variable + rest ≥ 0
            let bound = match factor {
                1 if variable == last => rest.scale(-1),
                -1 if variable == last => Some(rest),
                // A bound may mention only earlier variables; for the others, numbers have to do.
                _ => self.numeric_bound(factor, &rest),
            };
            let Some(bound) = bound else { continue };
            let bounds = self.bounds.entry(variable).or_default();
            let side = if factor > 0 {
                &mut bounds.lower
            } else {
                &mut bounds.upper
            };
            // Of several numbers only the best is of use; trying all would double the work at each step of a proof.
            let best = |a: i64, b: i64| if factor > 0 { a.max(b) } else { a.min(b) };
            match bound.is_constant() {
                Some(number) => {
                    side.number = Some(side.number.map_or(number, |other| best(number, other)));
                }
                None if side.expressions.contains(&bound) => {}
                None => side.expressions.push(bound),
            }
        }
    }

    /// A product from which nothing but sizes is subtracted is at least 0, and at least 1 where one of them is.
    fn assume_product(&mut self, inequality: &Symbolic) {
        let mut added = inequality
            .terms()
            .iter()
            .filter(|term| term.coefficient > 0);
        let (Some(product), None) = (added.next(), added.next()) else {
            return;
        };
        if product.monomial.len() < 2 || inequality.constant_part() > 0 {
            return;
        }
        let mut least = i64::from(inequality.constant_part() < 0);
        for term in inequality
            .terms()
            .iter()
            .filter(|term| term.coefficient < 0)
        {
            let factors = term.monomial.iter().map(|&variable| self.least(variable));
            let Some(smallest) = factors.min().flatten() else {
                return;
            };
            least = least.max(smallest.min(1));
        }
        let product = product.monomial.clone();
        if least > 0 {
            self.assume_positive_factors(&product);
        }
        self.note_product(product, least);
    }

    /// Of a product that is positive all those factors are that are not negative, if what the others make together is not negative either.
    fn assume_positive_factors(&mut self, product: &Monomial) {
        let (known, others): (Monomial, Monomial) = product
            .iter()
            .copied()
            .partition(|&factor| self.least_alone(factor).is_some());
        let mut positive = known;
        match others.as_slice() {
            &[other] => positive.push(other),
            _ if self.is_product_of_sizes(&others) => {
                if !others.is_empty() {
                    self.note_product(others, 1);
                }
            }
            _ => return,
        }
        for factor in positive {
            let lower = &mut self.bounds.entry(factor).or_default().lower;
            lower.number = Some(lower.number.map_or(1, |number| number.max(1)));
        }
    }

    fn note_product(&mut self, product: Monomial, least: i64) {
        let full = self.products.len() == MAX_PRODUCTS;
        let mut known = self.products.iter_mut();
        match known.find(|(known, _)| *known == product) {
            Some((_, known)) => *known = least.max(*known),
            None if full => {}
            None => self.products.push((product, least)),
        }
    }

    /// What a variable that is not negative is at least.
    fn least(&self, variable: Value) -> Option<i64> {
        self.least_alone(variable)
            .max(self.least_as_factor(variable))
    }

    /// As [`Inequalities::least`], without what is known of products.
    fn least_alone(&self, variable: Value) -> Option<i64> {
        let bounds = self.bounds.get(&variable);
        let number = bounds.and_then(|bounds| bounds.lower.number);
        let own = self.interval_of_variable(variable).lower();
        let own = own.and_then(|own| i64::try_from(own).ok());
        let known = self.invented_data(variable).is_none();
        let size = self.trusting && known && self.indices.is_size(variable);
        let size = size || self.dividend_of(variable).is_some();
        let least = number.max(own).max(size.then_some(0));
        least.filter(|&least| least >= 0)
    }

    /// What follows for a factor of a product from what the other factors are at least: it has the sign of the product if they are positive, as they must be, if they
    /// are not negative, where the product is positive.
    fn least_as_factor(&self, variable: Value) -> Option<i64> {
        let of_product = |(product, least): (&Monomial, i64)| {
            let mut others = product.iter().filter(|&&factor| factor != variable);
            let alone = others.clone().count() + 1 == product.len();
            let needed = 1 - least;
            (alone && others.all(|&other| self.least_alone(other) >= Some(needed))).then_some(least)
        };
        self.products_with(variable).filter_map(of_product).max()
    }

    /// The products with a factor that are not negative, and what they are at least.
    fn products_with(&self, variable: Value) -> impl Iterator<Item = (&Monomial, i64)> {
        let found = self
            .products
            .iter()
            .map(|(product, least)| (product, *least));
        let found = found.filter(move |(product, _)| product.contains(&variable));
        let trusted = self.trusting.then(|| self.indices.size_products(variable));
        found.chain(trusted.into_iter().flatten().map(|product| (product, 0)))
    }

    /// Whether `expression ≥ least` surely holds.
    pub fn prove_at_least(&self, expression: &Symbolic, least: i64) -> bool {
        let Some(target) = least.checked_neg().and_then(|less| expression.plus(less)) else {
            return false;
        };
        let mut budget = BUDGET;
        self.prove(&target, &mut budget)
    }

    /// Whether `expression ≤ most` surely holds.
    pub fn prove_at_most(&self, expression: &Symbolic, most: i64) -> bool {
        let negated = expression.scale(-1);
        match (negated, most.checked_neg()) {
            (Some(negated), Some(least)) => self.prove_at_least(&negated, least),
            _ => false,
        }
    }

    /// Whether `expression < 0` surely holds.
    pub fn prove_negative(&self, expression: &Symbolic) -> bool {
        self.prove_at_most(expression, -1)
    }

    /// Whether an expression is surely not negative, or surely not positive.
    pub fn sign(&self, expression: &Symbolic) -> Option<Sign> {
        let mut budget = BUDGET;
        self.sign_within(expression, &mut budget)
    }

    /// A variable that stands for a value in another iteration: it has the value's interval and nothing else.
    pub(crate) fn invent_like(&mut self, value: Value) -> Value {
        let invented = Invented {
            rank: 4 * u64::from(self.indices.rank(value)) + 1,
            interval: self.indices.interval_of_value(value),
        };
        self.invent(invented)
    }

    /// A variable that stands for how many iterations of a loop lie between two: at least one.
    pub(crate) fn invent_distance(&mut self, counted: &Counted) -> Value {
        let range = self.indices.interval_of_value(counted.counter);
        let most = range.max.saturating_sub(range.min).max(1);
        self.invent(Invented {
            rank: 4 * u64::from(self.indices.rank(counted.counter)) + 2,
            interval: Interval::new(1, most),
        })
    }

    /// Between which numbers a variable lies.
    pub(crate) fn interval_of_variable(&self, variable: Value) -> Interval {
        match self.invented_data(variable) {
            Some(invented) => invented.interval,
            None => self.indices.interval_of_value(variable),
        }
    }

    fn invent(&mut self, invented: Invented) -> Value {
        let number = self.indices.function().values.len() + self.invented.len();
        self.invented.push(invented);
        Value::from_u32(number as u32)
    }

    fn invented_data(&self, variable: Value) -> Option<&Invented> {
        let known = self.indices.function().values.len();
        (variable.as_u32() as usize)
            .checked_sub(known)
            .map(|index| &self.invented[index])
    }

    fn rank(&self, variable: Value) -> u64 {
        match self.invented_data(variable) {
            Some(invented) => invented.rank,
            None => 4 * u64::from(self.indices.rank(variable)),
        }
    }

    fn last_variable(&self, expression: &Symbolic) -> Option<Value> {
        // Equal ranks (the same value renamed twice) are told apart by the variable.
        expression
            .variables()
            .max_by_key(|&variable| (self.rank(variable), variable))
    }

    fn interval(&self, expression: &Symbolic) -> Interval {
        self.indices.interval_of(expression, |variable| {
            let own = self.interval_of_variable(variable);
            let Some(bounds) = self.bounds.get(&variable) else {
                return own;
            };
            let least = bounds.lower.number.map_or(own.min, i128::from);
            let most = bounds.upper.number.map_or(own.max, i128::from);
            own.cut(least, most).unwrap_or(own)
        })
    }

    /// The number that follows from `factor·v + rest ≥ 0` for `v`.
    fn numeric_bound(&self, factor: i64, rest: &Symbolic) -> Option<Symbolic> {
        let most = self.interval(rest).upper()?;
        let factor = i128::from(factor);
        let bound = if factor > 0 {
            // v ≥ -rest/factor ≥ -most/factor, rounded up.
            -most.div_euclid(factor)
        } else {
            // v ≤ rest/-factor ≤ most/-factor, rounded down.
            most.div_euclid(-factor)
        };
        Some(Symbolic::constant(i64::try_from(bound).ok()?))
    }

    fn sign_within(&self, expression: &Symbolic, budget: &mut u32) -> Option<Sign> {
        if let Some(number) = expression.is_constant() {
            return Some(if number >= 0 {
                Sign::NotNegative
            } else {
                Sign::NotPositive
            });
        }
        let negated = expression.scale(-1)?;
        if self.is_sum_of_sizes(&negated) {
            return Some(Sign::NotPositive);
        }
        if self.prove(expression, budget) {
            return Some(Sign::NotNegative);
        }
        self.prove(&negated, budget).then_some(Sign::NotPositive)
    }

    fn prove(&self, target: &Symbolic, budget: &mut u32) -> bool {
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        if let Some(number) = target.is_constant() {
            return number >= 0;
        }
        let interval = self.interval(target);
        if interval.min >= 0 {
            return true;
        }
        if interval.max < 0 {
            return false;
        }
        if self.is_sum_of_sizes(target) {
            return true;
        }
        let Some(variable) = self.last_variable(target) else {
            return false;
        };
        if let Some(quotient) = self.exact_quotient(variable) {
            let reduced = target.substitute(variable, &quotient);
            return reduced.is_some_and(|reduced| self.prove(&reduced, budget));
        }
        if let Some(reduced) = self.without_quotient(target, variable, budget) {
            return self.prove(&reduced, budget);
        }
        let least = self.least(variable);
        if least.is_none()
            && let Some(reduced) = self.without_product(target, variable, budget)
        {
            return self.prove(&reduced, budget);
        }
        let (factor, rest) = target.split(variable);
        let Some(sign) = self.sign_within(&factor, budget) else {
            return self.prove_by_parts(variable, &factor, &rest, budget);
        };
        let own = self.interval_of_variable(variable);
        let bounds = self.bounds.get(&variable);
        let rising = sign == Sign::NotNegative;
        let (own, side) = if rising {
            let own = own.lower().max(least.map(i128::from));
            (own, bounds.map(|bounds| &bounds.lower))
        } else {
            (own.upper(), bounds.map(|bounds| &bounds.upper))
        };
        let own = own.and_then(|number| i64::try_from(number).ok());
        let number = match (own, side.and_then(|side| side.number)) {
            (Some(a), Some(b)) => Some(if rising { a.max(b) } else { a.min(b) }),
            (a, b) => a.or(b),
        };
        let number = number.map(Symbolic::constant);
        let expressions = side.into_iter().flat_map(|side| &side.expressions);
        for bound in expressions.chain(number.as_ref()) {
            let reduced = factor.mul(bound).and_then(|product| product.add(&rest));
            if let Some(reduced) = reduced
                && self.prove(&reduced, budget)
            {
                return true;
            }
        }
        if rising && self.is_proper_quotient(variable, budget) {
            let reduced = factor.add(&rest);
            return reduced.is_some_and(|reduced| self.prove(&reduced, budget));
        }
        if !rising && let Some(dividend) = self.dividend_of(variable) {
            let reduced = factor.mul(&dividend).and_then(|product| product.add(&rest));
            return reduced.is_some_and(|reduced| self.prove(&reduced, budget));
        }
        let Some((larger, bounds)) = self.extreme_of(variable).filter(|_| self.trusting) else {
            return false;
        };
        let mut with_bound = |bound: &Symbolic| {
            let reduced = factor.mul(bound).and_then(|product| product.add(&rest));
            reduced.is_some_and(|reduced| self.prove(&reduced, budget))
        };
        // The larger of two is at least each of them, and at most one of them.
        match rising == larger {
            true => bounds.iter().any(&mut with_bound),
            false => bounds.iter().all(&mut with_bound),
        }
    }

    /// Proves `factor·variable + rest ≥ 0` with the least variable for what is added in the factor, and the largest for what is subtracted.
    fn prove_by_parts(
        &self,
        variable: Value,
        factor: &Symbolic,
        rest: &Symbolic,
        budget: &mut u32,
    ) -> bool {
        let Some(least) = self.least(variable) else {
            return false;
        };
        let mut added = Symbolic::constant(factor.constant_part().max(0));
        let mut subtracted = Symbolic::constant(factor.constant_part().min(0));
        for term in factor.terms() {
            let part = if term.coefficient > 0 {
                &mut added
            } else {
                &mut subtracted
            };
            match part.add(&term.to_symbolic()) {
                Some(sum) => *part = sum,
                None => return false,
            }
        }
        let sizes = subtracted
            .scale(-1)
            .is_some_and(|part| self.is_sum_of_sizes(&part));
        if !sizes || !self.is_sum_of_sizes(&added) {
            return false;
        }
        let most = self.bounds.get(&variable).map(|bounds| &bounds.upper);
        let most = most.into_iter().flat_map(|side| &side.expressions);
        for bound in most {
            let reduced = added
                .scale(least)
                .and_then(|sum| sum.add(&subtracted.mul(bound)?)?.add(rest));
            if reduced.is_some_and(|reduced| self.prove(&reduced, budget)) {
                return true;
            }
        }
        false
    }

    /// Whether nothing is subtracted, and no product is negative.
    fn is_sum_of_sizes(&self, target: &Symbolic) -> bool {
        target.constant_part() >= 0
            && target.terms().iter().all(|term| term.coefficient > 0)
            && target
                .terms()
                .iter()
                .all(|term| self.is_product_of_sizes(&term.monomial))
    }

    /// Whether a product consists of factors, and products of factors, that are not negative.
    fn is_product_of_sizes(&self, product: &Monomial) -> bool {
        let mut rest = product.clone();
        while let Some(&unknown) = rest.iter().find(|&&factor| self.least(factor).is_none()) {
            let mut known = self.products_with(unknown);
            let Some(smaller) = known
                .find_map(|(known, least)| quotient(&rest, &self.without_positive(known, least)))
            else {
                return false;
            };
            rest = smaller;
        }
        true
    }

    /// The factors that decide the sign of a product: those that are positive do not, as those are that are not negative in a product that is positive.
    fn without_positive(&self, product: &Monomial, least: i64) -> Monomial {
        let decides = |&factor: &Value| self.least_alone(factor) < Some(1 - least);
        product.iter().copied().filter(decides).collect()
    }

    /// What is left of `target` when a product of which no factor is known gives way to what it is at least.
    fn without_product(
        &self,
        target: &Symbolic,
        variable: Value,
        budget: &mut u32,
    ) -> Option<Symbolic> {
        let (of_variable, rest) = target.split(variable);
        for (product, least) in self.products_with(variable) {
            let others = quotient(product, &[variable])?;
            let mut factor = of_variable.clone();
            let divides = others.iter().all(|&other| {
                let (quotient, rest) = factor.split(other);
                factor = quotient;
                rest == Symbolic::default()
            });
            if divides && self.sign_within(&factor, budget) == Some(Sign::NotNegative) {
                return factor.scale(least)?.add(&rest);
            }
        }
        None
    }

    /// Whether a variable is a quotient of numbers of which the divisor is not the larger, so that it is at least 1.
    fn is_proper_quotient(&self, variable: Value, budget: &mut u32) -> bool {
        let Some(data) = self.definition(variable).filter(|_| self.trusting) else {
            return false;
        };
        if data.opcode != Opcode::Udiv {
            return false;
        }
        let [dividend, divisor] = data.both().map(|value| self.indices.expression(value));
        let distance = dividend.sub(&divisor);
        distance.is_some_and(|distance| self.prove(&distance, budget))
    }

    /// A quotient of products of which one holds the other, as what is left of it.
    fn exact_quotient(&self, variable: Value) -> Option<Symbolic> {
        let data = self.definition(variable).filter(|_| self.trusting)?;
        if data.opcode != Opcode::Udiv {
            return None;
        }
        let [mut quotient, divisor] = data.both().map(|value| self.indices.expression(value));
        let [divisor] = divisor.terms() else {
            return None;
        };
        for &factor in &divisor.monomial {
            let (left, rest) = quotient.split(factor);
            if rest != Symbolic::default() {
                return None;
            }
            quotient = left;
        }
        quotient.divide_exactly(divisor.coefficient)
    }

    /// For a quotient without sign: what is divided, which is not smaller.
    fn dividend_of(&self, variable: Value) -> Option<Symbolic> {
        self.division_of(variable).map(|(dividend, _)| dividend)
    }

    /// For a quotient without sign: what is divided, and by what. A shift to the right divides by a power of two; since hashes are
    /// shifted as well, only what is a size otherwise is taken for one there.
    fn division_of(&self, variable: Value) -> Option<(Symbolic, Symbolic)> {
        let data = self.definition(variable).filter(|_| self.trusting)?;
        let of = |value: Value| self.indices.expression(value);
        match data.view() {
            OpView::Binary(Opcode::Udiv, a, b) => Some((of(a), of(b))),
            OpView::Binary(Opcode::Lshr, a, b) => {
                let (dividend, shift) = (of(a), of(b).is_constant()?);
                let divisor = (0..62)
                    .contains(&shift)
                    .then(|| Symbolic::constant(1 << shift))?;
                self.is_sum_of_sizes(&dividend)
                    .then_some((dividend, divisor))
            }
            _ => None,
        }
    }

    /// For the smaller or larger of two numbers: whether it is the larger, and what they are.
    ///
    /// Sizes are taken to be less than 2⁶³, so that it does not matter whether numbers are compared with sign.
    fn extreme_of(&self, variable: Value) -> Option<(bool, [Symbolic; 2])> {
        let data = self.definition(variable)?;
        let larger = match data.opcode {
            Opcode::Umin | Opcode::Smin => false,
            Opcode::Umax | Opcode::Smax => true,
            _ => return None,
        };
        let [one, other] = data.both().map(|value| self.indices.expression(value));
        // No size is so large that it is cut off there.
        let endless =
            |bound: &Symbolic| bound.is_constant().is_some_and(|most| most >= i64::MAX - 1);
        match larger {
            false if endless(&other) => Some((larger, [one.clone(), one])),
            false if endless(&one) => Some((larger, [other.clone(), other])),
            _ => Some((larger, [one, other])),
        }
    }

    /// What is left of `target` when a quotient that is multiplied by its divisor gives way to the dividend: `q = a / b` with
    /// `a - b + 1 ≤ q·b ≤ a`.
    fn without_quotient(
        &self,
        target: &Symbolic,
        variable: Value,
        budget: &mut u32,
    ) -> Option<Symbolic> {
        let (dividend, divisor) = self.division_of(variable)?;
        let (factor, _) = target.split(variable);
        let product = match divisor.is_constant() {
            Some(number) => factor.divide_exactly(number)?,
            None => factor.split(divisor.is_value()?).0,
        };
        if product == Symbolic::default() || product.mentions(variable) {
            return None;
        }
        // target = q·b·product + rest
        let of_product = Symbolic::of_value(variable).mul(&divisor)?.mul(&product)?;
        let rest = target.sub(&of_product)?;
        let bound = match self.sign_within(&product, budget)? {
            Sign::NotNegative => dividend.sub(&divisor)?.plus(1)?,
            Sign::NotPositive => dividend,
        };
        bound.mul(&product)?.add(&rest)
    }

    fn definition(&self, variable: Value) -> Option<&ferrozyme_ir::OpData> {
        if self.invented_data(variable).is_some() {
            return None;
        }
        let function = self.indices.function();
        let (op, _) = function.def_op(variable)?;
        Some(&function.ops[op])
    }
}

/// The sign of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// At least 0.
    NotNegative,
    /// At most 0.
    NotPositive,
}

/// A product without the factors of another, if it has them all.
fn quotient(product: &Monomial, factors: &[Value]) -> Option<Monomial> {
    let mut rest = product.clone();
    for factor in factors {
        let place = rest.iter().position(|other| other == factor)?;
        rest.remove(place);
    }
    Some(rest)
}

#[cfg(test)]
mod tests;
