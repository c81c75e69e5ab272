//! Loops in reverse.

use super::{Complete, Mirror};
use crate::step::Step;
use crate::tape::{Bounds, count_elements};
use crate::usage::Usage;
use ferrozyme_ir::{Cursor, Flags, IntPredicate, Op, Opcode, Type, Value};
use ferrozyme_opt::{add_carried, build_iteration_number, build_trip_count};
use rustc_hash::FxHashMap;

impl Mirror<'_, '_> {
    /// Puts the reverse of an operation's regions into them, behind what they do.
    ///
    /// The adjoints that it takes, those of its results and of values from outside, are computed before it.
    pub(super) fn reverse_at_once(&mut self, op: Op) {
        let captures = self.captures.get(&op).cloned().unwrap_or_default();
        let outer = self.b.cursor;
        let data = &self.source.ops[op];
        let is_loop = matches!(data.opcode, Opcode::For | Opcode::Loop);
        let results: Vec<Option<Value>> = data.results.iter().map(|&v| self.adjoints[v]).collect();
        let before: Vec<Option<Value>> = captures.iter().map(|&v| self.adjoints[v]).collect();
        let types: Vec<Type> = captures.iter().map(|&v| self.adjoint_type(v)).collect();
        let mut inside = before.clone();
        let taken = results.iter().chain(&before).flatten().copied().collect();
        let complete = self.complete.last_mut();
        let complete = complete.expect("what is differentiated at once stands in such a region");
        complete.at_once.push((op, taken));
        if is_loop {
            for (adjoint, &ty) in inside.iter_mut().zip(&types) {
                let start = adjoint.unwrap_or_else(|| self.b.function.zero(ty));
                let (carried, _) = add_carried(self.b.function, op, start);
                *adjoint = Some(carried);
            }
        }
        let tracked = self.usages.tracked(op).to_vec();
        let mut before_used = Vec::new();
        if is_loop {
            for _ in &tracked {
                let unused = self.b.function.int(Type::I1, 0);
                let (carried, _) = add_carried(self.b.function, op, unused);
                before_used.push(carried);
            }
        }
        for &region in &data.regions {
            if self.source.ends_in_trap(region) {
                continue;
            }
            for (&capture, &adjoint) in captures.iter().zip(&inside) {
                self.adjoints[capture] = adjoint;
            }
            let end = Cursor::before_terminator(self.b.function, region).remove(self.b.function);
            self.b.go_to_end(region);
            self.begin_complete();
            // The adjoint of a sum is the same in all iterations.
            self.flow_back_through_end(region, &results);
            self.reverse_ops(region);
            let used = match is_loop {
                true => self.used_so_far(region, &tracked, &before_used),
                false => {
                    let values = tracked.iter();
                    values.map(|&v| self.used_inside(region, v)).collect()
                }
            };
            self.end_complete();
            for &capture in &captures {
                let adjoint = self.adjoint_or_zero(capture);
                self.b.function.ops[end].operands.push(adjoint);
            }
            self.b.function.ops[end].operands.extend(used);
            self.b.insert(end);
        }
        self.b.cursor = outer;
        let first = match is_loop {
            true => self.b.function.ops[op].results.len() - captures.len() - tracked.len(),
            false => self.b.function.ops[op].results.len(),
        };
        for (index, (&capture, &ty)) in captures.iter().zip(&types).enumerate() {
            let result = match is_loop {
                true => self.b.function.ops[op].results[first + index],
                false => self.b.function.add_result(op, ty),
            };
            self.adjoints[capture] = Some(result);
        }
        for (index, &value) in tracked.iter().enumerate() {
            let used = match is_loop {
                true => self.b.function.ops[op].results[first + captures.len() + index],
                false => self.b.function.add_result(op, Type::I1),
            };
            self.used.insert((op, value), used);
        }
        if is_loop {
            for (&initial, adjoint) in data.initial().iter().zip(results) {
                if let Some(adjoint) = adjoint {
                    self.accumulate(initial, adjoint);
                }
            }
        }
        self.release_after(op);
    }

    /// Notes that the reverse of a region begins here.
    pub(super) fn begin_complete(&mut self) {
        let here = self.b.function.regions[self.b.region()].ops.len();
        self.complete.push(Complete {
            mark: here,
            at_once: Vec::new(),
        });
    }

    /// Moves what operations take that are differentiated at once before them, when the reverse of their region has been built.
    pub(super) fn end_complete(&mut self) {
        let complete = self.complete.pop().expect("a complete region is reversed");
        if complete.at_once.is_empty() {
            return;
        }
        let region = self.b.region();
        let ops = self.b.function.take_ops(region);
        let (forward, built) = ops.split_at(complete.mark);
        let positions: FxHashMap<Op, usize> =
            built.iter().enumerate().map(|(at, &op)| (op, at)).collect();
        let mut moved = vec![false; built.len()];
        let mut before: FxHashMap<Op, Vec<usize>> = FxHashMap::default();
        // What several take goes before the first of them.
        for (op, taken) in complete.at_once.into_iter().rev() {
            let mut pending = taken;
            let mut needed = Vec::new();
            while let Some(value) = pending.pop() {
                let made = self.b.function.def_op(value);
                let Some(&position) = made.and_then(|(made, _)| positions.get(&made)) else {
                    continue;
                };
                if !std::mem::replace(&mut moved[position], true) {
                    needed.push(position);
                    pending.extend(&self.b.function.ops[built[position]].operands);
                }
            }
            needed.sort_unstable();
            before.insert(op, needed);
        }
        for &op in forward {
            for position in before.remove(&op).unwrap_or_default() {
                self.b.insert(built[position]);
            }
            self.b.insert(op);
        }
        for (&op, _) in built.iter().zip(&moved).filter(|(_, moved)| !**moved) {
            self.b.insert(op);
        }
    }

    /// For a loop of which the reverse sweep needs one iteration only, the last that replaced a value: the position of that value
    /// among the carried ones, and the number of the iteration.
    pub(super) fn only_iteration(&self, op: Op) -> Option<(usize, Value)> {
        let data = &self.source.ops[op];
        let body = data.regions[0];
        if data.opcode != Opcode::For || self.forward.tape.rows.contains_key(&op) {
            return None;
        }
        let mut found = None;
        for &inner in &self.source.regions[body].ops {
            match self.steps.get(&inner) {
                None | Some(Step::Rule | Step::Load { .. }) => {}
                Some(Step::Update { last, .. }) if found.is_none() => {
                    found = Some((self.source.result(inner), *last));
                }
                Some(_) => return None,
            }
        }
        let (updated, last) = found?;
        let end = &self.source.ops[self.source.terminator(body)].operands;
        let position = end.iter().position(|&value| value == updated)?;
        let others = data.results.iter().enumerate();
        let alone = others
            .filter(|(index, _)| *index != position)
            .all(|(_, &result)| !self.forward.activities.is_active(result));
        alone.then_some((position, last))
    }

    /// Reverses one iteration of a loop, if it took place.
    pub(super) fn reverse_iteration(&mut self, op: Op, position: usize, last: Value) {
        let data = &self.source.ops[op];
        let body = data.regions[0];
        let tracked = self.usages.tracked(op).to_vec();
        let unused = self.b.function.int(Type::I1, 0);
        let Some(adjoint) = self.adjoints[data.results[position]] else {
            for value in tracked {
                self.used.insert((op, value), unused);
            }
            return self.release_after(op);
        };
        let captures = self.captures.get(&op).cloned().unwrap_or_default();
        let before: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        let location = self.b.location;
        let last = self.lookup(last);
        let [from, _, step] = data.bounds().map(|bound| self.lookup(bound));
        let number = build_iteration_number(&mut self.b, last, from, step);
        let zero = self.b.i64(0);
        let took_place = self.b.icmp(IntPredicate::Sge, number, zero);
        let mut types: Vec<Type> = captures.iter().map(|&v| self.adjoint_type(v)).collect();
        types.push(self.b.ty(adjoint));
        types.extend(tracked.iter().map(|_| Type::I1));
        let (mirrored, then_region, else_region) = self.b.if_else(took_place, &types);
        let outer = self.b.go_to_end(then_region);
        self.numbers.insert(op, number);
        self.known.insert(self.source.regions[body].args[0], last);
        self.restore(body);
        let mut ends: Vec<Option<Value>> = vec![None; data.results.len()];
        ends[position] = Some(adjoint);
        self.flow_back_through_end(body, &ends);
        self.reverse_ops(body);
        let carried = self.source.regions[body].args[1 + position];
        let mut yields: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        yields.push(self.adjoint_or_zero(carried));
        for &value in &tracked {
            yields.push(self.used_inside(body, value));
        }
        self.b.location = location;
        self.b.yields(&yields);
        self.b.go_to_end(else_region);
        let mut passed = before;
        passed.push(adjoint);
        passed.extend(tracked.iter().map(|_| unused));
        self.b.yields(&passed);
        self.b.cursor = outer;
        let results = self.b.function.ops[mirrored].results.clone();
        for (&capture, &result) in captures.iter().zip(&results) {
            self.adjoints[capture] = Some(result);
        }
        self.accumulate(data.initial()[position], results[captures.len()]);
        for (&value, &used) in tracked.iter().zip(&results[captures.len() + 1..]) {
            self.used.insert((op, value), used);
        }
        self.release_after(op);
    }

    /// Releases what was kept for the reverse of a loop.
    pub(super) fn release_after(&mut self, op: Op) {
        if let Some(memory) = self.forward.tape.released_after.get(&op) {
            for &memory in memory {
                let memory = self.lookup(memory);
                self.b.free(memory);
            }
        }
    }

    pub(super) fn reverse_loop(&mut self, op: Op) {
        if let Some((position, last)) = self.only_iteration(op) {
            return self.reverse_iteration(op, position, last);
        }
        let data = &self.source.ops[op];
        let body = data.regions[0];
        let counted = data.opcode == Opcode::For;
        let captures = self.captures.get(&op).cloned().unwrap_or_default();
        // Carried values that are active; their adjoints are carried the other way.
        let carried: Vec<usize> = (0..data.results.len())
            .filter(|&index| {
                let arg = self.source.carried(op)[index];
                self.forward.activities.is_active(data.results[index])
                    || self.forward.activities.is_active(arg)
            })
            .collect();
        let (count, start_and_step) = if counted {
            let [from, to, step] = data.bounds().map(|bound| self.lookup(bound));
            (
                build_trip_count(&mut self.b, from, to, step),
                Some((from, step)),
            )
        } else {
            (self.lookup(self.forward.augmented.trips[&op].count), None)
        };
        let mut initial: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        for &index in &carried {
            let result = data.results[index];
            initial.push(self.adjoint_or_zero(result));
        }
        // Rows of different lengths: the reverse starts behind the last one.
        let rows = self.forward.tape.rows.get(&op).cloned().unwrap_or_default();
        for saving in &rows {
            let total = self.forward.tape.loops[saving].total;
            let total = total.expect("rows of different lengths have a total");
            initial.push(self.lookup(total));
        }
        // What every iteration uses is used if there is one.
        let (always, tracked): (Vec<Value>, Vec<Value>) = self
            .usages
            .tracked(op)
            .iter()
            .partition(|&&v| self.usages.inside(body, v) == Some(Usage::Always));
        let unused = self.b.function.int(Type::I1, 0);
        initial.extend(tracked.iter().map(|_| unused));
        let (zero, one, minus_one) = (self.b.i64(0), self.b.i64(1), self.b.i64(-1));
        if self.usages.asks_what_follows(op) {
            let last = self.b.binary(Opcode::Sub, count, one);
            self.last_numbers.insert(op, last);
        }
        // Where the order does not matter, the usual one is the better one.
        let (mirrored, region) =
            if rows.is_empty() && self.forward.plan.at_once.independent.contains(&op) {
                self.b.for_loop(zero, count, one, &initial)
            } else {
                let last = self.b.binary(Opcode::Sub, count, one);
                self.b.for_loop(last, minus_one, minus_one, &initial)
            };
        // Iterations that are meant for several threads are so in reverse.
        self.b.function.ops[mirrored].flags = data.flags.intersection(Flags::PARALLEL);
        let outer = self.b.go_to_end(region);
        let args = self.b.function.regions[region].args.clone();
        let number = args[0];
        self.numbers.insert(op, number);
        if let Some((from, step)) = start_and_step {
            let counter = self.source.regions[body].args[0];
            let here = self.counter_of(number, from, step);
            self.known.insert(counter, here);
        } else {
            let trips = self.forward.augmented.trips[&op];
            self.known.insert(trips.number, number);
        }
        for (&capture, &arg) in captures.iter().zip(&args[1..]) {
            self.adjoints[capture] = Some(arg);
        }
        self.restore(body);
        let incoming = &args[1 + captures.len()..];
        let used_before = &incoming[carried.len() + rows.len()..];
        for (saving, &end) in rows.iter().zip(&incoming[carried.len()..]) {
            let start = self.start_of_row(*saving, end);
            self.row_starts.insert(*saving, start);
        }
        let mut ends: Vec<Option<Value>> = vec![None; data.results.len()];
        for (&index, &adjoint) in carried.iter().zip(incoming) {
            ends[index] = Some(adjoint);
        }
        self.flow_back_through_end(body, &ends);
        self.reverse_ops(body);
        let mut yields: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        for &index in &carried {
            let arg = self.source.carried(op)[index];
            yields.push(self.adjoint_or_zero(arg));
        }
        yields.extend(rows.iter().map(|saving| self.row_starts[saving]));
        yields.extend(self.used_so_far(body, &tracked, used_before));
        self.b.location = data.location;
        self.b.yields(&yields);
        self.b.cursor = outer;
        let results = self.b.function.ops[mirrored].results.clone();
        for (&capture, &result) in captures.iter().zip(&results) {
            self.adjoints[capture] = Some(result);
        }
        for (&index, &result) in carried.iter().zip(&results[captures.len()..]) {
            self.accumulate(data.initial()[index], result);
        }
        for (&value, &used) in tracked
            .iter()
            .zip(&results[results.len() - tracked.len()..])
        {
            self.used.insert((op, value), used);
        }
        for value in always {
            let used = self.b.icmp(IntPredicate::Sgt, count, zero);
            self.used.insert((op, value), used);
        }
        self.release_after(op);
    }

    /// Where a row starts that ends before an index.
    pub(super) fn start_of_row(&mut self, saving: Op, end: Value) -> Value {
        let nest = self.forward.tape.loops[&saving].nest.clone();
        let bounds: Vec<Bounds> = nest
            .iter()
            .map(|&op| {
                let values = self.source.ops[op].bounds().map(|bound| self.lookup(bound));
                Bounds::unconditional(values)
            })
            .collect();
        let (_, row) = count_elements(&mut self.b, &bounds);
        self.b.binary(Opcode::Sub, end, row)
    }

    /// The counter of a loop from the number of the iteration.
    pub(super) fn counter_of(&mut self, number: Value, from: Value, step: Value) -> Value {
        let ty = self.b.ty(from);
        let number = match ty {
            Type::I64 => number,
            _ if ty.scalar().bits() < 64 => self.b.cast(Opcode::TruncInt, number, ty),
            _ => self.b.cast(Opcode::Sext, number, ty),
        };
        let distance = match self.b.function.int_of(step) {
            Some(1) => number,
            _ => self.b.binary(Opcode::Mul, number, step),
        };
        match self.b.function.int_of(from) {
            Some(0) => distance,
            _ => self.b.binary(Opcode::Add, from, distance),
        }
    }
}
