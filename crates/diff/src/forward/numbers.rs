//! Checks that union words that are used in arithmetic are integers: see `crate::unions`. The program stops if one is a float with a tangent.
//!
//! A word is checked where it is calculated with. Of a part of one all of the word is looked at, where it is read: half of a tangent may be zero. Parts that are only moved are not checked, and
//! move their part of the tangent along.

use super::sweep::Tangents;
use crate::shadows::Sweep;
use crate::unions;
use ferrozyme_ir::{IntPredicate, Op, Opcode, Value, returning_ops};
use ferrozyme_opt::flows;
use rustc_hash::{FxHashMap, FxHashSet};

impl Sweep<'_, Tangents<'_, '_>> {
    /// Behind a load: stops the program where what was read is part of a float with a tangent, and is calculated with.
    pub(super) fn check_part(&mut self, op: Op, shadows: &[Value]) {
        if !self.mode.calculated_parts.contains(&op) {
            return;
        }
        let address = self.function.ops[op].address();
        self.may_stop = true;
        self.looks_at_addresses = true;
        let may_be_constant = self.may_be_constant(address);
        let mut b = self.builder(op);
        for &shadow in shadows {
            match may_be_constant {
                false => unions::check_part_of_number(&mut b, address, shadow),
                // What is constant has no tangent.
                true => {
                    let differs = b.icmp(IntPredicate::Ne, address, shadow);
                    unions::when(&mut b, differs, |b| {
                        unions::check_part_of_number(b, address, shadow);
                    });
                }
            }
        }
    }

    /// The loads of parts of words that are calculated with, wherever they were moved before.
    pub(super) fn find_calculated_parts(&self) -> FxHashSet<Op> {
        let function = &self.function;
        let is_part = |value: &Value| {
            self.objects.is_part_of_union(function, *value) && self.activities.is_part(*value)
        };
        let ops = returning_ops(function);
        let takes_numbers = |op: &&Op| {
            let opcode = function.ops[**op].opcode;
            // Who gets a part of a word by value takes it for a number.
            let hands_over = [Opcode::Call, Opcode::CallIndirect, Opcode::Return];
            hands_over.contains(&opcode) || self.activities.needs_numbers(**op)
        };
        let mut open: Vec<Value> = ops
            .iter()
            .filter(takes_numbers)
            .flat_map(|&op| function.ops[op].operands.iter().copied())
            .filter(is_part)
            .collect();
        let mut found = FxHashSet::default();
        if open.is_empty() {
            return found;
        }
        let mut sources: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for (from, to) in ops.iter().flat_map(|&op| flows(function, op)) {
            sources.entry(to).or_default().push(from);
        }
        let mut seen = FxHashSet::default();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            open.extend(sources.get(&value).into_iter().flatten());
            let Some((op, _)) = function.def_op(value) else {
                continue;
            };
            let data = &function.ops[op];
            match data.opcode {
                Opcode::Load => {
                    found.insert(op);
                }
                _ if data.regions.is_empty() => open.extend(&data.operands),
                _ => {}
            }
        }
        found
    }
}
