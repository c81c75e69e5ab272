//! The accesses of a function, each with the pointers that it may go through.

use crate::alias::Aliases;
use crate::ranges::Stretch;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Function, IntPredicate, Op, OpView, Opcode, Value, returning_ops};

/// An access at an address that is an operand.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) op: Op,
    /// Which operand the address is.
    pub(super) operand: usize,
    pub(super) writes: bool,
    /// How many bytes.
    pub(super) size: Symbolic,
    /// The pointers that the address may be computed from.
    pub(super) ways: Vec<Way>,
}

/// An address as a pointer and a distance from it.
#[derive(Clone, PartialEq)]
pub(super) struct Way {
    pub(super) root: Value,
    /// In bytes.
    pub(super) offset: Symbolic,
    /// Counters that do not have their first value where the address is this one.
    pub(super) after_first: Vec<Value>,
}

impl Access {
    /// The bytes that are touched, for each pointer; none if one of them has no expression.
    pub(super) fn stretches(&self) -> Option<Vec<Stretch>> {
        let stretches = self.ways.iter().map(|way| {
            let stretch = Stretch::new(way.root, way.offset.clone(), &self.size)?;
            Some(stretch.after_first(&way.after_first))
        });
        stretches.collect()
    }
}

/// How many pointers an address may be selected from.
const MAX_WAYS: usize = 4;

/// Collects the loads, stores, copies and fills in code that returns, in the order of the text. Those are missing whose address is not computed by offsets and selections.
pub(super) fn collect_accesses(aliases: &Aliases<'_>) -> Vec<Access> {
    let function = aliases.function();
    let mut found = Vec::new();
    for op in returning_ops(function) {
        let (reads, writes) = (aliases.reads(op), aliases.writes(op));
        let touched: &[(&str, bool)] = match function.ops[op].opcode {
            Opcode::Load => &[("address", false)],
            Opcode::Store | Opcode::AtomicAdd => &[("address", true)],
            Opcode::Copy | Opcode::Move => &[("destination", true), ("source", false)],
            Opcode::Fill => &[("destination", true)],
            _ => continue,
        };
        for &(name, is_write) in touched {
            let footprint = if is_write { &writes } else { &reads };
            let names = function.ops[op].opcode.operand_names();
            let operand = names.iter().position(|&other| other == name);
            let size = footprint
                .accesses
                .first()
                .and_then(|access| access.size.clone());
            let (Some(operand), Some(size)) = (operand, size) else {
                continue;
            };
            let address = function.ops[op].operands[operand];
            let mut ways = Vec::new();
            if find_ways(
                aliases,
                address,
                &Symbolic::constant(0),
                &mut Vec::new(),
                &mut ways,
            )
            .is_some()
            {
                found.push(Access {
                    op,
                    operand,
                    writes: is_write,
                    size,
                    ways,
                });
            }
        }
    }
    found
}

/// Adds the pointers that an address may be computed from; none if they are not all known.
fn find_ways(
    aliases: &Aliases<'_>,
    address: Value,
    behind: &Symbolic,
    after_first: &mut Vec<Value>,
    ways: &mut Vec<Way>,
) -> Option<()> {
    let function = aliases.function();
    let (mut origin, mut offset) = (address, behind.clone());
    while let Some(OpView::Offset { base, index, scale }) = function.definition(origin) {
        let bytes = aliases.indices().expression(index).scale(scale)?;
        offset = offset.add(&bytes)?;
        origin = base;
    }
    // What may wrap around is no distance.
    let is_large = |coefficient: i64| coefficient.unsigned_abs() > 1 << 32;
    if (offset.terms().iter()).any(|term| is_large(term.coefficient)) {
        return None;
    }
    match function.definition(origin) {
        Some(OpView::Select {
            condition,
            then,
            otherwise,
        }) => {
            let not_first = after_first_if_not(aliases, condition);
            for (side, is_then) in [(then, true), (otherwise, false)] {
                let excluded = not_first.filter(|&(_, equal)| equal != is_then);
                after_first.extend(excluded.map(|(counter, _)| counter));
                find_ways(aliases, side, &offset, after_first, ways)?;
                if excluded.is_some() {
                    after_first.pop();
                }
            }
        }
        Some(OpView::Exclusive { .. }) => return None,
        _ => ways.push(Way {
            root: origin,
            offset,
            after_first: after_first.clone(),
        }),
    }
    (ways.len() <= MAX_WAYS).then_some(())
}

/// For a condition that asks whether a counter has its first value: the counter, and whether the condition holds then.
fn after_first_if_not(aliases: &Aliases<'_>, condition: Value) -> Option<(Value, bool)> {
    let (function, indices) = (aliases.function(), aliases.indices());
    let (predicate, a, b) = comparison(function, condition)?;
    let equal = match predicate {
        IntPredicate::Eq => true,
        IntPredicate::Ne => false,
        _ => return None,
    };
    let counter = indices.expression(a).is_value()?;
    let counted = indices.counted_by(counter)?;
    (counted.from == indices.expression(b)).then_some((counter, equal))
}

fn comparison(function: &Function, condition: Value) -> Option<(IntPredicate, Value, Value)> {
    match function.definition(condition)? {
        OpView::Icmp(predicate, a, b) => Some((predicate, a, b)),
        _ => None,
    }
}
