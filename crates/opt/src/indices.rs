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

use crate::interval::Interval;
use crate::symbolic::{Monomial, Symbolic};
use ferrozyme_ir::entity::packed_option::PackedOption;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{
    Effect, Function, Op, OpData, Opcode, Region, Scalar, Structure, Value, ValueDef,
};
use rustc_hash::FxHashMap;
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
}

/// A counted loop.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The `for`.
    pub op: Op,
    /// Its region.
    pub body: Region,
    /// The counter.
    pub counter: Value,
    /// The counter's first value.
    pub from: Symbolic,
    /// What the counter stays below (above, for a negative step).
    pub to: Symbolic,
    /// What it counts by.
    pub step: Symbolic,
    /// Whether it counts up (or down), where that is known.
    pub upward: Option<bool>,
}

impl Counted {
    /// The step, if it is a constant.
    pub fn constant_step(&self) -> Option<i64> {
        self.step.is_constant()
    }

    /// A value that the counter never falls below.
    pub fn smallest(&self) -> Option<Symbolic> {
        match self.upward? {
            true => Some(self.from.clone()),
            false => self.to.plus(1),
        }
    }

    /// A value that the counter never exceeds.
    pub fn largest(&self) -> Option<Symbolic> {
        match self.upward? {
            true => self.to.plus(-1),
            false => Some(self.from.clone()),
        }
    }
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
        let mut indices = Indices {
            function,
            structure: Structure::of(function),
            info: SecondaryMap::new(),
            counted: FxHashMap::default(),
            sizes: EntitySet::new(),
            size_products: Vec::new(),
            products_of: FxHashMap::default(),
            next_rank: 1,
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

    /// Who holds whom in it.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// What a value is in terms of others; itself, if it cannot be taken apart.
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
                    let square = factor * factor;
                    product = product * Interval::new(square.min.max(0), square.max);
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

    /// How often a `for` runs its body. The number is to be read as 0 where it is negative.
    ///
    /// There is an answer where the step is constant and divides the distance evenly.
    pub fn trip_count(&self, op: Op) -> Option<Symbolic> {
        if let Some(count) = self.constant_trip_count(op) {
            return Some(Symbolic::constant(i64::try_from(count).ok()?));
        }
        let counted = self.counted(op)?;
        let distance = counted.to.sub(&counted.from)?;
        distance.divide_exactly(counted.constant_step()?)
    }

    /// How often a `for` runs its body, where the bounds differ by a constant.
    pub fn constant_trip_count(&self, op: Op) -> Option<u64> {
        let counted = self.counted(op)?;
        let distance = i128::from(counted.to.sub(&counted.from)?.is_constant()?);
        let step = i128::from(counted.constant_step()?);
        let (distance, step) = if step < 0 {
            (-distance, -step)
        } else {
            (distance, step)
        };
        if step == 0 {
            return None;
        }
        u64::try_from((distance.max(0) + step - 1) / step).ok()
    }

    /// The counter's value in the last iteration, if there is one.
    pub fn last_counter(&self, op: Op) -> Option<Symbolic> {
        let counted = self.counted(op)?;
        let count = self.trip_count(op)?;
        counted.from.add(&count.plus(-1)?.mul(&counted.step)?)
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
        match self.structure.region_of_value(self.function, value) {
            None => self.function.is_constant(value),
            Some(region) => !self.function.ops[op]
                .regions
                .iter()
                .any(|&inner| self.structure.is_within(region, inner)),
        }
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
        let arguments = &function.regions[body].args;
        let Some((&counter, carried)) = arguments.split_first() else {
            return;
        };
        let interval = self.counter_interval(data, counter);
        self.define(counter, None, interval, body.into());
        if let Some(counted) = self.read_counted(op, data, body, counter) {
            self.counted.insert(op, counted);
        }
        for (index, &argument) in carried.iter().enumerate() {
            let expression = self.carried_expression(op, data, body, index);
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
        let (from, to) = (self.interval_of_value(from), self.interval_of_value(to));
        let step = self.interval_of_value(step);
        let interval = if step.min > 0 {
            Interval::new(from.min, to.max.saturating_sub(1))
        } else if step.max < 0 {
            Interval::new(to.min.saturating_add(1), from.max)
        } else {
            from.union(to)
        };
        // The counter of a loop that never runs has no value to speak of.
        let default = default_interval(self.function, counter);
        Some(default.intersect(if interval.min <= interval.max {
            interval
        } else {
            default
        }))
    }

    /// A carried value that grows by the same amount in each iteration, in terms of the counter.
    fn carried_expression(
        &self,
        op: Op,
        data: &OpData,
        body: Region,
        index: usize,
    ) -> Option<Symbolic> {
        let argument = self.function.regions[body].args[index + 1];
        if self.function.ty(argument) != ferrozyme_ir::Type::I64 {
            // Modulo 2⁶⁴ the sums are exact; in a narrower type they might wrap.
            return None;
        }
        let initial = *data.operands.get(3 + index)?;
        let growth = self.growth(op, body, argument, index)?;
        let elapsed = self.scaled_iterations(data, body, &growth)?;
        self.expression(initial).add(&elapsed)
    }

    /// By how much a carried integer grows in each iteration.
    fn growth(&self, op: Op, body: Region, argument: Value, index: usize) -> Option<Symbolic> {
        let next = self.yielded(body, index)?;
        let (sum, _) = self.function.def_op(next)?;
        let sum = &self.function.ops[sum];
        let &[a, b] = sum.operands.first_chunk()?;
        let (amount, sign) = match sum.opcode {
            Opcode::Add if a == argument => (b, 1),
            Opcode::Add if b == argument => (a, 1),
            Opcode::Sub if a == argument => (b, -1),
            _ => return None,
        };
        // Only what stands before the loop has its expression already.
        if !self.is_defined_outside(amount, op) {
            return None;
        }
        self.expression(amount).scale(sign)
    }

    /// What a region of `for` yields for a carried value.
    pub(crate) fn yielded(&self, body: Region, index: usize) -> Option<Value> {
        let last = *self.function.regions[body].ops.last()?;
        let last = &self.function.ops[last];
        (last.opcode == Opcode::Yield)
            .then(|| last.operands.get(index).copied())
            .flatten()
    }

    /// `growth` times the number of iterations of a `for` that lie behind the current one.
    pub(crate) fn scaled_iterations(
        &self,
        data: &OpData,
        body: Region,
        growth: &Symbolic,
    ) -> Option<Symbolic> {
        let &[from, _, step] = data.operands.first_chunk()?;
        let step = self.expression(step).is_constant()?;
        let counter = *self.function.regions[body].args.first()?;
        if self.function.ty(counter).scalar().bits() > 64 {
            return None;
        }
        let distance = Symbolic::of_value(counter).sub(&self.expression(from))?;
        growth.divide_exactly(step)?.mul(&distance)
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
