//! Words that a program calculates with have to be numbers, though at other times there are floats in their place: see `crate::unions`. The program stops where one is a float with a tangent.
//!
//! A word is checked where it is calculated with. Of a part of one all of the word is looked at, where it is read: half of a tangent may be zero. Parts that are only moved are not checked, and
//! move their part of the tangent along.

use super::companions::Lanes;
use super::sweep::Sweep;
use crate::activity::flows;
use crate::objects::ValueKind;
use crate::request::Activity;
use crate::unions;
use ferrozyme_ir::{FunctionId, IntPredicate, Op, Opcode, Region, Value, returning_ops};
use rustc_hash::{FxHashMap, FxHashSet};

impl Sweep<'_, '_> {
    /// Ahead of an operation: stops the program where a word that it calculates with is a float with a tangent. What has no companions is none.
    pub(super) fn check_numbers(&mut self, region: Region, op: Op) {
        if !self.activities.needs_numbers(op) {
            return;
        }
        for word in self.function.ops[op].operands.clone() {
            self.check_number(region, op, word);
        }
    }

    /// Ahead of a call: words that the callee calculates with are numbers, and have no companions there.
    pub(super) fn check_number_arguments(
        &mut self,
        region: Region,
        op: Op,
        callee: FunctionId,
        activities: &mut [Activity],
    ) {
        let arguments = self.function.ops[op].operands.clone();
        let is_word = |&value: &Value| self.objects.union_of_value(&self.function, value).is_some();
        let words: Vec<bool> = arguments.iter().map(is_word).collect();
        if !words.contains(&true) {
            return;
        }
        let objects = self.session.objects.get(self.session.module, callee);
        for (index, &argument) in arguments.iter().enumerate() {
            let function = &self.session.module.functions[callee];
            let param = function.body.and_then(|_| function.arguments().get(index));
            let calculates = param
                .is_some_and(|&param| objects.kind_of_value(function, param) == ValueKind::Integer);
            if calculates && words[index] && activities[index] != Activity::Const {
                self.check_number(region, op, argument);
                activities[index] = Activity::Const;
            }
        }
    }

    fn check_number(&mut self, region: Region, op: Op, word: Value) {
        let is_union = self.objects.union_of_value(&self.function, word).is_some();
        let Some(lanes) = self.companions.get(word).filter(|_| is_union) else {
            return;
        };
        let lanes = Lanes::from_slice(lanes);
        self.session.may_stop = true;
        let mut b = self.builder(region, op);
        for tangent in lanes {
            unions::check_no_tangent(&mut b, word, tangent);
        }
    }

    /// Behind a load: stops the program where what was read is part of a float with a tangent, and is calculated with.
    pub(super) fn check_part(&mut self, region: Region, op: Op, shadows: &[Value]) {
        if !self.calculated_parts.contains(&op) {
            return;
        }
        let address = self.function.ops[op].operands[0];
        self.session.may_stop = true;
        self.session.looks_at_addresses = true;
        let may_be_constant = self.may_be_constant(address);
        let mut b = self.builder(region, op);
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
