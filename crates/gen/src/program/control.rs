//! Statements in general, and branches.

use super::scope::SMALL;
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{Opcode, Payload, Region, Type, Value};

impl Writer<'_, '_> {
    /// Statements until the function has so many operations more, at least one.
    pub(crate) fn block(&mut self, share: usize) {
        let end = self.function.ops.len() + share;
        let limit = self.limit.min(end);
        loop {
            self.statement();
            if self.function.ops.len() >= limit {
                break;
            }
        }
    }

    pub(crate) fn statement(&mut self) {
        self.next_line();
        let profile = self.shared.profile;
        let nests = self.depth < profile.depth;
        let weights = [
            profile.scalars,
            profile.memory,
            profile.objects,
            if nests { profile.loops } else { 0 },
            if nests { profile.branches } else { 0 },
            if self.shared.helpers.is_empty() {
                0
            } else {
                profile.calls
            },
            profile.types,
        ];
        match self.random().weighted(weights.into_iter()).unwrap_or(0) {
            0 => self.new_float(),
            1 => self.memory_statement(),
            2 => self.object_statement(),
            3 => match self.random().below(20) {
                0..=12 => self.counted_loop(),
                13..=15 => self.data_loop(),
                16 | 17 => self.loop_with_exits(),
                _ => self.nest_statement(),
            },
            4 => match self.random().below(8) {
                0..=4 => self.branch(),
                5 | 6 => self.switch(),
                _ => self.checked(),
            },
            5 => self.call_statement(),
            _ if self.shared.inexact && self.random().percent(50) => self.single_precision(),
            _ => self.vector_operations(),
        }
    }

    /// How many operations a region inside may have.
    pub(crate) fn share(&mut self) -> usize {
        let rest = self.limit.saturating_sub(self.function.ops.len());
        (rest / 2).clamp(1, 4 + self.random().below(12))
    }

    fn branch(&mut self) {
        let condition = if self.random().percent(50) {
            self.note(Feature::DataIf);
            self.data_condition()
        } else {
            self.note(Feature::IntIf);
            self.int_condition()
        };
        let results = self.random().pick(&[0, 0, 1, 1, 2]);
        if results > 0 {
            self.note(Feature::IfResult);
        }
        let types = vec![Type::F64; results];
        let (op, then_region, else_region) = self.b().if_else(condition, &types);
        self.arm(then_region, results, false);
        let may_be_empty = results == 0 && self.random().percent(40);
        self.arm(else_region, results, may_be_empty);
        for value in self.function.ops[op].results.clone() {
            self.add_float(value, SMALL);
        }
    }

    /// One side of a branch.
    fn arm(&mut self, region: Region, results: usize, empty: bool) {
        let (outer, mark) = self.enter(region);
        if !empty {
            let share = self.share().min(8);
            self.block(share);
        }
        let values: Vec<Value> = (0..results).map(|_| self.small(2)).collect();
        self.release(mark);
        self.b().yields(&values);
        self.leave(outer);
    }

    fn switch(&mut self) {
        self.note(Feature::Switch);
        let arms = self.random().between(1, 3);
        let int = self.small_int();
        let results = self.random().pick(&[0, 1, 2]);
        if results > 0 {
            self.note(Feature::SwitchResult);
        }
        let mut cases: Vec<Box<[i128]>> = Vec::new();
        let mut number = i128::from(self.random().between(-1, 1));
        for _ in 0..arms {
            let count = self.random().pick(&[1, 1, 2]);
            cases.push((0..count).map(|at| number + at).collect());
            number += count;
        }
        let types = vec![Type::F64; results];
        let payload = Payload::Cases(cases.into());
        let op = self.b().op(Opcode::Switch, &[int.value], payload, &types);
        for _ in 0..=arms {
            let region = self.function.new_region(&[]);
            self.function.ops[op].regions.push(region);
            let empty = results == 0 && self.random().percent(20);
            self.arm(region, results, empty);
        }
        for value in self.function.ops[op].results.clone() {
            self.add_float(value, SMALL);
        }
    }
}
