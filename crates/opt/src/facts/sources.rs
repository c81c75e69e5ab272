//! Which inequalities hold where code runs: what loops, branches and checks around and before it say.

use crate::conditions::{Comparison, comparison, split_conjunction};
use crate::indices::{Counted, Indices};
use crate::interval::Interval;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Function, IntPredicate, Op, Opcode, Region, Scalar, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How many checks of one region are believed.
const MAX_CHECKS: usize = 128;

/// How many regions outwards conditions of `if` are looked for.
const MAX_CONDITIONS: usize = 8;

/// What holds where the operations of a region run, each expression being at least 0.
pub(crate) fn facts_at(
    indices: &Indices,
    region: Option<Region>,
    trusting: bool,
) -> Vec<(u32, Symbolic)> {
    let structure = indices.structure();
    let mut facts: Vec<(u32, Symbolic)> = Vec::new();
    let mut conditions = 0;
    let mut region = region;
    while let Some(inner) = region {
        facts.extend(check_facts(indices, inner, trusting));
        let Some(holder) = structure.op_of(inner) else {
            break;
        };
        let own = if let Some(counted) = indices.counted(holder) {
            counted_facts(counted)
        } else if conditions < MAX_CONDITIONS {
            conditions += 1;
            branch_facts(indices, holder, inner, trusting, false).to_vec()
        } else {
            Vec::new()
        };
        facts.extend(own.into_iter().map(|fact| (0, fact)));
        region = structure.region_of(holder);
    }
    without_repetitions(facts)
}

/// Keeps each fact once, from where it holds first.
fn without_repetitions(mut facts: Vec<(u32, Symbolic)>) -> Vec<(u32, Symbolic)> {
    let mut first: FxHashMap<Symbolic, u32> = FxHashMap::default();
    for (since, fact) in &facts {
        let known = first.entry(fact.clone()).or_insert(*since);
        *known = (*known).min(*since);
    }
    facts.retain(|(since, fact)| match first.get(fact) {
        Some(known) if known == since => first.remove(fact).is_some(),
        _ => false,
    });
    facts
}

/// What the checks of a region say behind them: each stands in the text before what it speaks of.
fn check_facts(indices: &Indices, region: Region, trusting: bool) -> Vec<(u32, Symbolic)> {
    let function = indices.function();
    let mut facts = Vec::new();
    let mut checks = 0;
    for &op in &function.regions[region].ops {
        let data = &function.ops[op];
        if data.opcode != Opcode::If || checks == MAX_CHECKS {
            continue;
        }
        let passing = match [0, 1].map(|index| function.ends_in_trap(data.regions[index])) {
            [false, true] => data.regions[0],
            [true, false] => data.regions[1],
            _ => continue,
        };
        checks += 1;
        let since = indices.structure().order(op);
        let found = branch_facts(indices, op, passing, trusting, true);
        facts.extend(found.into_iter().map(|fact| (since, fact)));
    }
    facts
}

/// What holds within the body of a `for`, each expression being at least 0.
pub(super) fn counted_facts(counted: &Counted) -> Vec<Symbolic> {
    let counter = Symbolic::of_value(counted.counter);
    let (Some(smallest), Some(largest)) = (counted.smallest(), counted.largest()) else {
        return Vec::new();
    };
    [
        counter.sub(&smallest),
        largest.sub(&counter),
        largest.sub(&smallest),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the comparison of an `if` says within one of its branches, each expression being at least 0.
///
/// With `trusting`, sizes are not negative, and a parameter that an index is compared with in a check is a size.
fn branch_facts(
    indices: &Indices,
    op: Op,
    region: Region,
    trusting: bool,
    is_check: bool,
) -> SmallVec<[Symbolic; 2]> {
    let function = indices.function();
    let data = &function.ops[op];
    let mut facts = SmallVec::new();
    if data.opcode != Opcode::If || data.operands.is_empty() {
        return facts;
    }
    let holds = data.regions.first() == Some(&region);
    for (condition, holds) in split_conjunction(function, (data.operands[0], holds)) {
        if let Some(compared) = comparison(function, (condition, holds)) {
            facts.extend(comparison_facts(indices, compared, trusting, is_check));
        }
    }
    facts
}

/// What a comparison that holds says, each expression being at least 0.
fn comparison_facts(
    indices: &Indices,
    (predicate, left, right): Comparison,
    trusting: bool,
    is_check: bool,
) -> SmallVec<[Symbolic; 2]> {
    let function = indices.function();
    let mut facts = SmallVec::new();
    if !is_scalar_integer(function, left) {
        return facts;
    }
    let is_size = |value: Value| {
        let compared = is_check && value == right && function.arguments().contains(&value);
        trusting && (compared || indices.is_size(value))
    };
    let Some(meaning) = signed_meaning(indices, (predicate, left, right), is_size) else {
        return facts;
    };
    // A test for overflow compares a wrapped sum, of which only the exact expression may be believed.
    let believed = |value: Value| {
        let expression = indices.expression(value);
        match trusting && is_product(&expression) {
            true => expression,
            false => indices.exact_expression(value),
        }
    };
    let (a, b) = (believed(left), believed(right));
    let below = |low: &Symbolic, high: &Symbolic, gap: i64| {
        high.sub(low).and_then(|distance| distance.plus(-gap))
    };
    match meaning {
        Meaning::Below => facts.extend(below(&a, &b, 1)),
        Meaning::AtMost => facts.extend(below(&a, &b, 0)),
        Meaning::Above => facts.extend(below(&b, &a, 1)),
        Meaning::AtLeast => facts.extend(below(&b, &a, 0)),
        Meaning::Equal => {
            facts.extend(below(&a, &b, 0));
            facts.extend(below(&b, &a, 0));
        }
        Meaning::Within => {
            facts.extend(below(&a, &b, 1));
            facts.push(a);
        }
        Meaning::WithinOrEqual => {
            facts.extend(below(&a, &b, 0));
            facts.push(a);
        }
    }
    facts
}

/// Whether an expression is a product of sizes, which is taken not to wrap around.
fn is_product(expression: &Symbolic) -> bool {
    match expression.terms() {
        [term] => term.coefficient > 0 && expression.constant_part() == 0,
        _ => false,
    }
}

/// What a comparison says of two signed numbers.
enum Meaning {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
    /// Between 0 and the right side, which is not negative: what an unsigned comparison says.
    Within,
    /// As before, or equal to the right side.
    WithinOrEqual,
}

fn signed_meaning(
    indices: &Indices,
    (predicate, left, right): Comparison,
    is_size: impl Fn(Value) -> bool,
) -> Option<Meaning> {
    let interval = |value: Value| {
        let known = indices.interval_of_value(value);
        match is_size(value) {
            true => known.intersect(Interval::new(0, i128::from(i64::MAX))),
            false => known,
        }
    };
    let (own, limit) = (interval(left), interval(right));
    let limited = limit.min >= 0;
    // Of numbers that are not negative, an unsigned comparison is a signed one.
    let plain = limited && own.min >= 0;
    Some(match predicate {
        IntPredicate::Slt => Meaning::Below,
        IntPredicate::Sle => Meaning::AtMost,
        IntPredicate::Sgt => Meaning::Above,
        IntPredicate::Sge => Meaning::AtLeast,
        IntPredicate::Eq => Meaning::Equal,
        IntPredicate::Ult if limited => Meaning::Within,
        IntPredicate::Ule if limited => Meaning::WithinOrEqual,
        IntPredicate::Ugt if plain => Meaning::Above,
        IntPredicate::Uge if plain => Meaning::AtLeast,
        // What is not equal to its own limit is beyond it.
        IntPredicate::Ne if own.min >= limit.max => Meaning::Above,
        IntPredicate::Ne if own.max <= limit.min => Meaning::Below,
        _ => return None,
    })
}

fn is_scalar_integer(function: &Function, value: Value) -> bool {
    let ty = function.ty(value);
    !ty.is_vector() && matches!(ty.scalar(), Scalar::Int(bits) if bits <= 64)
}
