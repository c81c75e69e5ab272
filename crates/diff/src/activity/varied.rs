//! The forward half of activity: what depends on active inputs, through values, memory and calls.

use super::{Access, Analysis, behind, reachable_from};
use crate::objects::{Class, Source};
use crate::rules::{self, Rule};
use crate::unions::WORD;
use ferrozyme_ir::{GlobalId, MemoryEffect, Op, Opcode, Value};
use ferrozyme_opt::flows;
use rustc_hash::FxHashSet;

impl Analysis<'_> {
    pub(super) fn mark_varied(&mut self, value: Value) {
        if self.carries(value) && self.varied.values.insert(value) {
            self.changed = true;
        }
    }

    pub(super) fn mark_varied_class(&mut self, class: Class) {
        if self.is_never_written(class) {
            if self.objects.is_written(class) {
                self.stored_to_constants.insert(class);
            }
            return;
        }
        if !self.varied.classes.insert(class) {
            return;
        }
        self.changed = true;
        if self.outside.contains(&class) {
            self.varied.classes.extend(&self.outside);
        }
        if self.constant.contains(&class) && !self.mixed.contains(&class) {
            self.varied.classes.extend(&self.constant);
        }
    }

    pub(super) fn mark_tainted(&mut self, value: Value) {
        if self.function.ty(value).is_int() && self.tainted.insert(value) {
            self.changed = true;
        }
    }

    /// What holds for `from` holds for `to`, which is the same value at another place.
    pub(super) fn pass_on(&mut self, from: Value, to: Value) {
        if self.varied.values.contains(from) {
            self.mark_varied(to);
        }
        if self.tainted.contains(from) {
            self.mark_tainted(to);
        }
    }

    pub(super) fn vary(&mut self, op: Op) {
        let function = self.function;
        let data = &function.ops[op];
        match data.opcode {
            Opcode::Load => {
                self.vary_moved(data.results[0], data.address());
                if let Some(class) = self.class(data.address())
                    && self.varied.classes.contains(&class)
                {
                    self.mark_varied(data.results[0]);
                }
            }
            Opcode::Store | Opcode::AtomicAdd => {
                let value = data.value();
                let Some(class) = self.class(data.address()) else {
                    return;
                };
                if self.varied.values.contains(value) {
                    self.mark_varied_class(class);
                }
                // An atomic sum gives what was there before.
                if let Some(&old) = data.results.first()
                    && self.varied.classes.contains(&class)
                {
                    self.mark_varied(old);
                }
            }
            Opcode::Copy | Opcode::Move => {
                let (to, from) = (self.class(data.destination()), self.class(data.source()));
                if let (Some(to), Some(from)) = (to, from)
                    && self.varied.classes.contains(&from)
                {
                    self.mark_varied_class(to);
                }
            }
            Opcode::Call | Opcode::CallIndirect => self.vary_call(op),
            Opcode::If | Opcode::Switch | Opcode::For | Opcode::Loop => {
                for (from, to) in flows(function, op) {
                    self.pass_on(from, to);
                }
            }
            opcode => match rules::rule(opcode) {
                Rule::Partials(_) | Rule::Linear(_) => {
                    if data
                        .operands
                        .iter()
                        .any(|&v| self.varied.values.contains(v))
                    {
                        for &result in &data.results {
                            self.mark_varied(result);
                        }
                    }
                    if data.operands.iter().any(|&v| self.tainted.contains(v)) {
                        for &result in &data.results {
                            self.mark_tainted(result);
                        }
                    }
                }
                Rule::Inactive(_) => {
                    let from_bits = data.operands.iter().any(|&operand| {
                        function.ty(operand).is_int()
                            && (self.tainted.contains(operand)
                                || self.varied.values.contains(operand)
                                    && !self.is_checked_in(op, operand))
                    });
                    if from_bits && !matches!(opcode, Opcode::Icmp) {
                        for &result in &data.results {
                            self.mark_tainted(result);
                        }
                    }
                }
                _ => {}
            },
        }
    }

    /// A float that is moved may be an address, which leads to what depends on active inputs.
    fn vary_moved(&mut self, float: Value, address: Value) {
        if !self.objects.is_moved(float) {
            return;
        }
        let Some((class, offset)) = self.objects.class_of(self.function, address) else {
            return;
        };
        for lane in 0..i64::from(self.function.ty(float).lanes()) {
            let offset = offset.saturating_add(lane * WORD);
            let pointee = self.objects.pointer_at(class, offset);
            let leads_to_varied = pointee.is_some_and(|place| {
                let mut reached = reachable_from(self.objects, place.class).into_iter();
                reached.any(|class| self.varied.classes.contains(&class))
            });
            if leads_to_varied {
                self.mark_varied_class(class);
            }
        }
    }

    /// Whether it is checked when the derivative runs that an operand of a calculation is no float. The result then is a number, or an address that was moved.
    pub(super) fn is_checked_in(&self, op: Op, operand: Value) -> bool {
        let (function, objects) = (self.function, self.objects);
        let is_number =
            |&result: &Value| function.ty(result).is_int() || objects.is_number(function, result);
        let is_union = objects.union_of_value(function, operand).is_some()
            || objects.is_part_of_union(function, operand);
        is_union && function.ops[op].results.iter().all(is_number)
    }

    pub(super) fn vary_call(&mut self, op: Op) {
        let data = &self.function.ops[op];
        let access = Access::of_call(self.module, self.function, op);
        if access.inactive {
            return;
        }
        if data.operands.iter().any(|&arg| self.tainted.contains(arg)) {
            for &result in &data.results {
                self.mark_tainted(result);
            }
        }
        if !self.is_given_varied(op, &access) && !self.calls_on_globals.contains(&op) {
            return;
        }
        for &result in &data.results {
            self.mark_varied(result);
            for class in self.reachable(result) {
                self.mark_varied_class(class);
            }
        }
        for (index, &arg) in data.operands.iter().enumerate() {
            for class in self.written_through(&access, op, index, arg) {
                self.mark_varied_class(class);
            }
        }
    }

    /// Whether an argument of a call, or memory that it may read through one, depends on active inputs.
    pub(super) fn is_given_varied(&self, op: Op, access: &Access) -> bool {
        let operands = self.function.ops[op].operands.iter().enumerate();
        operands.into_iter().any(|(index, &arg)| {
            self.varied.values.contains(arg)
                || (access.reads(index)
                    && self
                        .reachable(arg)
                        .iter()
                        .any(|class| self.varied.classes.contains(class)))
        })
    }

    /// Whether a call may reach floats in globals that carry derivatives, or put something with a derivative into one of which it is assumed that it holds constants.
    pub(super) fn is_call_on_globals(&self, op: Op) -> bool {
        let may_store = || {
            let access = Access::of_call(self.module, self.function, op);
            !access.inactive && access.memory.writes() && self.is_given_varied(op, &access)
        };
        self.calls_on_globals.contains(&op) || self.calls_on_assumed.contains(&op) && may_store()
    }

    /// The globals that are assumed to hold constants, and in which, or behind which, something is stored that depends on active inputs.
    pub(super) fn find_varied_statics(&self) -> FxHashSet<GlobalId> {
        let mut found = FxHashSet::default();
        for class in self.objects.classes() {
            let assumed = self
                .objects
                .sources(class)
                .filter_map(|source| match source {
                    Source::Global(global) if self.assumed.contains(&global) => Some(global),
                    _ => None,
                });
            let assumed: Vec<GlobalId> = assumed.collect();
            let varies = || {
                reachable_from(self.objects, class)
                    .into_iter()
                    .any(|class| {
                        self.varied.classes.contains(&class)
                            || self.stored_to_constants.contains(&class)
                    })
            };
            if !assumed.is_empty() && varies() {
                found.extend(assumed);
            }
        }
        found
    }

    /// The memory that a call may write through one of its arguments, and what it may leave behind there.
    ///
    /// `readonly` and `memory(args)` speak only of memory that was there before, and right behind the pointer: not of what pointers there lead to,
    /// nor of new memory that the callee makes, writes to, and leaves a pointer to.
    pub(super) fn written_through(
        &self,
        access: &Access,
        call: Op,
        index: usize,
        arg: Value,
    ) -> Vec<Class> {
        if !access.memory.writes() {
            return Vec::new();
        }
        let Some(direct) = self.class(arg) else {
            return Vec::new();
        };
        if access.memory != MemoryEffect::Args {
            return match access.writes(index) {
                true => self.reachable(arg),
                false => behind(self.objects, direct),
            };
        }
        if !access.writes(index) {
            return Vec::new();
        }
        let is_new = |&class: &Class| {
            let mut sources = self.objects.sources(class);
            sources.any(|source| source == Source::Call(call) || source == Source::External(call))
        };
        let left_behind = behind(self.objects, direct).into_iter().filter(is_new);
        std::iter::once(direct).chain(left_behind).collect()
    }
}
