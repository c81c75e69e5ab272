//! Rewrites a nest whose sums become contractions: the new form for large trip counts, the old one for small ones.

use super::arrays::emit;
use super::assumptions::build_test;
use super::interchange::Interchange;
use super::tests_at_run_time::Test;
use super::{Changes, PRODUCT, Plan, Rest};
use crate::copy_operations::copy_operation;
use crate::distribution::Site;
use crate::ranges::RangeBuilder;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{
    Alignment, Builder, Contraction, ContractionIndex, Cursor, Function, IntPredicate, Op, OpView,
    Opcode, Region, Structure, Type, Value, all_ops,
};
use rustc_hash::FxHashMap;

/// Takes sums out of their common nest.
pub(super) fn apply(function: &mut Function, changes: &Changes) {
    let plans = &changes.plans[..];
    let nest = plans[0].nest;
    let structure = Structure::of(function);
    let region = structure
        .region_of(nest)
        .expect("a loop stands in a region");
    let copy = copy_operation(function, nest, &mut FxHashMap::default());

    let at = Cursor::before(function, region, nest);
    let mut b = Builder::at(function, at);
    b.location = b.function.ops[nest].location;
    let large = is_large(&mut b, changes);
    let results = b.function.ops[nest].results.clone();
    let types: Vec<Type> = results.iter().map(|&value| b.ty(value)).collect();
    let (choice, then, otherwise) = b.if_else(large, &types);
    Cursor::before(b.function, region, nest).remove(b.function);
    replace_uses(b.function, &results, choice);

    b.go_to_end(then);
    build_at(&mut b, plans, Site::Ahead);
    b.function.append(then, nest);
    b.go_to_end(then);
    build_at(&mut b, plans, Site::Behind);
    b.yields(&results);
    b.go_to_end(otherwise);
    b.function.append(otherwise, copy);
    b.go_to_end(otherwise);
    let copied = b.function.ops[copy].results.clone();
    b.yields(&copied);

    for plan in plans {
        remove_sum(function, &structure, plan);
    }
    if let Some(interchange) = &changes.interchange {
        interchange_loops(function, then, nest, interchange);
    }
}

/// Builds what is left of a nest anew with its loops interchanged, in its place.
fn interchange_loops(function: &mut Function, region: Region, nest: Op, change: &Interchange) {
    let at = Cursor::before(function, region, nest);
    at.remove(function);
    let mut values = FxHashMap::default();
    let mut b = Builder::at(function, at);
    let mut bodies = Vec::new();
    for op in [change.inner, nest] {
        b.location = b.function.ops[op].location;
        let [from, to, step] = b.function.ops[op].bounds();
        let counter = b.function.counter(op);
        let (_, body) = b.for_loop(from, to, step, &[]);
        let again = b.function.regions[body].args[0];
        b.function.values[again].range = b.function.values[counter].range;
        values.insert(counter, again);
        bodies.push(body);
        b.go_to_end(body);
    }
    for &op in &change.ops {
        let copy = copy_operation(b.function, op, &mut values);
        b.insert(copy);
    }
    for &body in &bodies {
        b.go_to_end(body);
        b.yields(&[]);
    }
}

/// From now on the results of a choice stand for those of the nest.
fn replace_uses(function: &mut Function, results: &[Value], choice: Op) {
    if results.is_empty() {
        return;
    }
    let chosen = function.ops[choice].results.clone();
    let replacements: FxHashMap<Value, Value> = results
        .iter()
        .copied()
        .zip(chosen.iter().copied())
        .collect();
    for op in all_ops(function) {
        for operand in &mut function.ops[op].operands {
            if let Some(&replacement) = replacements.get(operand) {
                *operand = replacement;
            }
        }
    }
}

/// Builds the condition under which one of the contractions is worth it.
fn is_large(b: &mut Builder<'_>, changes: &Changes) -> Value {
    let plans = &changes.plans;
    let mut large = b.function.int(Type::I1, 0);
    for plan in plans {
        let mut all = b.function.int(Type::I1, 1);
        for class in PRODUCT {
            let of_class = plan.trips.iter().filter(|(other, _)| *other == class);
            let trips = build_trips(b, of_class.map(|(_, count)| count));
            let least = b.i64(changes.min_trips);
            let enough = b.icmp(IntPredicate::Sge, trips, least);
            all = b.binary(Opcode::And, all, enough);
        }
        large = b.binary(Opcode::Or, large, all);
    }
    let assumed: Vec<Value> = plans.iter().flat_map(|plan| plan.assumed.clone()).collect();
    let holds = build_test(b, &assumed);
    large = b.binary(Opcode::And, large, holds);
    let mut tests: Vec<&Test> = Vec::new();
    let of_rest = changes.interchange.iter().flat_map(|change| &change.tests);
    for test in plans.iter().flat_map(|plan| &plan.tests).chain(of_rest) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let mut ranges = RangeBuilder::new(&changes.place);
    for test in tests {
        if let Some(holds) = test.build(b, &mut ranges) {
            large = b.binary(Opcode::And, large, holds);
        }
    }
    let inexact = ranges.build_inexact(b);
    let no = b.function.int(Type::I1, 0);
    b.select(inexact, no, large)
}

/// Builds how often the innermost of several loops runs.
fn build_trips<'s>(b: &mut Builder<'_>, counts: impl Iterator<Item = &'s Symbolic>) -> Value {
    let counts: Vec<Value> = counts.map(|count| emit(count, b)).collect();
    match counts[..] {
        [count] => count,
        _ => {
            // A trip count that is not positive is zero, which two of them would not give.
            let zero = b.i64(0);
            let mut trips = b.i64(1);
            for count in counts {
                let count = b.binary(Opcode::Smax, count, zero);
                trips = b.binary(Opcode::Mul, trips, count);
            }
            trips
        }
    }
}

/// Builds the contractions of one site.
fn build_at(b: &mut Builder<'_>, plans: &[Plan], site: Site) {
    for plan in plans.iter().filter(|plan| plan.site == site) {
        b.location = b.function.ops[plan.store].location;
        let outside = b.region();
        let mut ends: Vec<(Region, Region)> = Vec::new();
        let mut guards = plan.guards.clone();
        if !plan.scalar_loads.is_empty() {
            // What is loaded for all iterations may not be there if there are none.
            let trips = build_trips(b, plan.trips.iter().map(|(_, count)| count));
            let zero = b.i64(0);
            guards.insert(0, (b.icmp(IntPredicate::Sgt, trips, zero), true));
        }
        for (condition, holds) in guards {
            let (_, then, otherwise) = b.if_else(condition, &[]);
            let (taken, other) = match holds {
                true => (then, otherwise),
                false => (otherwise, then),
            };
            ends.push((taken, other));
            b.go_to_end(taken);
        }
        build(b, plan);
        for (taken, other) in ends {
            for region in [taken, other] {
                b.go_to_end(region);
                b.yields(&[]);
            }
        }
        b.go_to_end(outside);
    }
}

fn build(b: &mut Builder<'_>, plan: &Plan) {
    let arrays = plan.arrays.each_ref().map(|array| array.emit_base(b));
    let mut factor = b.float(plan.element, if plan.negated { -1.0 } else { 1.0 });
    let mut scalars = plan.scalars.clone();
    for array in &plan.scalar_loads {
        let address = array.emit_base(b);
        scalars.push(b.load(plan.element, address, Alignment::natural(plan.element)));
    }
    for scalar in scalars {
        factor = b.binary(Opcode::Fmul, factor, scalar);
    }
    let indices = plan.indices.iter().map(|index| {
        let class = index.class;
        let count = build_trips(b, index.counts.iter());
        let mut values = [None; 3];
        for ((value, stride), counts) in values.iter_mut().zip(&index.strides).zip(class.arrays()) {
            if counts {
                *value = Some(emit(stride, b));
            }
        }
        ContractionIndex {
            class,
            count,
            strides: values,
        }
    });
    let contraction = Contraction {
        arrays,
        factor,
        add: !matches!(plan.rest, Rest::Set | Rest::ReadBack(_)),
        indices: indices.collect(),
    };
    b.contract(&contraction);
}

/// Takes a sum out of its nest.
fn remove_sum(function: &mut Function, structure: &Structure, plan: &Plan) {
    match plan.rest {
        Rest::Sum | Rest::Set => remove_store(function, structure, plan.store),
        Rest::ReadBack(ref place) => {
            let stored = function.ops[plan.store].value();
            let align = match function.view(plan.store) {
                OpView::Store { align, .. } => align,
                _ => Alignment::ONE,
            };
            remove_store(function, structure, plan.store);
            let (op, _) = function.def_op(stored).expect("a sum is computed");
            let home = structure.region_of(op);
            let home = home.expect("it is computed in a region");
            let at = Cursor::after(function, home, op);
            let mut b = Builder::at(function, at);
            b.location = b.function.ops[plan.store].location;
            let bytes = emit(&place.offset, &mut b);
            let address = b.offset(place.root, bytes, 1);
            let read = b.load(plan.element, address, align);
            function.replace_operands(&FxHashMap::from_iter([(stored, read)]));
        }
        Rest::Others { used, by } => {
            // A negative zero changes nothing that it is added to.
            let zero = function.float(plan.element, -0.0);
            function.ops[used.0].operands[used.1] = by.unwrap_or(zero);
        }
    }
}

/// Removes a store, which may have been the sum of several products.
fn remove_store(function: &mut Function, structure: &Structure, store: Op) {
    let home = structure.region_of(store);
    let home = home.expect("the store stands in a region");
    if function.regions[home].ops.contains(&store) {
        Cursor::before(function, home, store).remove(function);
    }
}
