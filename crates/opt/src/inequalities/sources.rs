//! Which inequalities hold where code runs: what loops, branches and checks around and before it say.

use crate::conditions::{Comparison, comparison, meaning, split_conjunction};
use crate::indices::{Counted, Indices};
use crate::interval::Interval;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Function, Op, OpView, Opcode, Region, Scalar, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How many checks of one region are believed.
const MAX_CHECKS: usize = 128;

/// How many regions outwards conditions of `if` are looked for.
const MAX_CONDITIONS: usize = 8;

/// What holds where the operations of a region run, each expression being at least 0.
pub(crate) fn inequalities_at(
    indices: &Indices,
    region: Option<Region>,
    trusting: bool,
) -> Vec<(u32, Symbolic)> {
    let structure = indices.structure();
    let mut inequalities: Vec<(u32, Symbolic)> = Vec::new();
    let mut conditions = 0;
    let mut region = region;
    while let Some(inner) = region {
        inequalities.extend(check_inequalities(indices, inner, trusting));
        let Some(holder) = structure.op_of(inner) else {
            break;
        };
        let own = if let Some(counted) = indices.counted(holder) {
            counted_inequalities(counted)
        } else if conditions < MAX_CONDITIONS {
            conditions += 1;
            branch_inequalities(indices, holder, inner, trusting, false).to_vec()
        } else {
            Vec::new()
        };
        inequalities.extend(own.into_iter().map(|inequality| (0, inequality)));
        region = structure.region_of(holder);
    }
    without_repetitions(inequalities)
}

/// Keeps each inequality once, from where it holds first.
fn without_repetitions(mut inequalities: Vec<(u32, Symbolic)>) -> Vec<(u32, Symbolic)> {
    let mut first: FxHashMap<Symbolic, u32> = FxHashMap::default();
    for (since, inequality) in &inequalities {
        let known = first.entry(inequality.clone()).or_insert(*since);
        *known = (*known).min(*since);
    }
    inequalities.retain(|(since, inequality)| match first.get(inequality) {
        Some(known) if known == since => first.remove(inequality).is_some(),
        _ => false,
    });
    inequalities
}

/// What the checks of a region say behind them: each stands in the text before what it speaks of.
fn check_inequalities(indices: &Indices, region: Region, trusting: bool) -> Vec<(u32, Symbolic)> {
    let function = indices.function();
    let mut inequalities = Vec::new();
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
        let found = branch_inequalities(indices, op, passing, trusting, true);
        inequalities.extend(found.into_iter().map(|inequality| (since, inequality)));
    }
    inequalities
}

/// What holds within the body of a `for`, each expression being at least 0.
pub(super) fn counted_inequalities(counted: &Counted) -> Vec<Symbolic> {
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
fn branch_inequalities(
    indices: &Indices,
    op: Op,
    region: Region,
    trusting: bool,
    is_check: bool,
) -> SmallVec<[Symbolic; 2]> {
    let function = indices.function();
    let mut inequalities = SmallVec::new();
    let OpView::If {
        condition, then, ..
    } = function.view(op)
    else {
        return inequalities;
    };
    for (condition, holds) in split_conjunction(function, (condition, then == region)) {
        if let Some(compared) = comparison(function, (condition, holds)) {
            inequalities.extend(comparison_inequalities(
                indices, compared, trusting, is_check,
            ));
        }
    }
    inequalities
}

/// What a comparison that holds says, each expression being at least 0.
fn comparison_inequalities(
    indices: &Indices,
    (predicate, left, right): Comparison,
    trusting: bool,
    is_check: bool,
) -> SmallVec<[Symbolic; 2]> {
    let function = indices.function();
    let mut inequalities = SmallVec::new();
    if !is_scalar_integer(function, left) {
        return inequalities;
    }
    let interval = |value: Value| {
        let known = indices.interval_of_value(value);
        let compared = is_check && value == right && function.arguments().contains(&value);
        match trusting && (compared || indices.is_size(value)) {
            true => known.intersect(Interval::new(0, i128::from(i64::MAX))),
            false => known,
        }
    };
    let meaning = meaning(predicate, interval(left), interval(right));
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
    inequalities.extend(meaning.below.and_then(|gap| below(&a, &b, gap)));
    inequalities.extend(meaning.above.and_then(|gap| below(&b, &a, gap)));
    inequalities.extend(meaning.not_negative.then_some(a));
    inequalities
}

/// Whether an expression is a product of sizes, which is taken not to wrap around.
fn is_product(expression: &Symbolic) -> bool {
    match expression.terms() {
        [term] => term.coefficient > 0 && expression.constant_part() == 0,
        _ => false,
    }
}

fn is_scalar_integer(function: &Function, value: Value) -> bool {
    let ty = function.ty(value);
    !ty.is_vector() && matches!(ty.scalar(), Scalar::Int(bits) if bits <= 64)
}
