//! What the proofs may assume because it is tested before a raised nest runs.
//!
//! Trip counts of type `usize` become `umin %n, 9223372036854775807` in the Loop IR, whose counters are signed. That it is `%n` follows from `%n` not being negative, which is so in
//! any loop that ends, but is not known.

use crate::alias::Aliases;
use crate::indices::Indices;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, Function, IntPredicate, Op, OpView, Opcode, Type, Value, all_ops};

/// The numbers that are assumed not to be negative: bounds of loops are limited to what fits.
pub(super) fn limited_bounds(function: &Function) -> Vec<(Value, Value)> {
    let largest = i128::from(i64::MAX);
    let mut found = Vec::new();
    for op in all_ops(function) {
        let OpView::For { to, .. } = function.view(op) else {
            continue;
        };
        let Some(OpView::Binary(Opcode::Umin, a, b)) = function.definition(to) else {
            continue;
        };
        let number = match (function.int_of(a), function.int_of(b)) {
            (_, Some(limit)) if limit == largest => a,
            (Some(limit), _) if limit == largest => b,
            _ => continue,
        };
        if function.ty(number) == Type::I64 && !found.contains(&(to, number)) {
            found.push((to, number));
        }
    }
    found
}

/// What follows for the analysis: the number is not negative, and so is the bound.
pub(super) fn as_inequalities(indices: &Indices<'_>, bounds: &[(Value, Value)]) -> Vec<Symbolic> {
    let mut inequalities = Vec::new();
    for &(bound, number) in bounds {
        let (bound, number) = (indices.expression(bound), indices.expression(number));
        inequalities.extend(number.sub(&bound));
        inequalities.extend(bound.sub(&number));
        inequalities.push(number);
    }
    inequalities
}

/// The numbers that must be tested before a nest. None if one cannot be, since it is computed in the nest.
pub(super) fn tested_numbers(
    aliases: &Aliases<'_>,
    bounds: &[(Value, Value)],
    nest: Op,
) -> Option<Vec<Value>> {
    let (function, structure) = (aliases.function(), aliases.structure());
    let home = structure.region_of(nest)?;
    let mut numbers = Vec::new();
    for &(_, number) in bounds {
        let Some(region) = structure.region_of_value(function, number) else {
            continue;
        };
        if !aliases.indices().is_defined_outside(number, nest) {
            return None;
        }
        // What is not visible in front of the nest is not in it either.
        let before = function
            .def_op(number)
            .is_none_or(|(op, _)| structure.order(op) < structure.order(nest));
        if before && structure.is_within(home, region) && !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    Some(numbers)
}

/// Builds the test that none of these numbers is negative.
pub(super) fn build_test(b: &mut Builder<'_>, numbers: &[Value]) -> Value {
    let zero = b.i64(0);
    let mut all = b.function.int(Type::I1, 1);
    for &number in numbers {
        let holds = b.icmp(IntPredicate::Sge, number, zero);
        all = b.binary(Opcode::And, all, holds);
    }
    all
}
