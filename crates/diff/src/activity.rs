//! Which values and which memory carry derivatives.
//!
//! A value is *active* if it is a float (or an integer that merely transports one) that depends on an active input and
//! influences an active output. Memory is judged by class of objects ([`Objects`]): a class is active if active values
//! are stored there or come from there. A class is *shadowed* if derivative code needs a second memory beside it: because
//! it is active, because the caller gives its shadow, or because it holds pointers to shadowed memory.
//!
//! The analysis iterates to a fixpoint over one function; calls are judged by what the callee's signature and facts
//! say it may read and write. What is active but cannot be differentiated is found here and reported as an error, since
//! afterwards it would be a silent zero.

mod problems;

use crate::error::Error;
use crate::objects::{Class, Objects, Source, ValueKind};
use crate::request::Activity;
use crate::rules::{self, Rule};
use crate::search::Search;
use crate::shadowing::{find_shadowed, is_own_shadow, may_hold_floats};
use crate::statics::Assumption;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Constant, Function, FunctionId, GlobalId, MemoryEffect, Module, Op, OpData, Opcode, Payload,
    Region, Symbol, Value, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The result of the analysis for one function.
pub struct Activities {
    active: EntitySet<Value>,
    /// Integers that would carry a derivative if they were part of a float, which they are not.
    parts: EntitySet<Value>,
    /// Calculations with words that have to be numbers, though at other times there are floats.
    calculations: FxHashSet<Op>,
    active_classes: FxHashSet<Class>,
    shadowed: FxHashSet<Class>,
    /// Memory of which some may come without a shadow, and stands for its own.
    constants: FxHashSet<Class>,
    /// Calls that may reach floats in globals, whatever their arguments are.
    calls_on_globals: FxHashSet<Op>,
}

impl Activities {
    /// Whether a value carries a derivative.
    pub fn is_active(&self, value: Value) -> bool {
        self.active.contains(value)
    }

    /// Whether an integer would carry a derivative if it were part of a float with one. It lies where at other times a float or pointer is.
    pub fn is_part(&self, value: Value) -> bool {
        self.parts.contains(value)
    }

    /// Whether an operation calculates with words that have to be numbers, though at other times there are floats in their place.
    pub fn needs_numbers(&self, op: Op) -> bool {
        self.calculations.contains(&op)
    }

    /// Whether floats in this memory carry derivatives.
    pub fn is_active_class(&self, class: Class) -> bool {
        self.active_classes.contains(&class)
    }

    /// Whether some of the memory of this class may be constant, and its own shadow: see `constants.rs`.
    pub fn may_be_constant(&self, class: Class) -> bool {
        self.constants.contains(&class)
    }

    /// Whether memory of this class has a shadow.
    pub fn is_shadowed_class(&self, class: Class) -> bool {
        self.shadowed.contains(&class)
    }

    /// Whether a pointer comes with a pointer to shadow memory.
    ///
    /// An integer that holds an address counts as a pointer.
    pub fn has_shadow(&self, objects: &Objects, function: &Function, value: Value) -> bool {
        objects
            .class_of(function, value)
            .is_some_and(|(class, _)| self.shadowed.contains(&class))
    }

    /// Whether floats behind a pointer carry derivatives.
    pub fn points_to_active(&self, objects: &Objects, function: &Function, value: Value) -> bool {
        objects
            .class_of(function, value)
            .is_some_and(|(class, _)| self.active_classes.contains(&class))
    }

    /// Whether a call may write or release shadowed memory that an argument leads to, so that its shadow has to follow.
    ///
    /// `readonly` speaks only of the memory right behind the pointer, not of what pointers there lead to.
    fn may_change_shadow(
        &self,
        objects: &Objects,
        function: &Function,
        access: &Access,
        index: usize,
        arg: Value,
    ) -> bool {
        let Some((class, _)) = objects.class_of(function, arg) else {
            return false;
        };
        let leads_on = || {
            behind(objects, class)
                .iter()
                .any(|further| self.shadowed.contains(further))
        };
        self.shadowed.contains(&class)
            && access.memory.writes()
            && (access.writes(index) || leads_on())
    }

    /// Whether a call takes part in differentiation, and so needs its callee's derivative.
    pub fn is_active_call(
        &self,
        module: &Module,
        function: &Function,
        objects: &Objects,
        op: Op,
    ) -> bool {
        let data = &function.ops[op];
        let access = Access::of_call(module, function, op);
        let results = data
            .results
            .iter()
            .any(|&result| self.is_active(result) || self.has_shadow(objects, function, result));
        let args = data.operands.iter().enumerate().any(|(index, &arg)| {
            self.is_active(arg) || self.may_change_shadow(objects, function, &access, index, arg)
        });
        !access.inactive && (results || args || self.calls_on_globals.contains(&op))
    }
}

/// Who gives a function its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Giver {
    /// Who asked for the derivative: arguments may lead to the same memory unless they promise otherwise.
    User,
    /// A call in a function that was analysed. Constant memory that takes part in derivatives was found there.
    Call,
}

/// What the activity of a function depends on, beside the program.
pub(crate) struct Question<'a> {
    pub(crate) function: FunctionId,
    pub(crate) args: &'a [Activity],
    pub(crate) results: &'a [Activity],
    pub(crate) giver: Giver,
    /// For each argument: whether some of the memory that it leads to may be constant, as the caller knows.
    pub(crate) constants: &'a [bool],
}

/// Analyses a function, and takes note of globals that are assumed to hold constants and do not.
///
/// # Errors
/// If something active cannot be differentiated.
pub(crate) fn analyse_activity(
    module: &Module,
    objects: &Objects,
    question: &Question<'_>,
    assumption: &mut Assumption,
) -> Result<Activities, Error> {
    let &Question {
        function,
        args,
        results,
        giver,
        constants,
    } = question;
    let assumed = &assumption.constant.clone();
    let mut analysis = Analysis {
        module,
        function: &module.functions[function],
        objects,
        varied: Flow::default(),
        useful: Flow::default(),
        tainted: EntitySet::new(),
        given: FxHashSet::default(),
        constant: Vec::new(),
        outside: Vec::new(),
        mixed: FxHashSet::default(),
        calls_on_globals: find_calls_on_globals(module, &module.functions[function], &|global| {
            may_carry_derivatives(module, global)
        }),
        calls_on_assumed: match assumed.is_empty() {
            true => FxHashSet::default(),
            false => find_calls_on_globals(module, &module.functions[function], &|global| {
                assumed.contains(&global)
            }),
        },
        assumed,
        stored_to_constants: FxHashSet::default(),
        changed: false,
    };
    analysis.outside = analysis.find_outside(args);
    analysis.seed(args, results);
    if giver == Giver::User {
        analysis.constant = analysis.find_constant_memory(args);
        let constant = analysis.constant.iter().copied();
        let mixed = constant.filter(|&class| analysis.is_mixed(class, args));
        analysis.mixed = mixed.collect();
    }
    let ops = returning_ops(analysis.function);
    let order = order_of_flow(analysis.function);
    analysis.repeat(|analysis| {
        for &op in &order {
            analysis.vary(op);
        }
    });
    analysis.seed_outputs(results);
    analysis.repeat(|analysis| {
        for &op in order.iter().rev() {
            analysis.use_backwards(op);
        }
    });
    assumption.refuted.extend(analysis.find_varied_statics());
    let mut activities = analysis.conclude();
    analysis.shadow_what_others_expect(&mut activities, args, results);
    analysis.find_constants(&mut activities, args, constants);
    analysis.report_problems(&ops, &activities, args, results)?;
    Ok(activities)
}

/// What a call may do to memory behind its pointer arguments.
struct Access {
    /// Nothing of it carries a derivative.
    inactive: bool,
    memory: MemoryEffect,
    readonly: Vec<bool>,
    writeonly: Vec<bool>,
}

impl Access {
    fn of_call(module: &Module, function: &Function, op: Op) -> Access {
        let data = &function.ops[op];
        match data.payload {
            Payload::Callee(callee) if data.opcode == Opcode::Call => {
                let callee = &module.functions[callee];
                Access {
                    inactive: callee.facts.inactive,
                    memory: callee.facts.memory,
                    readonly: callee.params.iter().map(|p| p.facts.readonly).collect(),
                    writeonly: callee.params.iter().map(|p| p.facts.writeonly).collect(),
                }
            }
            _ => Access {
                inactive: false,
                memory: MemoryEffect::Any,
                readonly: vec![false; data.operands.len()],
                writeonly: vec![false; data.operands.len()],
            },
        }
    }

    /// Whether memory behind an argument may be written.
    fn writes(&self, arg: usize) -> bool {
        self.memory.writes() && !self.readonly.get(arg).copied().unwrap_or(false)
    }

    /// Whether memory behind an argument may be read.
    fn reads(&self, arg: usize) -> bool {
        self.memory != MemoryEffect::None && !self.writeonly.get(arg).copied().unwrap_or(false)
    }
}

/// A set of values and of memory, growing.
#[derive(Default)]
struct Flow {
    values: EntitySet<Value>,
    classes: FxHashSet<Class>,
}

struct Analysis<'a> {
    module: &'a Module,
    function: &'a Function,
    objects: &'a Objects,
    /// Depends on active inputs.
    varied: Flow,
    /// Influences active outputs.
    useful: Flow,
    /// Integers computed bitwise from varied floats.
    tainted: EntitySet<Value>,
    /// Memory whose shadow the caller gives.
    given: FxHashSet<Class>,
    /// Memory from outside without a shadow, which may all be the same.
    constant: Vec<Class>,
    /// Those of them of which some may be other memory, which has a shadow. Where something with a derivative is put, the addresses tell at run time which it is.
    mixed: FxHashSet<Class>,
    /// Memory of which code that is not seen gives addresses, which may all be the same.
    outside: Vec<Class>,
    /// Calls that may reach floats in globals.
    calls_on_globals: FxHashSet<Op>,
    /// Calls that may reach globals that are assumed to hold constants. Those that are given something with a derivative must be looked into.
    calls_on_assumed: FxHashSet<Op>,
    assumed: &'a FxHashSet<GlobalId>,
    /// Memory declared to carry no derivatives in which something is stored that depends on active inputs.
    stored_to_constants: FxHashSet<Class>,
    changed: bool,
}

impl Analysis<'_> {
    fn repeat(&mut self, mut round: impl FnMut(&mut Self)) {
        loop {
            self.changed = false;
            round(self);
            if !self.changed {
                return;
            }
        }
    }

    /// All memory that can be reached from a pointer.
    fn reachable(&self, value: Value) -> Vec<Class> {
        match self.class(value) {
            Some(class) => reachable_from(self.objects, class),
            None => Vec::new(),
        }
    }

    fn class(&self, pointer: Value) -> Option<Class> {
        self.objects
            .class_of(self.function, pointer)
            .map(|(class, _)| class)
    }

    /// Whether a value can transport a float.
    fn carries(&self, value: Value) -> bool {
        let ty = self.function.ty(value);
        ty.is_float()
            || (ty.is_int()
                && matches!(
                    self.objects.kind_of_value(self.function, value),
                    ValueKind::CarriesFloat(_)
                        | ValueKind::Unknown
                        | ValueKind::Mixed
                        | ValueKind::Conflict(_)
                ))
    }

    fn seed(&mut self, args: &[Activity], results: &[Activity]) {
        // What is in a global may come from an active value elsewhere, and go to one.
        for class in self.objects.classes() {
            let is_active_global = |source| matches!(source, Source::Global(global) if may_carry_derivatives(self.module, global));
            if self.objects.sources(class).any(is_active_global) {
                for class in reachable_from(self.objects, class) {
                    self.varied.classes.insert(class);
                    self.useful.classes.insert(class);
                }
            }
        }
        // The caller wants a shadow of what a returned pointer leads to, whatever is there.
        let terminator = self.function.terminator(self.function.body());
        let returned = &self.function.ops[terminator].operands;
        for (&operand, &activity) in returned.iter().zip(results) {
            if activity == Activity::Duplicated && self.function.ty(operand).is_ptr() {
                self.give_shadow(operand);
            }
        }
        for (&arg, &activity) in self.function.arguments().iter().zip(args) {
            match activity {
                Activity::Const => {}
                Activity::Active => {
                    self.varied.values.insert(arg);
                }
                Activity::Duplicated if self.function.ty(arg).is_float() => {
                    self.varied.values.insert(arg);
                }
                Activity::Duplicated => self.give_shadow(arg),
            }
        }
    }

    /// Everything that a pointer leads to has a shadow that the caller knows.
    fn give_shadow(&mut self, pointer: Value) {
        for class in self.reachable(pointer) {
            self.varied.classes.insert(class);
            self.useful.classes.insert(class);
            self.given.insert(class);
        }
    }

    fn seed_outputs(&mut self, results: &[Activity]) {
        let body = self.function.body();
        let terminator = self.function.terminator(body);
        let data = &self.function.ops[terminator];
        if data.opcode != Opcode::Return {
            return;
        }
        for (&operand, &activity) in data.operands.iter().zip(results) {
            match activity {
                Activity::Const => {}
                _ => {
                    self.useful.values.insert(operand);
                }
            }
        }
    }

    // ---- forwards

    fn mark_varied(&mut self, value: Value) {
        if self.carries(value) && self.varied.values.insert(value) {
            self.changed = true;
        }
    }

    fn mark_varied_class(&mut self, class: Class) {
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

    /// The memory that arguments without a shadow lead to, and of which nobody promises that there is no other way to it.
    ///
    /// Two handles of one shared cell are different arguments, or fields of one, and still the same memory.
    fn find_constant_memory(&self, args: &[Activity]) -> Vec<Class> {
        let mut found = Vec::new();
        let arguments = self.function.arguments().iter().zip(&self.function.params);
        for ((&arg, param), &activity) in arguments.zip(args) {
            if activity != Activity::Const || !self.function.ty(arg).is_ptr() {
                continue;
            }
            let alone = self.class(arg).filter(|_| param.facts.noalias);
            found.extend(self.reachable(arg).into_iter().filter(|&class| {
                let mut sources = self.objects.sources(class);
                let is_global = |source| matches!(source, Source::Global(_));
                Some(class) != alone && !self.given.contains(&class) && !sources.any(is_global)
            }));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Memory of which code that is not seen gives addresses. Two calls may give the same one, or one that it was given before. What functions give that are declared inactive has no derivative,
    /// as who declares it says.
    fn find_outside(&self, args: &[Activity]) -> Vec<Class> {
        let is_unknown = |source: Source| match source {
            Source::External(op) => match self.function.ops[op].payload {
                Payload::Callee(callee) => !self.module.functions[callee].facts.inactive,
                _ => true,
            },
            _ => false,
        };
        let objects = self.objects;
        let is_from_outside =
            |class: Class| objects.is_looked_into(class) && objects.sources(class).any(is_unknown);
        let is_any = objects.classes().any(is_from_outside);
        let is_of_constant = |source: Source| match source {
            Source::Param(index) => args.get(index as usize) == Some(&Activity::Const),
            _ => false,
        };
        let is_kept =
            |class: Class| objects.escapes(class) && !objects.sources(class).any(is_of_constant);
        objects
            .classes()
            .filter(|&class| is_from_outside(class) || is_any && is_kept(class))
            .collect()
    }

    /// Whether something else than constant arguments leads to memory of a class that they lead to.
    fn is_mixed(&self, class: Class, args: &[Activity]) -> bool {
        let mut sources = self.objects.sources(class);
        sources.any(|source| match source {
            Source::Param(index) => args.get(index as usize) != Some(&Activity::Const),
            Source::Loaded(_) => false,
            _ => true,
        })
    }

    /// Whether all memory of a class is constant or declared to carry no derivatives, or nobody here writes to it, or it is only read according to the parameters that lead there.
    fn is_never_written(&self, class: Class) -> bool {
        if !self.objects.is_written(class) {
            return true;
        }
        let mut sources = self.objects.sources(class).peekable();
        sources.peek().is_some()
            && sources.all(|source| match source {
                Source::Global(global) => {
                    let global = &self.module.globals[global];
                    global.constant || global.inactive
                }
                Source::Param(index) => self.function.params[index as usize].facts.readonly,
                Source::Function(_) => true,
                _ => false,
            })
    }

    fn mark_tainted(&mut self, value: Value) {
        if self.function.ty(value).is_int() && self.tainted.insert(value) {
            self.changed = true;
        }
    }

    /// What holds for `from` holds for `to`, which is the same value at another place.
    fn pass_on(&mut self, from: Value, to: Value) {
        if self.varied.values.contains(from) {
            self.mark_varied(to);
        }
        if self.tainted.contains(from) {
            self.mark_tainted(to);
        }
    }

    fn vary(&mut self, op: Op) {
        let function = self.function;
        let data = &function.ops[op];
        match data.opcode {
            Opcode::Load => {
                if let Some(class) = self.class(data.operands[0])
                    && self.varied.classes.contains(&class)
                {
                    self.mark_varied(data.results[0]);
                }
            }
            Opcode::Store | Opcode::AtomicAdd => {
                let (value, pointer) = stored(data.opcode, &data.operands);
                let Some(class) = self.class(pointer) else {
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
                let (to, from) = (self.class(data.operands[0]), self.class(data.operands[1]));
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

    /// Whether it is checked when the derivative runs that an operand of a calculation is no float. The result then is a number, or an address that was moved.
    fn is_checked_in(&self, op: Op, operand: Value) -> bool {
        let (function, objects) = (self.function, self.objects);
        let is_number =
            |&result: &Value| function.ty(result).is_int() || objects.is_number(function, result);
        let is_union = objects.union_of_value(function, operand).is_some()
            || objects.is_part_of_union(function, operand);
        is_union && function.ops[op].results.iter().all(is_number)
    }

    fn vary_call(&mut self, op: Op) {
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
    fn is_given_varied(&self, op: Op, access: &Access) -> bool {
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
    fn is_call_on_globals(&self, op: Op) -> bool {
        let may_store = || {
            let access = Access::of_call(self.module, self.function, op);
            !access.inactive && access.memory.writes() && self.is_given_varied(op, &access)
        };
        self.calls_on_globals.contains(&op) || self.calls_on_assumed.contains(&op) && may_store()
    }

    /// The globals that are assumed to hold constants, and in which, or behind which, something is stored that depends on active inputs.
    fn find_varied_statics(&self) -> FxHashSet<GlobalId> {
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
    fn written_through(&self, access: &Access, call: Op, index: usize, arg: Value) -> Vec<Class> {
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

    // ---- backwards

    fn mark_useful(&mut self, value: Value) {
        if !self.function.is_constant(value) && self.useful.values.insert(value) {
            self.changed = true;
        }
    }

    fn mark_useful_class(&mut self, class: Class) {
        if !self.useful.classes.insert(class) {
            return;
        }
        self.changed = true;
        if self.outside.contains(&class) {
            self.useful.classes.extend(&self.outside);
        }
        // What is put into constant memory by another way stops the program only where somebody looks.
        if self.constant.contains(&class) {
            self.useful.classes.extend(&self.mixed);
        }
    }

    fn use_backwards(&mut self, op: Op) {
        let function = self.function;
        let data = &function.ops[op];
        match data.opcode {
            Opcode::Load => {
                if self.useful.values.contains(data.results[0])
                    && self.carries(data.results[0])
                    && let Some(class) = self.class(data.operands[0])
                {
                    self.mark_useful_class(class);
                }
            }
            Opcode::Store | Opcode::AtomicAdd => {
                let (value, pointer) = stored(data.opcode, &data.operands);
                let old = data.results.first();
                if old.is_some_and(|&old| self.useful.values.contains(old) && self.carries(old))
                    && let Some(class) = self.class(pointer)
                {
                    self.mark_useful_class(class);
                }
                if let Some(class) = self.class(pointer)
                    && self.useful.classes.contains(&class)
                    && !self.function.ty(value).is_ptr()
                {
                    self.mark_useful(value);
                }
            }
            Opcode::Copy | Opcode::Move => {
                let (to, from) = (self.class(data.operands[0]), self.class(data.operands[1]));
                if let (Some(to), Some(from)) = (to, from)
                    && self.useful.classes.contains(&to)
                {
                    self.mark_useful_class(from);
                }
            }
            Opcode::Call | Opcode::CallIndirect => self.use_call(op),
            Opcode::If | Opcode::Switch | Opcode::For | Opcode::Loop => {
                for (from, to) in flows(function, op) {
                    if self.useful.values.contains(to) {
                        self.mark_useful(from);
                    }
                }
            }
            opcode => {
                if data.results.iter().any(|&v| self.useful.values.contains(v)) {
                    // Through an operation without derivative nothing useful flows, but integers are followed so that
                    // floats put together from bits are found.
                    // A number that becomes a float, or that a function of floats takes, is none of those.
                    let inactive = matches!(rules::rule(opcode), Rule::Inactive(_));
                    let makes_float = data.results.iter().all(|&v| function.ty(v).is_float());
                    let moves_bits = matches!(rules::rule(opcode), Rule::Linear(_));
                    for &operand in &data.operands {
                        let passes = match function.ty(operand).is_float() {
                            true => !inactive,
                            false => !makes_float || moves_bits,
                        };
                        if passes {
                            self.mark_useful(operand);
                        }
                    }
                }
            }
        }
    }

    fn use_call(&mut self, op: Op) {
        let data = &self.function.ops[op];
        let access = Access::of_call(self.module, self.function, op);
        if access.inactive {
            return;
        }
        let useful = data.results.iter().any(|&result| {
            self.useful.values.contains(result)
                || self
                    .reachable(result)
                    .iter()
                    .any(|class| self.useful.classes.contains(class))
        }) || data.operands.iter().enumerate().any(|(index, &arg)| {
            self.written_through(&access, op, index, arg)
                .iter()
                .any(|class| self.useful.classes.contains(class))
        });
        if !useful && !self.is_call_on_globals(op) {
            return;
        }
        for (index, &arg) in data.operands.iter().enumerate() {
            if self.function.ty(arg).is_ptr() {
                if access.reads(index) {
                    for class in self.reachable(arg) {
                        self.mark_useful_class(class);
                    }
                }
            } else {
                self.mark_useful(arg);
            }
        }
    }

    // ---- conclusions

    fn conclude(&self) -> Activities {
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
    fn find_constants(&self, activities: &mut Activities, args: &[Activity], constants: &[bool]) {
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
    fn lacks_shadow(&self, activities: &Activities, index: usize, arg: Value) -> bool {
        // Text and the like behind an active structure stands for itself. An integer may be put where addresses are at other times.
        self.function.ty(arg).is_ptr()
            && !self.function.params[index].leads_to_constant_numbers()
            && self.class(arg).is_some_and(|class| {
                activities.shadowed.contains(&class)
                    && !is_own_shadow(self.module, self.objects, class)
            })
    }

    /// Callers and callees that get shadow pointers follow them, and must find shadows there.
    fn shadow_what_others_expect(
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
    fn shadow_what_leads_there(&self, activities: &mut Activities) {
        for class in self.objects.classes() {
            let mut pointees = self.objects.pointees(class);
            if pointees.any(|to| activities.shadowed.contains(&to)) {
                activities.shadowed.insert(class);
            }
        }
    }

    /// A function behind a pointer is differentiated for all its arguments: they need shadows, and so does the pointer, whose
    /// shadow leads to the derivative.
    fn shadow_what_unknown_code_gets(&self, activities: &mut Activities) {
        for op in returning_ops(self.function) {
            let data = &self.function.ops[op];
            if data.opcode != Opcode::CallIndirect
                || !activities.is_active_call(self.module, self.function, self.objects, op)
            {
                continue;
            }
            if let Some(class) = self.class(data.operands[0]) {
                activities.shadowed.insert(class);
            }
            for &arg in data.operands[1..].iter().chain(&data.results) {
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

/// Whether values with derivatives may be kept in a global, or behind pointers there.
fn may_carry_derivatives(module: &Module, global: GlobalId) -> bool {
    let global = &module.globals[global];
    let may_hold_floats = global
        .layout
        .as_ref()
        .is_none_or(|layout| layout.fields.iter().any(|field| !field.scalar.is_int()));
    !global.constant && !global.inactive && may_hold_floats
}

/// The calls of a function whose callees may read or write floats in globals that are wanted, themselves or by what they call.
///
/// Code behind pointers may do so too, if there are such globals at all.
fn find_calls_on_globals(
    module: &Module,
    function: &Function,
    wanted: &dyn Fn(GlobalId) -> bool,
) -> FxHashSet<Op> {
    let leads_there = leading_to(module, wanted);
    if leads_there.is_empty() {
        return FxHashSet::default();
    }
    let names_global = |code: &Function, operands: &[Value]| {
        operands.iter().any(|&operand| {
            matches!(code.constant_of(operand), Some(Constant::Global(global))
                if leads_there.contains(global))
        })
    };
    let ops = returning_ops(function);
    let calls = |search: &mut Search, wanted: &dyn Fn(FunctionId, &OpData) -> bool| {
        let mut found = FxHashSet::default();
        for &op in &ops {
            if let (Opcode::Call, Payload::Callee(callee)) =
                (function.ops[op].opcode, &function.ops[op].payload)
                && !module.functions[*callee].facts.inactive
                && module.functions[*callee].facts.memory != MemoryEffect::None
                && search.reaches(module, *callee, wanted)
            {
                found.insert(op);
            }
        }
        found
    };
    let mut found = calls(&mut Search::default(), &|id, data| {
        names_global(&module.functions[id], &data.operands)
    });
    found.extend(calls(&mut Search::default(), &|_, data| {
        data.opcode == Opcode::CallIndirect
    }));
    let indirect = |op: &Op| function.ops[*op].opcode == Opcode::CallIndirect;
    found.extend(ops.into_iter().filter(indirect));
    found
}

/// The globals that are wanted, and those that hold addresses of such.
fn leading_to(module: &Module, wanted: &dyn Fn(GlobalId) -> bool) -> FxHashSet<GlobalId> {
    let mut found: FxHashSet<GlobalId> = module.globals.keys().filter(|&id| wanted(id)).collect();
    let mut pending: Vec<GlobalId> = found.iter().copied().collect();
    let mut named_by: FxHashMap<GlobalId, Vec<GlobalId>> = FxHashMap::default();
    for (id, global) in module.globals.iter() {
        for (_, symbol) in &global.relocations {
            if let Symbol::Global(other) = symbol {
                named_by.entry(*other).or_default().push(id);
            }
        }
    }
    while let Some(global) = pending.pop() {
        for &id in named_by.get(&global).into_iter().flatten() {
            if found.insert(id) {
                pending.push(id);
            }
        }
    }
    found
}

/// All that pointers in a class lead to: the class itself only if it is among that, as the nodes of a tree are.
fn behind(objects: &Objects, class: Class) -> Vec<Class> {
    let mut found = Vec::new();
    for to in objects.pointees(class) {
        for further in reachable_from(objects, to) {
            if !found.contains(&further) {
                found.push(further);
            }
        }
    }
    found
}

/// A class and all that pointers in it lead to.
pub(crate) fn reachable_from(objects: &Objects, class: Class) -> Vec<Class> {
    let mut found = vec![class];
    let mut next = 0;
    while let Some(&class) = found.get(next) {
        next += 1;
        for to in objects.pointees(class) {
            if !found.contains(&to) {
                found.push(to);
            }
        }
    }
    found
}

/// All operations in the order in which values flow through them: those with regions come before what they hold, for what
/// flows in, and again behind it, for what flows out. Without this, each round would get only one region further.
fn order_of_flow(function: &Function) -> Vec<Op> {
    fn visit(function: &Function, region: Region, order: &mut Vec<Op>) {
        if function.ends_in_trap(region) {
            return;
        }
        for &op in &function.regions[region].ops {
            order.push(op);
            for &inner in &function.ops[op].regions {
                visit(function, inner, order);
            }
            if !function.ops[op].regions.is_empty() {
                order.push(op);
            }
        }
    }
    let mut order = Vec::new();
    visit(function, function.body(), &mut order);
    order
}

/// Value and address of an operation that stores.
fn stored(opcode: Opcode, operands: &[Value]) -> (Value, Value) {
    match opcode {
        Opcode::AtomicAdd => (operands[1], operands[0]),
        _ => (operands[0], operands[1]),
    }
}

/// How values flow into and out of the regions of a structured operation: pairs of (from, to).
pub(crate) fn flows(function: &Function, op: Op) -> Vec<(Value, Value)> {
    let data = &function.ops[op];
    let mut flows = Vec::new();
    let mut ends = |region: Region, to: &[Value], skip: usize| {
        let terminator = function.terminator(region);
        if function.ops[terminator].opcode != Opcode::Trap {
            let operands = &function.ops[terminator].operands[skip..];
            flows.extend(operands.iter().copied().zip(to.iter().copied()));
        }
    };
    match data.opcode {
        Opcode::If | Opcode::Switch => {
            for &region in &data.regions {
                ends(region, &data.results, 0);
            }
        }
        Opcode::For | Opcode::Loop => {
            let region = data.regions[0];
            let (initial, first_arg, skip) = match data.opcode {
                Opcode::For => (3, 1, 0),
                _ => (0, 0, 1),
            };
            let args = &function.regions[region].args[first_arg..];
            ends(region, args, skip);
            ends(region, &data.results, skip);
            for (index, &arg) in args.iter().enumerate() {
                let start = data.operands[initial + index];
                flows.push((start, arg));
                if data.opcode == Opcode::For {
                    // The loop may not run at all.
                    flows.push((start, data.results[index]));
                }
            }
        }
        _ => {}
    }
    flows
}
