//! Which memory has a shadow.
//!
//! The activity analysis says which memory needs a shadow in the derivative of one function. Other functions need more: a caller or callee that gets a
//! shadow pointer follows it wherever the primal's pointers lead, and must
//! find shadows there. Without them it would use the primal as its own shadow, and overwrite it with tangents.
//!
//! ```text
//! func @new() -> (ptr) {          ; nothing here is active, but where the result is duplicated, the memory needs a
//!   %p = alloc 8 align 8          ; shadow for the caller to put tangents in
//!   store f64 1.0, %p align 8
//!   return %p
//! }
//! ```
//!
//! Memory that holds only integers is its own shadow: the same is stored to both.

use crate::activity::{Activities, reachable_from};
use crate::objects::{Class, Kind, Objects, Source};
use crate::request::Activity;
use crate::search::Search;
use ferrozyme_ir::{Function, GlobalId, Module, Op, OpView, Opcode, Payload, Value, returning_ops};
use ferrozyme_opt::flows;
use rustc_hash::{FxHashMap, FxHashSet};

/// The memory of a function that has shadows: what its own derivative needs, and what others expect.
///
/// `calls_pointers` says which functions make indirect calls, directly or through callees.
pub(crate) fn find_shadowed(
    module: &Module,
    calls_pointers: &mut Search,
    function: &Function,
    objects: &Objects,
    activities: &Activities,
    args: &[Activity],
    results: &[Activity],
) -> FxHashSet<Class> {
    let mut shadowing = Shadowing {
        module,
        function,
        objects,
        activities,
        args,
        shadowed: objects
            .classes()
            .filter(|&class| activities.is_shadowed_class(class))
            .collect(),
        exposed: FxHashSet::default(),
    };
    let calls: Vec<Op> = returning_ops(function)
        .into_iter()
        .filter(|&op| matches!(function.ops[op].opcode, Opcode::Call | Opcode::CallIndirect))
        .collect();
    let end = &function.ops[function.terminator(function.body())];
    if end.opcode == Opcode::Return {
        for (&value, &activity) in end.operands.iter().zip(results) {
            if activity != Activity::Const {
                shadowing.expose_to_caller(value);
            }
        }
    }
    loop {
        let before = shadowing.shadowed.len();
        for &call in &calls {
            shadowing.visit_call(call, calls_pointers);
        }
        shadowing.follow_pointers_back();
        if shadowing.shadowed.len() == before {
            return shadowing.shadowed;
        }
    }
}

/// Whether a call is differentiated, given which memory has shadows.
pub(crate) fn is_active_call(
    module: &Module,
    function: &Function,
    objects: &Objects,
    activities: &Activities,
    shadowed: &FxHashSet<Class>,
    op: Op,
) -> bool {
    let data = &function.ops[op];
    let inactive = match data.payload {
        Payload::Callee(callee) => module.functions[callee].facts.inactive,
        _ => false,
    };
    let gives_shadow = data
        .results
        .iter()
        .any(|&result| has_shadow(function, objects, shadowed, result));
    activities.is_active_call(module, function, objects, op) || (!inactive && gives_shadow)
}

/// Whether a pointer, or an integer that holds one, leads to memory with a shadow.
pub(crate) fn has_shadow(
    function: &Function,
    objects: &Objects,
    shadowed: &FxHashSet<Class>,
    value: Value,
) -> bool {
    objects
        .class_of(function, value)
        .is_some_and(|(class, _)| shadowed.contains(&class))
}

/// Whether memory of a class may hold floats. Memory that is never accessed may hold anything.
pub(crate) fn may_hold_floats(objects: &Objects, class: Class) -> bool {
    let mut fields = objects.fields(class).peekable();
    objects.is_union(class)
        || fields.peek().is_none()
        || fields.any(|field| {
            matches!(
                field.kind,
                Kind::Float(_) | Kind::Unknown | Kind::Conflict(_)
            )
        })
}

/// Whether memory, and all that is reachable from it, can be its own shadow: this function does not read it as floats, write it, or call it.
/// Memory that is not accessed here may hold floats that other functions access later.
pub(crate) fn is_own_shadow(module: &Module, objects: &Objects, class: Class) -> bool {
    let no_float = |kind| matches!(kind, Kind::Integer | Kind::Pointer(_) | Kind::Padding);
    let is_constant =
        |source| matches!(source, Source::Global(global) if module.globals[global].constant);
    reachable_from(objects, class).into_iter().all(|class| {
        objects.fields(class).all(|field| no_float(field.kind))
            && (objects.fields(class).next().is_some() || objects.sources(class).all(is_constant))
            && !objects.is_written_here(class)
            && !objects.is_called(class)
            && objects
                .sources(class)
                .all(|source| !matches!(source, Source::Function(_)))
    })
}

/// Whether this function finds floats or pointers in memory, or in memory reachable from it: code that follows a shadow pointer then needs a shadow there.
pub(crate) fn leads_on(objects: &Objects, class: Class) -> bool {
    reachable_from(objects, class).into_iter().any(|class| {
        let mut fields = objects.fields(class);
        fields.any(|field| !matches!(field.kind, Kind::Integer | Kind::Padding))
    })
}

/// Whether a global can be its own shadow: no memory reachable from it is active, and this function does not write there. What other functions stored there since the program
/// started (a type object with functions, say) is then found in the global itself.
pub(crate) fn is_global_its_own_shadow(
    module: &Module,
    objects: &Objects,
    global: GlobalId,
    class: Class,
) -> bool {
    let data = &module.globals[global];
    let no_float = |kind| matches!(kind, Kind::Integer | Kind::Pointer(_) | Kind::Padding);
    data.inactive
        && !data.constant
        && reachable_from(objects, class).into_iter().all(|class| {
            objects.fields(class).all(|field| no_float(field.kind))
                && !objects.is_written_here(class)
        })
}

struct Shadowing<'a> {
    module: &'a Module,
    function: &'a Function,
    objects: &'a Objects,
    activities: &'a Activities,
    args: &'a [Activity],
    shadowed: FxHashSet<Class>,
    /// Memory that other functions access through shadow pointers.
    exposed: FxHashSet<Class>,
}

impl Shadowing<'_> {
    fn visit_call(&mut self, op: Op, calls_pointers: &mut Search) {
        let active = is_active_call(
            self.module,
            self.function,
            self.objects,
            self.activities,
            &self.shadowed,
            op,
        );
        if !active {
            return;
        }
        let data = &self.function.ops[op];
        // The target of an indirect call takes a shadow for each pointer, as rules do where the argument has one.
        let (pointers, all) = match data.opcode {
            Opcode::CallIndirect => (data.arguments(), true),
            _ => (&data.operands[..], false),
        };
        if let Payload::Callee(callee) = data.payload
            && calls_pointers.reaches(self.module, callee, |_, op| {
                op.opcode == Opcode::CallIndirect
            })
        {
            for &pointer in pointers {
                self.give_tables(pointer);
                self.expose_unless_constant(pointer);
            }
        }
        for &value in pointers {
            if all || has_shadow(self.function, self.objects, &self.shadowed, value) {
                self.expose(value);
                self.shadow_what_call_makes(op, value);
            }
        }
        // The callee may allocate a shadow of its result, which the caller must know in order to free it.
        for &value in &data.results {
            self.expose(value);
            if has_shadow(self.function, self.objects, &self.shadowed, value) {
                self.shadow_what_call_makes(op, value);
            }
        }
    }

    /// Memory that a call allocates and stores behind a pointer with a shadow has a shadow, regardless of its contents: to the callee all memory behind such
    /// pointers is its caller's, and the shadow that it allocates must be freed.
    fn shadow_what_call_makes(&mut self, call: Op, pointer: Value) {
        let Some((class, _)) = self.objects.class_of(self.function, pointer) else {
            return;
        };
        for class in reachable_from(self.objects, class) {
            if (self.objects.sources(class)).any(|source| source == Source::Call(call)) {
                self.shadowed.insert(class);
            }
        }
    }

    /// All memory reachable from a result gets a shadow. Memory allocated here may hold only integers so far; the caller may store
    /// floats there. Only memory of an argument without shadow that cannot hold floats is its own shadow.
    fn expose_to_caller(&mut self, pointer: Value) {
        let Some((class, _)) = self.objects.class_of(self.function, pointer) else {
            return;
        };
        for class in reachable_from(self.objects, class) {
            if !self.is_constant_argument(class) || may_hold_floats(self.objects, class) {
                self.shadowed.insert(class);
            }
        }
    }

    /// Functions that are known here get shadows, their tables of derivatives, where a callee may find and call them.
    fn give_tables(&mut self, pointer: Value) {
        let Some((class, _)) = self.objects.class_of(self.function, pointer) else {
            return;
        };
        for class in reachable_from(self.objects, class) {
            let is_function = |source| matches!(source, Source::Function(_));
            let mut sources = self.objects.sources(class).peekable();
            if sources.peek().is_some() && sources.all(is_function) {
                self.shadowed.insert(class);
            }
        }
    }

    /// A callee that calls unknown code may pass on any of its arguments, and then needs shadows of all memory reachable from them;
    /// memory of an argument without shadow has none.
    fn expose_unless_constant(&mut self, pointer: Value) {
        let Some((class, _)) = self.objects.class_of(self.function, pointer) else {
            return;
        };
        let reachable = reachable_from(self.objects, class);
        if !reachable
            .iter()
            .any(|&class| self.is_constant_argument(class))
        {
            self.expose(pointer);
        }
    }

    /// Whether memory comes from an argument without a shadow.
    fn is_constant_argument(&self, class: Class) -> bool {
        self.objects.sources(class).any(|source| {
            matches!(source, Source::Param(index) if self.args.get(index as usize) == Some(&Activity::Const))
        })
    }

    /// All memory reachable from an argument gets a shadow, unless it cannot hold floats.
    fn expose(&mut self, pointer: Value) {
        let Some((class, _)) = self.objects.class_of(self.function, pointer) else {
            return;
        };
        if self.exposed.contains(&class) {
            return;
        }
        for class in reachable_from(self.objects, class) {
            self.exposed.insert(class);
            if may_hold_floats(self.objects, class) {
                self.shadowed.insert(class);
            }
        }
    }

    /// Memory with pointers to shadowed memory has a shadow, which holds the shadow pointers.
    fn follow_pointers_back(&mut self) {
        loop {
            let before = self.shadowed.len();
            for class in self.objects.classes() {
                let mut pointees = self.objects.pointees(class);
                if pointees.any(|to| self.shadowed.contains(&to)) {
                    self.shadowed.insert(class);
                }
            }
            if self.shadowed.len() == before {
                return;
            }
        }
    }
}
/// Whether an operation only shifts or extends a part of a word to its position.
pub(crate) fn moves_parts(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Zext | Opcode::Lshr | Opcode::Shl | Opcode::Mul
    )
}

/// Whether an operand of an operation that takes words apart or puts them together is a word or part that was shifted or extended for it.
pub(crate) fn is_moved_part(function: &Function, op: Op, operand: Value) -> bool {
    let is_constant = |value| function.int_of(value).is_some();
    let is_extended = |value| {
        matches!(
            function.definition(value),
            Some(OpView::Cast(Opcode::Zext, _))
        )
    };
    match (function.ops[op].opcode, function.definition(operand)) {
        (Opcode::TruncInt, Some(OpView::Binary(Opcode::Lshr, _, by))) => is_constant(by),
        (Opcode::Add | Opcode::Or, Some(OpView::Cast(Opcode::Zext, _))) => true,
        (Opcode::Add | Opcode::Or, Some(OpView::Binary(Opcode::Mul | Opcode::Shl, part, by))) => {
            is_constant(by) && is_extended(part)
        }
        _ => false,
    }
}

/// The integers that are used otherwise than to be moved, compared or joined to words: parts of addresses among them would lose their shadows.
pub(crate) fn find_calculated(
    function: &Function,
    objects: &Objects,
    activities: &Activities,
) -> FxHashSet<Value> {
    let ops = returning_ops(function);
    let mut sources: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    let mut open = Vec::new();
    let has_shadow = |value: Value| {
        objects.is_part_of_union(function, value) || activities.has_shadow(objects, function, value)
    };
    let is_moved = |value: Value| {
        let source = function.def_op(value);
        source.is_some_and(|(source, _)| moves_parts(function.ops[source].opcode))
    };
    for &op in &ops {
        let data = &function.ops[op];
        let lost = |value: &Value| is_moved(*value) && !is_moved_part(function, op, *value);
        open.extend(data.operands.iter().copied().filter(lost));
        let moves = |result: &Value| {
            moves_parts(data.opcode) || follows_shadows(data.opcode) && has_shadow(*result)
        };
        match data.opcode {
            Opcode::Store => {
                let (value, address) = (data.value(), data.address());
                open.push(address);
                let bytes = function.ty(value).bytes();
                let place = objects.class_of(function, address);
                let is_union = place.is_some_and(|(class, offset)| {
                    activities.is_active_class(class)
                        && objects.kind_of_access(class, offset, bytes).is_union(bytes)
                });
                if !is_union {
                    open.push(value);
                }
            }
            // Calls and returns check what they hand on.
            Opcode::Icmp | Opcode::Call | Opcode::CallIndirect | Opcode::Return => {}
            Opcode::If | Opcode::Switch | Opcode::For | Opcode::Loop => {
                for (from, to) in flows(function, op) {
                    sources.entry(to).or_default().push(from);
                    if !has_shadow(to) {
                        open.push(to);
                    }
                }
            }
            Opcode::Yield | Opcode::Again => {}
            _ if data.results.first().is_some_and(moves) => {
                let result = data.results[0];
                sources.entry(result).or_default().extend(&data.operands);
            }
            _ => open.extend(&data.operands),
        }
    }
    let mut found = FxHashSet::default();
    while let Some(value) = open.pop() {
        if found.insert(value) {
            open.extend(sources.get(&value).into_iter().flatten());
        }
    }
    found
}

/// Whether an operation on shadows yields the shadow of its result.
fn follows_shadows(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Add
            | Opcode::Sub
            | Opcode::And
            | Opcode::Or
            | Opcode::TruncInt
            | Opcode::Select
            | Opcode::Bitcast
    )
}
