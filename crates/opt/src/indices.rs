//! What integer values are in terms of each other: index expressions, intervals, trip counts, invariance.
//!
//! [`Indices::of`] reads a function once, in the order of its text, and gives every integer value an expression
//! ([`Symbolic`]) over values that cannot be taken apart further (parameters, loop counters, loads, …), a numeric
//! interval, and the innermost region on which it depends.
//!
//! What is assumed:
//! - `add`, `sub`, `mul` and `shl` of `i64` are taken apart whether or not they are marked `nsw`. As equations modulo 2⁶⁴
//!   the expressions hold in any case. Where a bound is drawn from them ("`j` is at most `n - 1`"), trip counts and products of
//!   sizes are taken not to overflow `i64`, as is true of any array that fits in memory. Arithmetic with large factors, which
//!   wraps on purpose (hashes, random numbers), is left as it is unless it is marked `nsw`.
//! - Narrower arithmetic is taken apart only where `nsw` or the intervals of the operands say that it does not wrap.
//! - The counter of a `for` does not wrap: the number of iterations is (to − from)/step, rounded up, or 0.
//! - Code that runs is free of undefined behaviour: `nsw`, `range` and the like hold.

mod transfer;

use crate::carried::carried_at;
use crate::interval::Interval;
pub use crate::recurrence::Counted;
use crate::recurrence::even_step;
use crate::symbolic::{Monomial, Symbolic};
use ferrozyme_ir::entity::packed_option::PackedOption;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{
    Effect, Function, Op, OpData, Opcode, Region, Scalar, Structure, Type, Value, ValueDef,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Expressions and intervals of a function's integers, as of when it was computed.
pub struct Indices<'f> {
    function: &'f Function,
    structure: Structure,
    info: SecondaryMap<Value, Info>,
    counted: FxHashMap<Op, Counted>,
    /// Values that are divided or compared without sign.
    sizes: EntitySet<Value>,
    /// Products of values that are, and where each factor occurs in them.
    size_products: Vec<Monomial>,
    products_of: FxHashMap<Value, SmallVec<[u32; 2]>>,
    next_rank: u32,
    /// Values that are taken for what they would be if the arithmetic before their extension had more bits.
    widened: FxHashSet<Value>,
}

#[derive(Clone, Default)]
struct Info {
    expression: Option<Symbolic>,
    interval: Option<Interval>,
    /// The innermost region on which the value depends; none if it is the same everywhere in a call.
    depends: PackedOption<Region>,
    rank: u32,
    /// Whether the expression is the value as a number, not only modulo 2⁶⁴.
    exact: bool,
}

/// Ends of intervals beyond this are limits of types and of the lengths of slices, not knowledge.
const LOOSE: i128 = 1 << 48;

/// With how many products of sizes one of their factors is remembered.
const MAX_PRODUCTS: usize = 8;

impl<'f> Indices<'f> {
    /// Computes it, in linear time.
    pub fn of(function: &'f Function) -> Indices<'f> {
        Indices::widening(function, FxHashSet::default())
    }

    /// The same under the assumption that the narrow arithmetic before these extensions does not wrap.
    pub(crate) fn widening(function: &'f Function, widened: FxHashSet<Value>) -> Indices<'f> {
        let mut indices = Indices {
            function,
            structure: Structure::of(function),
            info: SecondaryMap::new(),
            counted: FxHashMap::default(),
            sizes: EntitySet::new(),
            size_products: Vec::new(),
            products_of: FxHashMap::default(),
            next_rank: 1,
            widened,
        };
        if let Some(body) = function.body {
            for (index, &argument) in function.regions[body].args.iter().enumerate() {
                indices.define(argument, None, None, None.into());
                let facts = function.params.get(index).map(|param| &param.facts);
                if let Some(range) = facts.and_then(|facts| facts.range) {
                    indices.narrow(argument, range.into());
                }
            }
            indices.visit(body);
        }
        indices
    }

    /// The function.
    pub fn function(&self) -> &'f Function {
        self.function
    }

    /// Its parent links.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The expression of a value in terms of others; the value itself, if it is a variable.
    pub fn expression(&self, value: Value) -> Symbolic {
        if let Some(number) = self.function.int_of(value) {
            if let Ok(number) = i64::try_from(number) {
                return Symbolic::constant(number);
            }
        } else if let Some(expression) = &self.info[value].expression {
            return expression.clone();
        }
        Symbolic::of_value(value)
    }

    /// As [`Indices::expression`], but equal to the value as a number whatever wraps around in the program.
    pub fn exact_expression(&self, value: Value) -> Symbolic {
        if self.is_exact(value) {
            self.expression(value)
        } else {
            Symbolic::of_value(value)
        }
    }

    /// Between which numbers a value lies.
    pub fn interval_of_value(&self, value: Value) -> Interval {
        if let Some(number) = self.function.int_of(value) {
            return Interval::point(number);
        }
        self.info[value]
            .interval
            .unwrap_or_else(|| default_interval(self.function, value))
    }

    /// The numeric bounds of an expression, where there are any.
    pub fn interval(&self, expression: &Symbolic) -> (Option<i128>, Option<i128>) {
        let interval = self.interval_of(expression, |value| self.interval_of_value(value));
        (interval.lower(), interval.upper())
    }

    /// As [`Indices::interval`], with a given interval for each variable.
    pub(crate) fn interval_of(
        &self,
        expression: &Symbolic,
        interval: impl Fn(Value) -> Interval,
    ) -> Interval {
        let mut sum = Interval::point(i128::from(expression.constant_part()));
        for term in expression.terms() {
            let mut product = Interval::point(i128::from(term.coefficient));
            let mut position = 0;
            while position < term.monomial.len() {
                let variable = term.monomial[position];
                let factor = interval(variable);
                let repeated = term.monomial.get(position + 1) == Some(&variable);
                if repeated {
                    product = product * (factor * factor).at_least_zero();
                    position += 2;
                } else {
                    product = product * factor;
                    position += 1;
                }
            }
            sum = sum + product;
        }
        sum
    }

    /// Whether a value is a size: something that is divided, or of which the larger or smaller is taken, without sign.
    pub(crate) fn is_size(&self, value: Value) -> bool {
        self.sizes.contains(value)
    }

    /// The products with a factor that are sizes. Of their factors, an even number may be negative.
    pub(crate) fn size_products(&self, factor: Value) -> impl Iterator<Item = &Monomial> {
        let places = self.products_of.get(&factor).into_iter().flatten();
        places.map(|&place| &self.size_products[place as usize])
    }

    /// Notes the sizes that an operation works on; one less than a size is what loops often count to.
    fn note_sizes(&mut self, data: &OpData) {
        if !matches!(data.opcode, Opcode::Udiv | Opcode::Umin | Opcode::Umax) {
            return;
        }
        for &operand in &data.operands {
            self.sizes.insert(operand);
            let expression = self.expression(operand);
            if let [term] = expression.terms()
                && term.coefficient > 0
                && (-1..=0).contains(&expression.constant_part())
            {
                match term.monomial.as_slice() {
                    &[value] => {
                        self.sizes.insert(value);
                    }
                    _ => self.note_product(&term.monomial),
                }
            }
        }
    }

    fn note_product(&mut self, product: &Monomial) {
        if self.size_products(product[0]).any(|known| known == product) {
            return;
        }
        let place = self.size_products.len() as u32;
        for (index, &factor) in product.iter().enumerate() {
            let places = self.products_of.entry(factor).or_default();
            if places.len() < MAX_PRODUCTS
                && product.iter().position(|&other| other == factor) == Some(index)
            {
                places.push(place);
            }
        }
        self.size_products.push(product.clone());
    }

    /// The later a value is defined in the text, the higher this is; constants have 0.
    pub(crate) fn rank(&self, value: Value) -> u32 {
        self.info[value].rank
    }

    /// The counted loop that a `for` is.
    pub fn counted(&self, op: Op) -> Option<&Counted> {
        self.counted.get(&op)
    }

    /// The counted loop whose counter a value is.
    pub fn counted_by(&self, counter: Value) -> Option<&Counted> {
        match self.function.values.get(counter)?.def {
            ValueDef::Argument { region, index: 0 } => self.counted(self.structure.op_of(region)?),
            _ => None,
        }
    }

    /// Whether an expression has the same value in all iterations of a loop.
    pub fn is_invariant(&self, expression: &Symbolic, loop_op: Op) -> bool {
        expression
            .variables()
            .all(|value| !self.varies_in(value, loop_op))
    }

    /// Whether a value may differ between iterations of a loop.
    ///
    /// A value defined within the loop does not vary if it is computed, without memory, from values that do not.
    pub fn varies_in(&self, value: Value, loop_op: Op) -> bool {
        let Some(depends) = self.info[value].depends.expand() else {
            return false;
        };
        self.function.ops[loop_op]
            .regions
            .iter()
            .any(|&body| self.structure.is_within(depends, body))
    }

    /// Whether a value may differ between iterations of any loop.
    pub fn varies(&self, value: Value) -> bool {
        let mut region = self.info[value].depends.expand();
        while let Some(inner) = region {
            let Some(holder) = self.structure.op_of(inner) else {
                return false;
            };
            if is_loop(self.function.ops[holder].opcode) {
                return true;
            }
            region = self.structure.region_of(holder);
        }
        false
    }

    /// Whether a value is defined outside the regions of an operation.
    pub fn is_defined_outside(&self, value: Value, op: Op) -> bool {
        self.structure.is_defined_outside(self.function, value, op)
    }

    /// Whether the operations for an expression can be built where all its variables are visible.
    pub fn can_emit(&self, expression: &Symbolic) -> bool {
        expression
            .variables()
            .all(|value| is_index(self.function, value))
    }

    /// The loops around an operation, `for` and `loop`, outermost first.
    pub fn loops_around(&self, op: Op) -> Vec<Op> {
        let mut loops = Vec::new();
        let mut region = self.structure.region_of(op);
        while let Some(around) = region {
            let Some(holder) = self.structure.op_of(around) else {
                break;
            };
            if is_loop(self.function.ops[holder].opcode) {
                loops.push(holder);
            }
            region = self.structure.region_of(holder);
        }
        loops.reverse();
        loops
    }

    // ---- the one walk over the text

    fn visit(&mut self, region: Region) {
        let function = self.function;
        for &op in &function.regions[region].ops {
            let data = &function.ops[op];
            match data.opcode {
                Opcode::For => self.enter_for(op, data),
                Opcode::Loop => {
                    for &body in &data.regions {
                        for &argument in &function.regions[body].args {
                            self.define(argument, None, None, body.into());
                        }
                    }
                }
                _ => {}
            }
            for &inner in &data.regions {
                self.visit(inner);
            }
            self.note_sizes(data);
            let depends = self.dependence(op, data, region);
            for &result in &data.results {
                let (expression, interval) = match data.results.len() {
                    1 => self.transfer(data, result),
                    _ => (None, None),
                };
                self.define(result, expression, interval, depends);
                self.info[result].exact = self.computes_exactly(data);
            }
        }
    }

    fn define(
        &mut self,
        value: Value,
        expression: Option<Symbolic>,
        interval: Option<Interval>,
        depends: PackedOption<Region>,
    ) {
        let rank = self.next_rank;
        self.next_rank += 1;
        self.info[value] = Info {
            expression,
            interval,
            depends,
            rank,
            exact: false,
        };
        if let Some(range) = self.function.values[value].range {
            self.narrow(value, range.into());
        }
    }

    fn narrow(&mut self, value: Value, interval: Interval) {
        let known = self.interval_of_value(value);
        self.info[value].interval = Some(known.intersect(interval));
    }

    /// The innermost region on which the results of an operation depend.
    fn dependence(&self, op: Op, data: &OpData, region: Region) -> PackedOption<Region> {
        let pure = matches!(data.opcode.effect(), Effect::Pure | Effect::Partial);
        if !pure || !data.regions.is_empty() {
            return self.structure.region_of(op).unwrap_or(region).into();
        }
        // The operands are visible here, so that their regions lie around each other.
        let mut innermost = None;
        for &operand in &data.operands {
            if let Some(depends) = self.info[operand].depends.expand()
                && innermost
                    .is_none_or(|other| self.structure.depth(depends) > self.structure.depth(other))
            {
                innermost = Some(depends);
            }
        }
        innermost.into()
    }

    fn enter_for(&mut self, op: Op, data: &OpData) {
        let function = self.function;
        let Some(&body) = data.regions.first() else {
            return;
        };
        let counter = function.regions[body].args[0];
        let interval = self.counter_interval(data, counter);
        self.define(counter, None, interval, body.into());
        if let Some(counted) = self.read_counted(op, data, body, counter) {
            self.counted.insert(op, counted);
        }
        for (place, &argument) in function.regions[body].args[1..].iter().enumerate() {
            let expression = self.carried_expression(op, place);
            self.define(argument, expression, None, body.into());
        }
    }

    fn read_counted(&self, op: Op, data: &OpData, body: Region, counter: Value) -> Option<Counted> {
        let &[from, to, step] = data.operands.first_chunk()?;
        let direction = self.interval_of_value(step);
        let upward = if direction.min > 0 {
            Some(true)
        } else if direction.max < 0 {
            Some(false)
        } else {
            None
        };
        Some(Counted {
            op,
            body,
            counter,
            from: self.expression(from),
            to: self.expression(to),
            step: self.expression(step),
            upward,
        })
    }

    fn counter_interval(&self, data: &OpData, counter: Value) -> Option<Interval> {
        let &[from, to, step] = data.operands.first_chunk()?;
        let [from, to, step] = [from, to, step].map(|value| self.interval_of_value(value));
        let interval = Interval::of_counter(from, to, step);
        Some(interval.intersect(default_interval(self.function, counter)))
    }

    /// A carried value that grows by the same amount in each iteration, in terms of the counter.
    fn carried_expression(&self, op: Op, place: usize) -> Option<Symbolic> {
        let carried = carried_at(self.function, op, place)?;
        if self.function.ty(carried.argument) != Type::I64 {
            // Modulo 2⁶⁴ the sums are exact; in a narrower type they might wrap.
            return None;
        }
        // Only what stands before the loop has its expression already, which holds for what is added evenly.
        let step = even_step(self.function, &self.structure, op, &carried)?;
        self.expression(carried.initial)
            .add(&step.elapsed(self, op)?)
    }
}

/// Whether an interval's ends say more than the type `i64` does.
pub(crate) fn is_tight(interval: Interval) -> bool {
    interval.min > -LOOSE && interval.max < LOOSE
}

/// Whether an operation repeats its region.
pub(crate) fn is_loop(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::For | Opcode::Loop)
}

/// Whether a value is a scalar integer of at most 64 bits.
fn is_index(function: &Function, value: Value) -> bool {
    function.values.get(value).is_some_and(|data| {
        !data.ty.is_vector() && matches!(data.ty.scalar(), Scalar::Int(bits) if bits <= 64)
    })
}

fn default_interval(function: &Function, value: Value) -> Interval {
    match function.values.get(value) {
        Some(data) if is_index(function, value) => Interval::of_bits(data.ty.scalar().bits()),
        _ => Interval::ALL,
    }
}

#[cfg(test)]
mod tests;
