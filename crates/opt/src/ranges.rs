//! Ranges that the program computes, for tests at run time: an expression lies between two numbers, and what is accessed behind a pointer lies between two addresses.
//! Unlike a [hull](crate::hull), a range may be larger than what is accessed, also where accesses are made under conditions.
//!
//! The offset of an access is a polynomial in counters of loops and in integers that are known where the test is made. Each counter lies between two numbers, so each term does, and
//! so does their sum. Arithmetic is that of `f64`, which does not wrap around: it is exact as long as no term exceeds 2⁵², and whether that is so is part of the test.
//! Where a loop does not run the numbers mean nothing, and do no harm: nothing is accessed.

use crate::alias::Aliases;
use crate::recurrence::Counted;
use crate::symbolic::{Symbolic, Term};
use ferrozyme_ir::{
    Builder, Effect, FloatPredicate, Form, Function, Op, OpView, Opcode, Region, Structure, Type,
    Value, ValueDef, all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Bytes behind a pointer that an access touches.
#[derive(Clone, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) root: Value,
    /// The offset of the first byte.
    start: Symbolic,
    /// The offset of the first byte behind them.
    end: Symbolic,
    /// Counters that do not have their first value where the access is to these bytes.
    after_first: Vec<Value>,
}

impl Stretch {
    /// None if the end has no expression.
    pub(crate) fn new(root: Value, start: Symbolic, size: &Symbolic) -> Option<Stretch> {
        let end = start.add(size)?;
        Some(Stretch {
            root,
            start,
            end,
            after_first: Vec::new(),
        })
    }

    pub(crate) fn after_first(self, counters: &[Value]) -> Stretch {
        Stretch {
            after_first: counters.to_vec(),
            ..self
        }
    }
}

/// What the integers of a function vary between, where they are no values that a test can use.
pub(crate) struct Variables {
    /// The counted loops by their counters.
    counted: FxHashMap<Value, Counted>,
    /// Integers that are parts of others.
    parts: FxHashMap<Value, Part>,
}

impl Variables {
    pub(crate) fn of(aliases: &Aliases<'_>) -> Rc<Variables> {
        let function = aliases.function();
        let counted = all_ops(function)
            .into_iter()
            .filter_map(|op| aliases.indices().counted(op))
            .map(|counted| (counted.counter, counted.clone()));
        let results = all_ops(function).into_iter();
        let results = results.filter_map(|op| function.ops[op].results.first().copied());
        let parts = results.filter_map(|value| Some((value, part_of(aliases, value)?)));
        Rc::new(Variables {
            counted: counted.collect(),
            parts: parts.collect(),
        })
    }
}

/// Where a test is made: before an operation.
pub(crate) struct Place {
    pub(crate) op: Op,
    variables: Rc<Variables>,
    /// The operations whose results are visible there.
    before: FxHashSet<Op>,
    /// The regions around it.
    around: Vec<Region>,
}

/// How many operations, one inside the other, an integer may take to compute.
const MAX_DEPTH: usize = 12;

/// Integers of which larger ones are not exact in an `f64`, with room for sums.
const LARGEST: f64 = (1u64 << 52) as f64;

impl Place {
    pub(crate) fn before(
        variables: Rc<Variables>,
        function: &Function,
        structure: &Structure,
        op: Op,
    ) -> Place {
        let (mut before, mut around) = (FxHashSet::default(), Vec::new());
        let mut inner = Some(op);
        while let Some(region) = inner.and_then(|inner| structure.region_of(inner)) {
            let ops = function.regions[region].ops.iter().copied();
            before.extend(ops.take_while(|&other| Some(other) != inner));
            around.push(region);
            inner = structure.op_of(region);
        }
        Place {
            op,
            variables,
            before,
            around,
        }
    }

    /// Whether the range of an access can be computed.
    pub(crate) fn is_bounded(&self, function: &Function, stretch: &Stretch) -> bool {
        self.is_visible(function, stretch.root)
            && self.has_limits(function, &stretch.start)
            && self.has_limits(function, &stretch.end)
    }

    /// Whether it can be computed between which numbers an expression lies.
    pub(crate) fn has_limits(&self, function: &Function, expression: &Symbolic) -> bool {
        self.has_limits_within(function, expression, MAX_DEPTH)
    }

    fn is_visible(&self, function: &Function, value: Value) -> bool {
        match function.values[value].def {
            ValueDef::Constant(_) => true,
            ValueDef::Argument { region, .. } => self.around.contains(&region),
            ValueDef::Result { op, .. } => self.before.contains(&op),
        }
    }

    /// Whether an integer can be computed where the test is: it is there, or follows from what is there without memory and loops.
    fn is_computable(&self, function: &Function, value: Value, depth: usize) -> bool {
        if self.is_visible(function, value) {
            return true;
        }
        let (Some((op, _)), Some(depth)) = (function.def_op(value), depth.checked_sub(1)) else {
            return false;
        };
        let data = &function.ops[op];
        let ty = function.ty(value);
        let is_integer = ty.is_int() && !ty.is_vector();
        let fits = match data.opcode.form() {
            Form::IntUnary | Form::IntBinary | Form::IntCompare => true,
            Form::Cast => matches!(data.opcode, Opcode::Zext | Opcode::Sext | Opcode::TruncInt),
            _ => data.opcode == Opcode::Select,
        };
        let is_total = match data.opcode {
            Opcode::Udiv | Opcode::Urem => true,
            opcode => opcode.effect() == Effect::Pure,
        };
        is_integer
            && fits
            && is_total
            && (data.operands.iter()).all(|&operand| self.is_computable(function, operand, depth))
    }

    fn has_limits_within(&self, function: &Function, expression: &Symbolic, depth: usize) -> bool {
        expression
            .variables()
            .all(|variable| self.variable_has_limits(function, variable, depth))
    }

    fn variable_has_limits(&self, function: &Function, variable: Value, depth: usize) -> bool {
        let ty = function.ty(variable);
        if !ty.is_int() || ty.is_vector() || ty.scalar().bits() > 64 {
            return false;
        }
        if self.is_computable(function, variable, MAX_DEPTH) {
            return true;
        }
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        if let Some(counted) = self.variables.counted.get(&variable) {
            return counted.constant_step().is_some_and(|step| step != 0)
                && self.has_limits_within(function, &counted.from, depth)
                && self.has_limits_within(function, &counted.to, depth);
        }
        match function.definition(variable) {
            Some(OpView::Binary(Opcode::Urem, _, divisor)) => {
                ty == Type::I64 && self.is_computable(function, divisor, MAX_DEPTH)
            }
            _ => (self.variables.parts.get(&variable))
                .is_some_and(|part| self.has_limits_within(function, &part.whole, depth)),
        }
    }
}

/// An integer that is another one, or a little less, if that lies within limits. It lies within them anyway.
struct Part {
    whole: Symbolic,
    least: f64,
    most: f64,
    /// How much less it may be.
    slack: f64,
}

/// For the low bits of an integer, and for one that is read without its sign: what it is a part of.
fn part_of(aliases: &Aliases<'_>, value: Value) -> Option<Part> {
    let function = aliases.function();
    let limit = |bits: u32| 2f64.powi(bits as i32);
    let mut slack = 0;
    let (whole, least, most) = match function.definition(value)? {
        OpView::Binary(Opcode::And, whole, mask) => {
            let mask = u64::try_from(function.int_of(mask)?).ok()?;
            // The lowest bits may be missing.
            slack = (mask & mask.wrapping_neg()).checked_sub(1)?;
            let limit = (mask | slack).checked_add(1)?;
            (limit.is_power_of_two()).then_some((whole, 0.0, (limit - 1) as f64))?
        }
        OpView::Cast(Opcode::Zext, whole) => {
            let bits = function.ty(whole).scalar().bits();
            (whole, 0.0, limit(bits) - 1.0)
        }
        OpView::Cast(Opcode::TruncInt, whole) => {
            let bits = function.ty(value).scalar().bits();
            (whole, -limit(bits - 1), limit(bits - 1) - 1.0)
        }
        _ => return None,
    };
    Some(Part {
        whole: aliases.indices().expression(whole),
        least,
        most,
        slack: slack as f64,
    })
}

/// Between which numbers something lies.
#[derive(Clone, Copy)]
struct Limits {
    least: Value,
    most: Value,
}

impl Limits {
    fn exactly(value: Value) -> Limits {
        Limits {
            least: value,
            most: value,
        }
    }

    fn is_exact(self) -> bool {
        self.least == self.most
    }
}

/// Builds ranges.
pub(crate) struct RangeBuilder<'p> {
    place: &'p Place,
    integers: FxHashMap<Value, Value>,
    numbers: FxHashMap<Value, Value>,
    terms: FxHashMap<(Term, Vec<Value>), Limits>,
    /// Counters of loops with the same bounds, in the order in which they were met.
    classes: FxHashMap<Bounds, Vec<Value>>,
    /// The sum of all that must not be large.
    sizes: Option<Value>,
}

impl<'p> RangeBuilder<'p> {
    pub(crate) fn new(place: &'p Place) -> RangeBuilder<'p> {
        RangeBuilder {
            place,
            integers: FxHashMap::default(),
            numbers: FxHashMap::default(),
            terms: FxHashMap::default(),
            classes: FxHashMap::default(),
            sizes: None,
        }
    }

    /// Builds the address of the first byte that accesses touch behind their common pointer, and of the first one behind the last.
    pub(crate) fn build(
        &mut self,
        b: &mut Builder<'_>,
        stretches: impl IntoIterator<Item = Stretch>,
    ) -> [Value; 2] {
        let stretches = self.joined(stretches);
        let mut range: Option<Limits> = None;
        for part in &stretches {
            let start = self.limits(b, &part.start, &part.after_first);
            let end = self.limits(b, &part.end, &part.after_first);
            range = Some(match range {
                Some(range) => Limits {
                    least: b.binary(Opcode::Fmin, range.least, start.least),
                    most: b.binary(Opcode::Fmax, range.most, end.most),
                },
                None => Limits {
                    least: start.least,
                    most: end.most,
                },
            });
        }
        let range = range.expect("there is an access behind each pointer");
        let address = b.cast(Opcode::Ptrtoint, stretches[0].root, Type::I64);
        let address = b.unary(Opcode::Freeze, address);
        let address = b.cast(Opcode::Uitofp, address, Type::F64);
        [range.least, range.most].map(|offset| b.binary(Opcode::Fadd, address, offset))
    }

    /// Builds whether an expression has values between two numbers only.
    pub(crate) fn build_within(
        &mut self,
        b: &mut Builder<'_>,
        expression: &Symbolic,
        [least, most]: [f64; 2],
    ) -> Value {
        let limits = self.limits(b, expression, &[]);
        let [least, most] = [least, most].map(|end| b.float(Type::F64, end));
        let above = b.fcmp(FloatPredicate::Oge, limits.least, least);
        let below = b.fcmp(FloatPredicate::Ole, limits.most, most);
        b.binary(Opcode::And, above, below)
    }

    /// Builds whether some arithmetic may not have been exact.
    pub(crate) fn build_inexact(&self, b: &mut Builder<'_>) -> Value {
        match self.sizes {
            Some(sizes) => {
                let largest = b.float(Type::F64, LARGEST);
                b.fcmp(FloatPredicate::Ugt, sizes, largest)
            }
            None => b.function.int(Type::I1, 0),
        }
    }

    /// An integer where the test is. It is frozen: where it is not defined, nobody but the test uses it.
    fn integer(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        if b.function.is_constant(value) {
            return value;
        }
        if let Some(&known) = self.integers.get(&value) {
            return known;
        }
        let built = match self.place.is_visible(b.function, value) {
            true => b.unary(Opcode::Freeze, value),
            false => {
                let (op, _) = b.function.def_op(value).expect("it can be computed");
                let data = b.function.ops[op].clone();
                let mut operands: Vec<Value> = Vec::new();
                for &operand in &data.operands {
                    operands.push(self.integer(b, operand));
                }
                if matches!(data.opcode, Opcode::Udiv | Opcode::Urem) {
                    // Nobody divides by zero where it matters.
                    let one = b.function.int(b.function.ty(value), 1);
                    operands[1] = b.binary(Opcode::Umax, operands[1], one);
                }
                let ty = b.ty(value);
                let again = b.value(data.opcode, &operands, data.payload, ty);
                // Shifts by too much have no value.
                match data.opcode {
                    Opcode::Shl | Opcode::Lshr | Opcode::Ashr => b.unary(Opcode::Freeze, again),
                    _ => again,
                }
            }
        };
        self.integers.insert(value, built);
        built
    }

    fn number(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        if let Some(&known) = self.numbers.get(&value) {
            return known;
        }
        let integer = self.integer(b, value);
        let number = b.cast(Opcode::Sitofp, integer, Type::F64);
        self.numbers.insert(value, number);
        number
    }

    /// Adds to what must not be large.
    fn measure(&mut self, b: &mut Builder<'_>, limits: Limits) {
        let ends = match limits.is_exact() {
            true => vec![limits.least],
            false => vec![limits.least, limits.most],
        };
        for end in ends {
            let size = b.unary(Opcode::Fabs, end);
            self.sizes = Some(match self.sizes {
                Some(sizes) => b.binary(Opcode::Fadd, sizes, size),
                None => size,
            });
        }
    }

    fn limits(
        &mut self,
        b: &mut Builder<'_>,
        expression: &Symbolic,
        after_first: &[Value],
    ) -> Limits {
        let constant = expression.constant_part();
        let constant_limits = Limits::exactly(b.float(Type::F64, constant as f64));
        let mut sum = (constant != 0).then_some(constant_limits);
        for term in expression.terms() {
            let key = (term.clone(), after_first.to_vec());
            let product = match self.terms.get(&key) {
                Some(&known) => known,
                None => {
                    let product = self.limits_of_term(b, term, after_first);
                    self.measure(b, product);
                    self.terms.insert(key, product);
                    product
                }
            };
            sum = Some(match sum {
                Some(sum) => add(b, sum, product),
                None => product,
            });
        }
        sum.unwrap_or(constant_limits)
    }

    fn limits_of_term(
        &mut self,
        b: &mut Builder<'_>,
        term: &Term,
        after_first: &[Value],
    ) -> Limits {
        let mut product: Option<Limits> = None;
        for &variable in &term.monomial {
            let limits = self.limits_of(b, variable, after_first);
            product = Some(match product {
                Some(product) => multiply(b, product, limits),
                None => limits,
            });
        }
        let product = product.expect("a term has a variable");
        match term.coefficient {
            1 => product,
            coefficient => {
                let factor = b.float(Type::F64, coefficient as f64);
                let mut end = |limit: Value| b.binary(Opcode::Fmul, limit, factor);
                let least = end(product.least);
                let most = match product.is_exact() {
                    true => least,
                    false => end(product.most),
                };
                match coefficient > 0 {
                    true => Limits { least, most },
                    false => Limits {
                        least: most,
                        most: least,
                    },
                }
            }
        }
    }

    fn limits_of(&mut self, b: &mut Builder<'_>, variable: Value, after_first: &[Value]) -> Limits {
        let place = self.place;
        if place.is_computable(b.function, variable, MAX_DEPTH) {
            return Limits::exactly(self.number(b, variable));
        }
        if let Some(counted) = place.variables.counted.get(&variable) {
            return self.limits_of_counter(b, counted, after_first);
        }
        if let Some(part) = place.variables.parts.get(&variable) {
            return self.limits_of_part(b, part, after_first);
        }
        // A remainder.
        let Some(OpView::Binary(Opcode::Urem, _, divisor)) = b.function.definition(variable) else {
            unreachable!("a variable with limits is a number, a counter, a part or a remainder");
        };
        // As an unsigned integer: one that is too large is found to be.
        let divisor = self.integer(b, divisor);
        let divisor = b.cast(Opcode::Uitofp, divisor, Type::F64);
        let one = b.float(Type::F64, 1.0);
        Limits {
            least: b.float(Type::F64, 0.0),
            most: b.binary(Opcode::Fsub, divisor, one),
        }
    }

    fn limits_of_part(
        &mut self,
        b: &mut Builder<'_>,
        part: &Part,
        after_first: &[Value],
    ) -> Limits {
        let whole = self.limits(b, &part.whole, after_first);
        let [least, most] = [part.least, part.most].map(|limit| b.float(Type::F64, limit));
        let is_above = b.fcmp(FloatPredicate::Ole, least, whole.least);
        let is_below = b.fcmp(FloatPredicate::Ole, whole.most, most);
        let is_whole = b.binary(Opcode::And, is_above, is_below);
        let mut reached = whole.least;
        if part.slack > 0.0 {
            let slack = b.float(Type::F64, part.slack);
            let less = b.binary(Opcode::Fsub, reached, slack);
            reached = b.binary(Opcode::Fmax, least, less);
        }
        Limits {
            least: b.select(is_whole, reached, least),
            most: b.select(is_whole, whole.most, most),
        }
    }

    fn limits_of_counter(
        &mut self,
        b: &mut Builder<'_>,
        counted: &Counted,
        after_first: &[Value],
    ) -> Limits {
        let from = self.limits(b, &counted.from, after_first);
        let to = self.limits(b, &counted.to, after_first);
        let step = counted.constant_step().expect("the step is constant");
        let upward = step > 0;
        let one = b.float(Type::F64, 1.0);
        // The iteration that is farthest from the first, where all counters are reached that are not beyond the bound.
        let (start, bound) = match upward {
            true => (from.least, to.most),
            false => (from.most, to.least),
        };
        let distance = match upward {
            true if b.function.float_of(start) == Some(0.0) => bound,
            true => b.binary(Opcode::Fsub, bound, start),
            false => b.binary(Opcode::Fsub, start, bound),
        };
        let distance = b.binary(Opcode::Fsub, distance, one);
        self.measure(b, Limits::exactly(distance));
        let mut reached = distance;
        if step.unsigned_abs() > 1 && from.is_exact() {
            let size = b.float(Type::F64, step.unsigned_abs() as f64);
            let count = b.binary(Opcode::Fdiv, distance, size);
            let count = b.unary(Opcode::Floor, count);
            reached = b.binary(Opcode::Fmul, count, size);
        }
        let last = match (upward, b.function.float_of(start)) {
            (true, Some(0.0)) => reached,
            (true, _) => b.binary(Opcode::Fadd, start, reached),
            (false, _) => b.binary(Opcode::Fsub, start, reached),
        };
        let mut first = start;
        if after_first.contains(&counted.counter) {
            let step = b.float(Type::F64, step as f64);
            first = b.binary(Opcode::Fadd, first, step);
        }
        match upward {
            true => Limits {
                least: first,
                most: last,
            },
            false => Limits {
                least: last,
                most: first,
            },
        }
    }
}

fn add(b: &mut Builder<'_>, one: Limits, other: Limits) -> Limits {
    let least = b.binary(Opcode::Fadd, one.least, other.least);
    let most = match one.is_exact() && other.is_exact() {
        true => least,
        false => b.binary(Opcode::Fadd, one.most, other.most),
    };
    Limits { least, most }
}

fn multiply(b: &mut Builder<'_>, one: Limits, other: Limits) -> Limits {
    if one.is_exact() && other.is_exact() {
        return Limits::exactly(b.binary(Opcode::Fmul, one.least, other.least));
    }
    let mut products = Vec::new();
    for (a, c) in [
        (one.least, other.least),
        (one.least, other.most),
        (one.most, other.least),
        (one.most, other.most),
    ] {
        if !products.iter().any(|&(x, y, _)| (x, y) == (a, c)) {
            products.push((a, c, b.binary(Opcode::Fmul, a, c)));
        }
    }
    let (mut least, mut most) = (products[0].2, products[0].2);
    for &(_, _, product) in &products[1..] {
        least = b.binary(Opcode::Fmin, least, product);
        most = b.binary(Opcode::Fmax, most, product);
    }
    Limits { least, most }
}

/// What tells counted loops apart as far as ranges are concerned.
type Bounds = (Symbolic, Symbolic, Symbolic);

impl RangeBuilder<'_> {
    /// Stretches behind one pointer: those that differ by constants become one, and so do those in loops with the same bounds.
    fn joined(&mut self, stretches: impl IntoIterator<Item = Stretch>) -> Vec<Stretch> {
        let mut joined: Vec<Stretch> = Vec::new();
        for stretch in stretches {
            let stretch = self.renamed(stretch);
            if !joined.iter_mut().any(|other| other.join(&stretch)) {
                joined.push(stretch);
            }
        }
        joined
    }

    /// The same bytes in terms of other counters: in each class of loops with the same bounds, the first ones that were met.
    fn renamed(&mut self, stretch: Stretch) -> Stretch {
        let counted = &self.place.variables.counted;
        let mut counters: Vec<Value> = (stretch.start.variables().chain(stretch.end.variables()))
            .filter(|variable| counted.contains_key(variable))
            .collect();
        counters.sort();
        counters.dedup();
        let mut named: FxHashMap<Bounds, usize> = FxHashMap::default();
        let mut names: FxHashMap<Value, Symbolic> = FxHashMap::default();
        let mut after_first = Vec::new();
        for counter in counters {
            let counted = &counted[&counter];
            let bounds = (
                counted.from.clone(),
                counted.to.clone(),
                counted.step.clone(),
            );
            let number = named.entry(bounds.clone()).or_default();
            let class = self.classes.entry(bounds).or_default();
            if class.len() <= *number {
                class.push(counter);
            }
            let name = class[*number];
            *number += 1;
            names.insert(counter, Symbolic::of_value(name));
            if stretch.after_first.contains(&counter) {
                after_first.push(name);
            }
        }
        let start = stretch.start.substitute_all(&names);
        match start.zip(stretch.end.substitute_all(&names)) {
            Some((start, end)) => Stretch {
                root: stretch.root,
                start,
                end,
                after_first,
            },
            None => stretch,
        }
    }
}

impl Stretch {
    /// Grows by another one that differs by constants; gives whether it does.
    fn join(&mut self, other: &Stretch) -> bool {
        let distance = |a: &Symbolic, b: &Symbolic| a.sub(b).and_then(|d| d.is_constant());
        let start = distance(&other.start, &self.start);
        let end = distance(&other.end, &self.end);
        let (Some(start), Some(end)) = (start, end) else {
            return false;
        };
        if self.after_first != other.after_first {
            return false;
        }
        if start < 0 {
            self.start.clone_from(&other.start);
        }
        if end > 0 {
            self.end.clone_from(&other.end);
        }
        true
    }
}
