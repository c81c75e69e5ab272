//! The result of the activity analysis: which values are active, and which memory has a shadow.

use super::{Activities, Analysis};
use crate::objects::Class;
use crate::request::Activity;
use crate::rules::{self, Rule};
use crate::search::Search;
use crate::shadowing::{find_shadowed, is_own_shadow, may_hold_floats};
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{Op, Opcode, Value, returning_ops};
use rustc_hash::FxHashSet;

impl Analysis<'_> {
    pub(super) fn conclude(&self) -> Activities {
        let mut active = EntitySet::new();
        let mut parts = EntitySet::new();
        for value in self.function.values.keys() {
            if self.varied.values.contains(value) && self.useful.values.contains(value) {
                match self.objects.is_part_of_union(self.function, value) {
                    true => parts.insert(value),
                    false => active.insert(value),
                };
            }
        }
        let mut active_classes = FxHashSet::default();
        for class in self.objects.classes() {
            let both = self.varied.classes.contains(&class) && self.useful.classes.contains(&class);
            if both && may_hold_floats(self.objects, class) {
                active_classes.insert(class);
            }
        }
        let shadowed = self.given.union(&active_classes).copied().collect();
        let function = self.function;
        let calculates = |op: &Op| {
            let data = &function.ops[*op];
            let is_checked = |&operand: &Value| {
                function.ty(operand).is_int()
                    && self.varied.values.contains(operand)
                    && self.is_checked_in(*op, operand)
            };
            let mut results = data.results.iter();
            data.opcode != Opcode::Icmp
                && matches!(rules::rule(data.opcode), Rule::Inactive(_))
                && results.any(|&result| self.useful.values.contains(result))
                && data.operands.iter().any(is_checked)
        };
        let calculations = returning_ops(function).into_iter().filter(calculates);
        let mut activities = Activities {
            active,
            parts,
            calculations: calculations.collect(),
            constants: FxHashSet::default(),
            active_classes,
            shadowed,
            calls_on_globals: self
                .calls_on_globals
                .union(&self.calls_on_assumed)
                .copied()
                .filter(|&op| self.is_call_on_globals(op))
                .collect(),
        };
        loop {
            let before = activities.shadowed.len();
            self.shadow_what_leads_there(&mut activities);
            self.shadow_what_unknown_code_gets(&mut activities);
            if activities.shadowed.len() == before {
                return activities;
            }
        }
    }

    /// Finds memory with derivatives of which some may lie behind arguments without a shadow. Which it is, only the run can tell.
    pub(super) fn find_constants(
        &self,
        activities: &mut Activities,
        args: &[Activity],
        constants: &[bool],
    ) {
        let arguments = args.iter().zip(self.function.arguments()).enumerate();
        for (index, (&activity, &arg)) in arguments {
            let is_constant = match activity {
                Activity::Const => self.lacks_shadow(activities, index, arg),
                _ => constants.get(index) == Some(&true),
            };
            if is_constant {
                activities.constants.extend(self.reachable(arg));
            }
        }
        let is_shadowed = |class: &Class| activities.shadowed.contains(class);
        activities.constants.retain(is_shadowed);
    }

    /// Whether an argument is constant and leads to memory that needs a shadow.
    pub(super) fn lacks_shadow(&self, activities: &Activities, index: usize, arg: Value) -> bool {
        // Text and the like behind an active structure stands for itself. An integer may be put where addresses are at other times.
        self.function.ty(arg).is_ptr()
            && !self.function.params[index].leads_to_constant_numbers()
            && self.class(arg).is_some_and(|class| {
                activities.shadowed.contains(&class)
                    && !is_own_shadow(self.module, self.objects, class)
            })
    }

    /// Callers and callees that get shadow pointers follow them, and must find shadows there.
    pub(super) fn shadow_what_others_expect(
        &self,
        activities: &mut Activities,
        args: &[Activity],
        results: &[Activity],
    ) {
        let mut calls_pointers = Search::default();
        loop {
            let before = activities.shadowed.len();
            let shadowed = find_shadowed(
                self.module,
                &mut calls_pointers,
                self.function,
                self.objects,
                activities,
                args,
                results,
            );
            for class in shadowed {
                activities.shadowed.insert(class);
            }
            // Who gets a pointer to a shadow may add derivatives to any float there.
            for &class in &activities.shadowed {
                if may_hold_floats(self.objects, class) {
                    activities.active_classes.insert(class);
                }
            }
            self.shadow_what_unknown_code_gets(activities);
            self.shadow_what_leads_there(activities);
            if activities.shadowed.len() == before {
                return;
            }
        }
    }

    /// Memory that holds pointers to shadowed memory is shadowed, so that there is a place for pointers to the shadow.
    pub(super) fn shadow_what_leads_there(&self, activities: &mut Activities) {
        for class in self.objects.classes() {
            let mut pointees = self.objects.pointees(class);
            if pointees.any(|to| activities.shadowed.contains(&to)) {
                activities.shadowed.insert(class);
            }
        }
    }

    /// A function behind a pointer is differentiated for all its arguments: they need shadows, and so does the pointer, whose
    /// shadow leads to the derivative.
    pub(super) fn shadow_what_unknown_code_gets(&self, activities: &mut Activities) {
        for op in returning_ops(self.function) {
            let data = &self.function.ops[op];
            if data.opcode != Opcode::CallIndirect
                || !activities.is_active_call(self.module, self.function, self.objects, op)
            {
                continue;
            }
            if let Some(class) = self.class(data.target()) {
                activities.shadowed.insert(class);
            }
            for &arg in data.arguments().iter().chain(&data.results) {
                for class in self.reachable(arg) {
                    activities.shadowed.insert(class);
                    if may_hold_floats(self.objects, class) {
                        activities.active_classes.insert(class);
                    }
                }
            }
        }
    }
}
