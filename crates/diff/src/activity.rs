//! Activity analysis: which values and which memory carry derivatives.
//!
//! A value is *active* if it is a float (or an integer that merely transports one) that depends on an active input and
//! influences an active output. Memory is judged by class of objects ([`Objects`]): a class is active if active values
//! are stored there or come from there. A class is *shadowed* if derivative code needs a second memory beside it: because
//! it is active, because the caller gives its shadow, or because it holds pointers to shadowed memory.
//!
//! The analysis iterates to a fixpoint over one function; calls are judged by the signature and facts of the callee.
//! Active operations that cannot be differentiated are found here and reported as an error, since
//! later they would be a silent zero.

mod conclude;
mod globals;
mod problems;
mod varied;

use self::globals::{find_calls_on_globals, may_carry_derivatives};
use crate::error::Error;
use crate::objects::{Class, Objects, Source, ValueKind};
use crate::request::Activity;
use crate::rules::{self, Rule};
use crate::statics::Assumption;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Function, FunctionId, GlobalId, MemoryEffect, Module, Op, Opcode, Payload, Region, Value,
    returning_ops,
};
use ferrozyme_opt::flows;
use rustc_hash::FxHashSet;

/// The result of the analysis for one function.
pub struct Activities {
    active: EntitySet<Value>,
    /// Integers in union words: they would be active if they were parts of floats.
    parts: EntitySet<Value>,
    /// Arithmetic on union words, which must hold integers there.
    calculations: FxHashSet<Op>,
    active_classes: FxHashSet<Class>,
    shadowed: FxHashSet<Class>,
    /// Classes of which some memory may be constant, and is then its own shadow.
    constants: FxHashSet<Class>,
    /// Calls that may access floats in globals, regardless of their arguments.
    calls_on_globals: FxHashSet<Op>,
}

impl Activities {
    /// Whether a value carries a derivative.
    pub fn is_active(&self, value: Value) -> bool {
        self.active.contains(value)
    }

    /// Whether an integer from a union word would be active if it were part of a float.
    pub fn is_part(&self, value: Value) -> bool {
        self.parts.contains(value)
    }

    /// Whether an operation is arithmetic on union words, which must hold integers there.
    pub fn needs_numbers(&self, op: Op) -> bool {
        self.calculations.contains(&op)
    }

    /// Whether floats in this memory carry derivatives.
    pub fn is_active_class(&self, class: Class) -> bool {
        self.active_classes.contains(&class)
    }

    /// Whether some of the memory of this class may be constant, and its own shadow: see `shadows/constants.rs`.
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

    /// Whether a call may write or free shadowed memory behind an argument, so that the shadow must be updated too.
    ///
    /// `readonly` is a fact about the memory that the pointer addresses, not about what pointers in that memory lead to.
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

    /// Whether a call is replaced by a call of its callee's derivative.
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

/// The origin of a function's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Giver {
    /// A user's request: arguments may alias unless they are declared not to.
    User,
    /// A call in a function that was analysed already, and where active constant memory was reported.
    Call,
}

/// The input of the analysis besides the program.
pub(crate) struct Question<'a> {
    pub(crate) function: FunctionId,
    pub(crate) args: &'a [Activity],
    pub(crate) results: &'a [Activity],
    pub(crate) giver: Giver,
    /// For each argument: whether some memory reachable from it may be constant, according to the caller.
    pub(crate) constants: &'a [bool],
}

/// Analyses a function, and records globals for which the assumption of constant contents is wrong.
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
    /// It has no derivative.
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

/// A growing set of values and classes.
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
    /// Memory whose shadow the caller provides.
    given: FxHashSet<Class>,
    /// Memory of the caller without a shadow, all of which may alias.
    constant: Vec<Class>,
    /// Those of them that may also be memory with a shadow. Where an active value is stored, a comparison of addresses at run time decides.
    mixed: FxHashSet<Class>,
    /// Memory whose address unknown code returns, all of which may alias.
    outside: Vec<Class>,
    /// Calls that may reach floats in globals.
    calls_on_globals: FxHashSet<Op>,
    /// Calls that may access globals with assumed constant contents. Those with active arguments must be inspected.
    calls_on_assumed: FxHashSet<Op>,
    assumed: &'a FxHashSet<GlobalId>,
    /// Memory declared inactive to which a varied value is stored.
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
        // The contents of a global may depend on active values of other functions, and influence them.
        for class in self.objects.classes() {
            let is_active_global = |source| matches!(source, Source::Global(global) if may_carry_derivatives(self.module, global));
            if self.objects.sources(class).any(is_active_global) {
                for class in reachable_from(self.objects, class) {
                    self.varied.classes.insert(class);
                    self.useful.classes.insert(class);
                }
            }
        }
        // The caller needs a shadow of all memory reachable from a returned pointer.
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
                Activity::Duplicated => {
                    // An integer that may be an address may be a float as well.
                    if self.carries(arg) {
                        self.varied.values.insert(arg);
                    }
                    self.give_shadow(arg);
                }
            }
        }
    }

    /// The caller provides shadows of all memory reachable from a pointer.
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

    /// Memory reachable from arguments without a shadow that are not `noalias`.
    ///
    /// Two handles of one shared cell may be two arguments, or two fields of one, and lead to the same memory.
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

    /// Memory whose address unknown code returns. Two calls may return the same address, or one that was passed before. Results of functions that are declared inactive have no derivative, by that
    /// declaration.
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

    /// Whether memory of a class is reachable both from constant arguments and in another way.
    fn is_mixed(&self, class: Class, args: &[Activity]) -> bool {
        let mut sources = self.objects.sources(class);
        sources.any(|source| match source {
            Source::Param(index) => args.get(index as usize) != Some(&Activity::Const),
            Source::Loaded(_) => false,
            _ => true,
        })
    }

    /// Whether all memory of a class is constant or declared inactive, is not written here, or is `readonly` by all parameters that lead there.
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
        // A store to constant memory through another pointer traps only if the memory is read.
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
                    && let Some(class) = self.class(data.address())
                {
                    self.mark_useful_class(class);
                }
            }
            Opcode::Store | Opcode::AtomicAdd => {
                let (value, pointer) = (data.value(), data.address());
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
                let (to, from) = (self.class(data.destination()), self.class(data.source()));
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
                    // Nothing useful flows through an operation without derivative, but integers are followed so that
                    // floats composed of bits are found.
                    // Integers that are converted to floats, or are operands of float functions, are excluded.
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
            if !self.function.ty(arg).is_ptr() {
                self.mark_useful(arg);
            }
            // An integer may be an address.
            if access.reads(index) {
                for class in self.reachable(arg) {
                    self.mark_useful_class(class);
                }
            }
        }
    }
}

/// All classes reachable through pointers in a class: the class itself only if it is reachable so, as nodes of a tree are.
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

/// A class and all classes reachable from it.
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

/// All operations in the order of data flow: an operation with regions comes before their contents, for the values that
/// flow in, and again after them, for those that flow out. Otherwise each iteration of the fixpoint would propagate through one region only.
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
