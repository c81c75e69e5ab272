//! Asks once, before a nest of counted loops, what is checked in every iteration.
//!
//! ```text
//! for %i: i64 = 0 to %n step 1 {                %m = sub i64 %n, 1
//!   %ok = icmp ult i64 %i, %len                 %safe = …%m and %len are small, and %m < %len…
//!   if %ok { } else { trap @panic(%i) }    →    if %safe { for … without the check …
//!   …                                           } else { for … as it was … }
//! }
//! ```
//!
//! A check is an `if` of which one region ends in a trap. It never fails in the whole nest if what it compares, a polynomial with positive coefficients, stays
//! in its bound for the last values of all counters. That is computed before the nest, in arithmetic that cannot overflow since every variable is
//! tested to be small; where the test fails, the nest runs as it was, and traps where it did.
//!
//! Meant for finished derivatives: before differentiation it would double the work. What remains of a forward sweep that nobody needs is often nothing but
//! checks, and goes altogether.

use crate::detach::with_function;
use crate::indices::Indices;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{
    Builder, Function, FunctionId, IntPredicate, Module, Op, OpData, Opcode, Payload, Region, Type,
    Value, ValueData, ValueDef,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Nests with more operations than this are left as they are.
const MAX_OPS: usize = 2000;

/// Conditions with more parts than this are not taken apart.
const MAX_PARTS: usize = 8;

/// Variables of the test must be below two to this at least; else it would hardly ever succeed.
const MIN_BITS: u32 = 20;

/// Splits nests of loops by whether their checks can fail; gives the number of nests split.
pub fn split_checks(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let Some(body) = function.body else { return 0 };
        let splits = find_splits(function, body);
        for split in &splits {
            apply(function, split);
        }
        splits.len()
    })
}

/// A nest to be split.
struct Split {
    /// The outermost loop, and the region it stands in.
    nest: Op,
    region: Region,
    /// The checks, each with the value of its condition that does not trap.
    checks: Vec<(Op, bool)>,
    /// What must hold for that.
    tests: Vec<Test>,
    /// What must be small and not negative, with the number of bits it may have.
    small: Vec<(Small, u32)>,
}

/// `less` is below `bound`, or at most that.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Test {
    less: Symbolic,
    bound: Symbolic,
    or_equal: bool,
}

/// Something to be tested.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Small {
    Value(Value),
    /// The last value of a counter: what it stays below, less one.
    Last(Value),
}

fn find_splits(function: &Function, body: Region) -> Vec<Split> {
    let indices = Indices::of(function);
    let mut splits = Vec::new();
    let mut work = vec![body];
    while let Some(region) = work.pop() {
        for &op in &function.regions[region].ops {
            let data = &function.ops[op];
            if data.opcode == Opcode::For
                && let Some(split) = find_split(&indices, op, region)
            {
                splits.push(split);
            } else {
                work.extend(&data.regions);
            }
        }
    }
    splits
}

fn find_split(indices: &Indices<'_>, nest: Op, region: Region) -> Option<Split> {
    let function = indices.function();
    let mut split = Split {
        nest,
        region,
        checks: Vec::new(),
        tests: Vec::new(),
        small: Vec::new(),
    };
    let mut bits: FxHashMap<Small, u32> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut count = 0;
    let mut work: Vec<Region> = function.ops[nest].regions.to_vec();
    while let Some(inner) = work.pop() {
        count += function.regions[inner].ops.len();
        if count > MAX_OPS {
            return None;
        }
        for &op in &function.regions[inner].ops {
            work.extend(&function.ops[op].regions);
            let Some((condition, safe)) = read_check(function, op) else {
                continue;
            };
            let mut check = Check {
                indices,
                nest,
                tests: Vec::new(),
                small: FxHashMap::default(),
            };
            if check.demand(op, condition, safe, 0).is_none() {
                continue;
            }
            split.checks.push((op, safe));
            for test in check.tests {
                if seen.insert(test.clone()) {
                    split.tests.push(test);
                }
            }
            for (variable, limit) in check.small {
                let known = bits.entry(variable).or_insert(limit);
                *known = limit.min(*known);
            }
        }
    }
    split.small = bits.into_iter().collect();
    split.small.sort_by_key(|(small, _)| match small {
        Small::Value(value) => (0, *value),
        Small::Last(value) => (1, *value),
    });
    (!split.checks.is_empty()).then_some(split)
}

/// The condition of a check, and the value of it that does not trap.
fn read_check(function: &Function, op: Op) -> Option<(Value, bool)> {
    let data = &function.ops[op];
    if data.opcode != Opcode::If {
        return None;
    }
    let &[then, otherwise] = data.regions.as_slice() else {
        return None;
    };
    let condition = data.operands[0];
    match (
        function.ends_in_trap(then),
        function.ends_in_trap(otherwise),
    ) {
        (true, false) => Some((condition, false)),
        (false, true) => Some((condition, true)),
        _ => None,
    }
}

/// Finds out what must hold before the nest for one check never to fail.
struct Check<'a, 'f> {
    indices: &'a Indices<'f>,
    nest: Op,
    tests: Vec<Test>,
    small: FxHashMap<Small, u32>,
}

impl Check<'_, '_> {
    /// Demands that a condition always has this value; `None` if that cannot be put into tests.
    fn demand(&mut self, check: Op, condition: Value, wanted: bool, depth: usize) -> Option<()> {
        let function = self.indices.function();
        if let Some(constant) = function.int_of(condition) {
            return ((constant != 0) == wanted).then_some(());
        }
        if depth > MAX_PARTS {
            return None;
        }
        let (op, _) = function.def_op(condition)?;
        let data = &function.ops[op];
        let &[a, b] = data.operands.as_slice() else {
            return None;
        };
        match (data.opcode, wanted) {
            (Opcode::Or, false) | (Opcode::And, true) => {
                self.demand(check, a, wanted, depth + 1)?;
                self.demand(check, b, wanted, depth + 1)
            }
            (Opcode::Xor, _) if function.int_of(b).is_some_and(|b| b != 0) => {
                self.demand(check, a, !wanted, depth + 1)
            }
            (Opcode::Icmp, _) if function.ty(a) == Type::I64 => {
                let Payload::IntPredicate(predicate) = data.payload else {
                    return None;
                };
                self.compare(check, predicate, wanted, a, b)
            }
            _ => None,
        }
    }

    fn compare(
        &mut self,
        check: Op,
        predicate: IntPredicate,
        wanted: bool,
        a: Value,
        b: Value,
    ) -> Option<()> {
        use IntPredicate::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
        match (predicate, wanted) {
            (Ult | Slt, true) | (Uge | Sge, false) => self.below(check, a, b, false),
            (Ule | Sle, true) | (Ugt | Sgt, false) => self.below(check, a, b, true),
            (Ugt | Sgt, true) | (Ule | Sle, false) => self.below(check, b, a, false),
            (Uge | Sge, true) | (Ult | Slt, false) => self.below(check, b, a, true),
            // What stays below never meets: counters that are tested for having arrived at the end.
            (Eq, false) | (Ne, true) => {
                let (tests, small) = (self.tests.len(), self.small.clone());
                self.below(check, a, b, false).or_else(|| {
                    self.tests.truncate(tests);
                    self.small = small;
                    self.below(check, b, a, false)
                })
            }
            (Eq, true) | (Ne, false) => None,
        }
    }

    /// Demands that `less` stays below `bound` in all iterations.
    fn below(&mut self, check: Op, less: Value, bound: Value, or_equal: bool) -> Option<()> {
        let less = self.indices.expression(less);
        let bound = self.indices.expression(bound);
        // Where the distance is a sum of positive terms, nothing has to be tested but that they are.
        let distance = bound.sub(&less)?;
        let least = distance.constant_part() - i64::from(!or_equal);
        let positive =
            |expression: &Symbolic| expression.terms().iter().all(|term| term.coefficient > 0);
        if positive(&distance) && least >= 0 && positive(&less) && positive(&bound) {
            self.last_values(check, less)?;
            self.last_values(check, bound)?;
            return Some(());
        }
        let less = self.last_values(check, less)?;
        if !bound
            .variables()
            .all(|variable| self.indices.is_defined_outside(variable, self.nest))
        {
            return None;
        }
        self.keep_small(&bound)?;
        self.tests.push(Test {
            less,
            bound,
            or_equal,
        });
        Some(())
    }

    /// The expression for the last values of all counters, in terms of what is known before the nest. Demands that its variables are small.
    ///
    /// A counter is represented by what it stays below, as [`Small::Last`]; the caller subtracts one.
    fn last_values(&mut self, check: Op, expression: Symbolic) -> Option<Symbolic> {
        let increasing = expression.constant_part() >= 0
            && expression.terms().iter().all(|term| term.coefficient > 0);
        if !increasing {
            return None;
        }
        let loops = self.indices.loops_around(check);
        for variable in expression.variables().collect::<FxHashSet<_>>() {
            if self.indices.is_defined_outside(variable, self.nest) {
                continue;
            }
            let counted = self.indices.counted_by(variable)?;
            let within = loops.contains(&counted.op);
            let upward = counted.constant_step().is_some_and(|step| step > 0);
            let from_zero = counted.from.is_constant().is_some_and(|from| from >= 0);
            let to = self.indices.function().ops[counted.op].operands[1];
            let known = self.indices.is_defined_outside(to, self.nest)
                && self.indices.function().ty(to) == Type::I64;
            if !(within && upward && from_zero && known) {
                return None;
            }
        }
        self.keep_small(&expression)?;
        Some(expression)
    }

    /// Demands that the expression can be computed without overflow.
    fn keep_small(&mut self, expression: &Symbolic) -> Option<()> {
        let degree = expression
            .terms()
            .iter()
            .map(|term| term.monomial.len() as u32)
            .max()
            .unwrap_or(1);
        let weight = expression
            .terms()
            .iter()
            .map(|term| term.coefficient.unsigned_abs())
            .try_fold(expression.constant_part().unsigned_abs(), u64::checked_add)?;
        let bits = 61u32.checked_sub(u64::BITS - weight.leading_zeros())? / degree;
        if bits < MIN_BITS {
            return None;
        }
        let function = self.indices.function();
        for variable in expression.variables().collect::<FxHashSet<_>>() {
            if function.ty(variable) != Type::I64 {
                return None;
            }
            let small = match self.indices.counted_by(variable) {
                Some(counted) if !self.indices.is_defined_outside(variable, self.nest) => {
                    Small::Last(function.ops[counted.op].operands[1])
                }
                _ => Small::Value(variable),
            };
            let known = self.small.entry(small).or_insert(bits);
            *known = bits.min(*known);
        }
        Some(())
    }
}

fn apply(function: &mut Function, split: &Split) {
    let before = function.new_region(&[]);
    let safe = emit_tests(function, before, split);
    let mut copies = Copies::default();
    let fast = copies.op(function, split.nest);
    for &(check, wanted) in &split.checks {
        let constant = function.int(Type::I1, i128::from(wanted));
        let copy = copies.ops[&check];
        function.ops[copy].operands[0] = constant;
    }

    let types: Vec<Type> = function.ops[split.nest]
        .results
        .iter()
        .map(|&result| function.ty(result))
        .collect();
    let location = function.ops[split.nest].location;
    let mut builder = Builder::new(function, before);
    let (choice, then, otherwise) = builder.if_else(safe, &types);
    for (region, inner) in [(then, fast), (otherwise, split.nest)] {
        let results = function.ops[inner].results.to_vec();
        function.regions[region].ops.push(inner);
        Builder::new(function, region).yields(&results);
    }
    function.ops[choice].location = location;
    // The results of the nest are now those of the choice, except where the choice itself gets them.
    let results: FxHashMap<Value, Value> = function.ops[split.nest]
        .results
        .iter()
        .copied()
        .zip(function.ops[choice].results.iter().copied())
        .collect();
    let keep = function.terminator(otherwise);
    let yielded = function.ops[keep].operands.clone();
    if !results.is_empty() {
        function.replace_operands(&results);
    }
    function.ops[keep].operands = yielded;

    let new = std::mem::take(&mut function.regions[before].ops);
    let ops = &mut function.regions[split.region].ops;
    let place = ops
        .iter()
        .position(|&op| op == split.nest)
        .expect("the nest stands where it was found");
    ops.splice(place..=place, new);
}

fn emit_tests(function: &mut Function, region: Region, split: &Split) -> Value {
    let counters = last_counters(function, split);
    let mut builder = Builder::new(function, region);
    let one = builder.i64(1);
    let mut conditions = Vec::new();
    let mut last: FxHashMap<Value, Value> = FxHashMap::default();
    for (small, bits) in &split.small {
        let value = match small {
            Small::Value(value) => *value,
            Small::Last(to) => {
                let value = builder.binary(Opcode::Sub, *to, one);
                last.insert(*to, value);
                value
            }
        };
        let limit = builder.i64(1 << bits);
        conditions.push(builder.icmp(IntPredicate::Ult, value, limit));
    }
    let replacements: FxHashMap<Value, Symbolic> = counters
        .into_iter()
        .filter_map(|(counter, to)| Some((counter, Symbolic::of_value(*last.get(&to)?))))
        .collect();
    for test in &split.tests {
        let less = test
            .less
            .substitute_all(&replacements)
            .expect("replacing variables by variables makes nothing larger");
        let less = less.emit(&mut builder).expect("all variables are i64");
        let bound = test
            .bound
            .emit(&mut builder)
            .expect("all variables are i64");
        let predicate = match test.or_equal {
            true => IntPredicate::Sle,
            false => IntPredicate::Slt,
        };
        conditions.push(builder.icmp(predicate, less, bound));
    }
    let all = conditions
        .into_iter()
        .reduce(|a, b| builder.binary(Opcode::And, a, b));
    all.unwrap_or_else(|| builder.function.int(Type::I1, 1))
}

/// The counters of the nest's loops, with what each stays below.
fn last_counters(function: &Function, split: &Split) -> Vec<(Value, Value)> {
    let mut counters = Vec::new();
    let mut work = vec![split.nest];
    while let Some(op) = work.pop() {
        let data = &function.ops[op];
        if data.opcode == Opcode::For {
            let counter = function.regions[data.regions[0]].args[0];
            counters.push((counter, data.operands[1]));
        }
        for &region in &data.regions {
            work.extend(&function.regions[region].ops);
        }
    }
    counters
}

/// Copies of operations within a function.
#[derive(Default)]
struct Copies {
    values: FxHashMap<Value, Value>,
    ops: FxHashMap<Op, Op>,
}

impl Copies {
    fn op(&mut self, function: &mut Function, op: Op) -> Op {
        let data = function.ops[op].clone();
        let operands = data
            .operands
            .iter()
            .map(|operand| self.values.get(operand).copied().unwrap_or(*operand))
            .collect();
        let copy = function.ops.push(OpData {
            operands,
            results: SmallVec::new(),
            regions: SmallVec::new(),
            ..data.clone()
        });
        self.ops.insert(op, copy);
        for (index, &result) in data.results.iter().enumerate() {
            let index = index as u32;
            let value = self.value(function, result, ValueDef::Result { op: copy, index });
            function.ops[copy].results.push(value);
        }
        for &region in &data.regions {
            let new = function.new_region(&[]);
            for (index, argument) in function.regions[region]
                .args
                .clone()
                .into_iter()
                .enumerate()
            {
                let index = index as u32;
                let def = ValueDef::Argument { region: new, index };
                let value = self.value(function, argument, def);
                function.regions[new].args.push(value);
            }
            for inner in function.regions[region].ops.clone() {
                let inner = self.op(function, inner);
                function.regions[new].ops.push(inner);
            }
            function.ops[copy].regions.push(new);
        }
        copy
    }

    fn value(&mut self, function: &mut Function, old: Value, def: ValueDef) -> Value {
        let data = &function.values[old];
        let data = ValueData {
            ty: data.ty,
            def,
            name: data.name.clone(),
            range: data.range,
        };
        let new = function.values.push(data);
        self.values.insert(old, new);
        new
    }
}
