//! The forward sweep of reverse mode: the primal program with its shadows made explicit.
//!
//! What has shadows, and how they are made, `shadows.rs` says. Memory that the program releases while the reverse sweep still needs it is kept for later.
//!
//! ```text
//! %p = alloc 8 align 8          %p  = alloc 8 align 8
//! store f64 %x, %p align 8  →   %p' = alloc 8 align 8 zeroed
//! free %p                       store f64 %x, %p align 8        ; free moves to the end of the reverse sweep
//! ```
//!
//! The result is an ordinary function that verifies and runs. Values and operations of the primal keep their ids in it, so
//! that what the analyses found out still applies. Beside it stands, for each operation, the [`Step`] that the reverse
//! sweep takes for it, with the values it needs.

mod accesses;
mod calls;
mod copies;
mod given;
mod regions;
mod releases;
mod updates;

use crate::activity::Activities;
use crate::deferral::{self, ListKey, Manner};
use crate::error::Error;
use crate::memory::Cells;
use crate::objects::{Bytes, Class, Objects, ValueKind};
use crate::request::Activity;
use crate::rules::{self, Rule};
use crate::search::{Search, follows_rules, forget_accesses};
use crate::shadowing;
use crate::shadows::{Companions, Derivatives, Mode, Signature, Sweep};
use crate::step::Step;
use crate::unions;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Builder, Function, FunctionId, MemoryEffect, Op, Opcode, Param, Region, Scalar, Type, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The derivative of a callee, as a call needs it.
#[derive(Clone, Debug)]
pub(crate) struct CalleeDerivative {
    /// The forward sweep.
    pub augmented: FunctionId,
    /// The reverse sweep.
    pub reverse: FunctionId,
    /// For each parameter of the reverse sweep before the seeds, whether it is used.
    pub uses: Vec<bool>,
    /// The lists of memory to be released later that the forward sweep takes as arguments.
    pub lists: Vec<ListKey>,
}

/// What determines the derivative of a callee.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SplitKey {
    /// The callee, and what it is given.
    pub call: Signature,
    /// Whether the memory behind each argument may change between the sweeps.
    pub overwritten: Vec<bool>,
    /// Where lists of memory to be released later are.
    pub lists: Lists,
}

/// Finds or makes derivatives of callees.
pub(crate) trait Callees: Derivatives {
    /// The lists of memory to be released later that the forward sweep of a function uses, and the register of shadows where there is one.
    fn lists(&mut self, function: FunctionId, split: bool) -> Vec<ListKey>;

    /// The manners of releasing memory that entries of a list for anything name by their position.
    fn manners(&mut self) -> &[Manner];

    /// The number by which notes about released memory name a layout.
    fn number_of_layout(&mut self, cells: &Cells) -> usize;

    /// The derivative of a function.
    fn split(&mut self, key: SplitKey) -> Result<CalleeDerivative, Error>;
}

/// What the forward sweep of one function is to be.
pub(crate) struct Task<'a> {
    /// What was found out about the primal.
    pub objects: &'a Objects,
    /// What is active there.
    pub activities: &'a Activities,
    /// The primal, and what it is given.
    pub call: &'a Signature,
    /// For each call and argument: whether memory behind it may change after the call.
    pub overwritten: &'a FxHashMap<Op, Vec<bool>>,
    /// Whether the reverse sweep is another function, which the stack does not live to see.
    pub split: bool,
    /// Where lists of memory to be released later are.
    pub lists: Lists,
}

/// Where lists of memory to be released later are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Lists {
    /// On the stack of this function, which runs the reverse sweep too.
    Stack,
    /// On the heap, so that the reverse sweep finds them.
    Heap,
    /// The caller has them, and passes them behind all other arguments.
    Caller,
    /// The caller calls through a pointer, and passes one list for all.
    Shared,
}

impl Lists {
    /// Those of a function's lists that are passed to it.
    pub(crate) fn passed(self, lists: &[ListKey]) -> Vec<ListKey> {
        match self {
            Lists::Stack | Lists::Heap => Vec::new(),
            Lists::Caller => lists.to_vec(),
            Lists::Shared => {
                let register = ListKey::Register;
                let registers = lists.contains(&register).then_some(register);
                [ListKey::Shared].into_iter().chain(registers).collect()
            }
        }
    }
}

/// The forward sweep.
pub(crate) struct Augmented {
    /// The program. Its parameters are the primal's, each duplicated one followed by its shadow.
    pub function: Function,
    /// The shadow of each pointer that has one.
    pub shadows: Companions,
    /// What the reverse sweep does for each operation.
    pub steps: FxHashMap<Op, Step>,
    /// The counter of each general loop that is to be reversed.
    pub trips: FxHashMap<Op, Trips>,
    /// The lists of memory to be released after the reverse sweep.
    pub pending: Vec<(ListKey, Value)>,
    /// Loads and stores of shadows where pointers and floats share their place. The reverse sweep changes what is there.
    pub unsteady: EntitySet<Op>,
    /// Whether there is memory with derivatives in which floats share their place with something else.
    pub has_unions: bool,
    /// Whether some memory with derivatives may be constant, as only the run can tell.
    pub has_constants: bool,
}

impl Augmented {
    /// The register of shadows, if the derivative keeps one (see `given_memory.rs`).
    pub(crate) fn register(&self) -> Option<Value> {
        list_of(&self.pending, &ListKey::Register)
    }
}

/// A list of memory to be released later, or the register of shadows.
fn list_of(pending: &[(ListKey, Value)], key: &ListKey) -> Option<Value> {
    let mut pending = pending.iter();
    pending.find(|(other, _)| other == key).map(|&(_, v)| v)
}

/// How a general loop counts its iterations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trips {
    /// The number of the iteration, from 0 on, in the loop's region.
    pub number: Value,
    /// How many there were, a result of the loop.
    pub count: Value,
}

/// Builds the forward sweep of a function with a body.
///
/// # Errors
/// If something active cannot be differentiated.
pub(crate) fn augment(callees: &mut dyn Callees, task: &Task<'_>) -> Result<Augmented, Error> {
    let Task {
        objects,
        activities,
        call,
        ..
    } = *task;
    let primal = callees.module().functions[call.function].clone();
    let lists = callees.lists(call.function, task.split);
    let own_objects = callees.own_objects(call.function);
    let calculated = match primal.values.keys().any(|v| activities.is_part(v)) {
        true => shadowing::find_calculated(&primal, objects, activities),
        false => FxHashSet::default(),
    };
    let mut mode = Reversible {
        works: EntitySet::new(),
        regions: EntitySet::new(),
        releases: FxHashMap::default(),
        callees,
        task,
        lists,
        own_objects,
        steps: FxHashMap::default(),
        trips: FxHashMap::default(),
        pending: Vec::new(),
        unsteady: EntitySet::new(),
        given: FxHashSet::default(),
        calculated,
    };
    mode.find_work(&primal, primal.body());
    let mut sweep = Sweep::new(mode, primal, (objects, activities), call, 1);
    let has_unions = objects
        .classes()
        .any(|class| activities.is_active_class(class) && objects.has_unions(class));
    let has_constants = sweep.has_constants();
    sweep.find_given();
    sweep.forget_false_facts(has_unions, has_constants);
    sweep.add_parameters();
    sweep.run()?;
    let Sweep {
        function,
        companions,
        mode,
        ..
    } = sweep;
    Ok(Augmented {
        function,
        shadows: companions,
        steps: mode.steps,
        trips: mode.trips,
        pending: mode.pending,
        unsteady: mode.unsteady,
        has_unions,
        has_constants,
    })
}

/// A mode in which the function is made ready for its reverse sweep.
pub(crate) struct Reversible<'a> {
    callees: &'a mut dyn Callees,
    task: &'a Task<'a>,
    /// Operations with a part in the reverse sweep.
    works: EntitySet<Op>,
    /// Regions with such operations.
    regions: EntitySet<Region>,
    /// Allocations, and what releases them within their region; both ways.
    releases: FxHashMap<Op, Op>,
    /// The lists that memory is put on to be released later.
    lists: Vec<ListKey>,
    /// What the function alone tells of its memory, by which it is put on lists.
    own_objects: Arc<Objects>,
    /// As in [`Augmented`].
    steps: FxHashMap<Op, Step>,
    trips: FxHashMap<Op, Trips>,
    pending: Vec<(ListKey, Value)>,
    unsteady: EntitySet<Op>,
    /// Memory whose shadow comes from outside the derivative, with derivatives in it.
    given: FxHashSet<Class>,
    /// Values that somebody does more with than to move them: see [`shadowing::find_calculated`].
    calculated: FxHashSet<Value>,
}

impl Reversible<'_> {
    /// Notes what has a part in the reverse sweep, and gives whether something of the region has.
    fn find_work(&mut self, function: &Function, region: Region) -> bool {
        if function.ends_in_trap(region) {
            return false;
        }
        let Task {
            objects,
            activities,
            ..
        } = *self.task;
        let ops = &function.regions[region].ops;
        self.releases
            .extend(deferral::paired_releases(function, ops));
        for &op in ops {
            let data = &function.ops[op];
            let mut work = match data.opcode {
                Opcode::Store => {
                    let (value, address) = (data.value(), data.address());
                    let bytes = function.ty(value).bytes();
                    activities.points_to_active(objects, function, address)
                        && (!function.ty(value).is_ptr()
                            || objects.union_at(function, address, bytes).is_some())
                }
                Opcode::AtomicAdd => activities.points_to_active(objects, function, data.address()),
                Opcode::Copy | Opcode::Move | Opcode::Fill => {
                    activities.points_to_active(objects, function, data.destination())
                }
                Opcode::Call | Opcode::CallIndirect => {
                    activities.is_active_call(self.callees.module(), function, objects, op)
                }
                _ => data
                    .results
                    .iter()
                    .any(|&result| activities.is_active(result)),
            };
            for &inner in &data.regions {
                work |= self.find_work(function, inner);
            }
            if work {
                self.works.insert(op);
                self.regions.insert(region);
            }
        }
        self.regions.contains(region)
    }
}

impl Mode for Reversible<'_> {
    const TANGENTS: bool = false;

    fn session(&self) -> &dyn Derivatives {
        self.callees
    }

    fn session_mut(&mut self) -> &mut dyn Derivatives {
        self.callees
    }

    /// Numbers are their own shadows, also where floats are at other times. What is a float for certain has the shadow of one.
    fn companion_of_number(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        number: Value,
        _: &[Bytes],
    ) -> Result<Value, Error> {
        if sweep.is_union(number) {
            return Err(sweep.lost_shadow(op));
        }
        match sweep.objects.kind_of_value(&sweep.function, number) {
            ValueKind::CarriesFloat(Scalar::F64) => {
                Ok(unions::shape_of_float(&mut sweep.builder(op), number))
            }
            _ => Ok(number),
        }
    }

    fn check_number(b: &mut Builder<'_>, word: Value, companion: Value) {
        unions::check_no_float(b, word, companion);
    }

    fn enter(sweep: &mut Sweep<'_, Self>) {
        if sweep.region == sweep.function.body() {
            sweep.make_lists();
        }
    }

    fn moved(sweep: &mut Sweep<'_, Self>, op: Op) {
        let result = sweep.function.result(op);
        if sweep.mode.works.contains(op) && sweep.is_union(result) {
            sweep.add_rule_step(op);
        }
    }

    fn leave(sweep: &mut Sweep<'_, Self>, op: Op) {
        sweep.note_regions(op);
    }

    fn end(sweep: &mut Sweep<'_, Self>, terminator: Op) -> Result<(), Error> {
        sweep.check_parts(terminator);
        // The caller gets a shadow of each pointer that is returned, also of the address of a global or a function, which no operation makes.
        let returned = sweep.function.ops[terminator].operands.clone();
        for (&value, &activity) in returned.iter().zip(sweep.results) {
            if activity != Activity::Duplicated {
                continue;
            }
            // The caller takes it for an address, at times; here it is a float.
            if sweep.function.ty(value) == Type::I64 && !sweep.has_shadow(value) {
                sweep.may_stop = true;
                unions::check_no_address(&mut sweep.builder(terminator), value);
            }
            sweep.shadow(terminator, value)?;
        }
        Ok(())
    }

    fn visit(sweep: &mut Sweep<'_, Self>, op: Op) -> Result<(), Error> {
        match sweep.function.ops[op].opcode {
            Opcode::Load => sweep.visit_load(op)?,
            Opcode::Store => sweep.visit_store(op)?,
            Opcode::AtomicAdd => sweep.visit_atomic_add(op)?,
            Opcode::Stack | Opcode::Alloc => sweep.visit_allocation(op),
            Opcode::Free => sweep.visit_free(op),
            Opcode::Copy | Opcode::Move => sweep.visit_copy(op)?,
            Opcode::Fill => sweep.visit_fill(op)?,
            _ => {
                sweep.keep(op);
                if sweep.mode.works.contains(op) {
                    sweep.add_rule_step(op);
                }
            }
        }
        Ok(())
    }
}

impl Sweep<'_, Reversible<'_>> {
    /// The shadow of a value that has one.
    fn shadow_of(&self, value: Value) -> Option<Value> {
        self.companions.get(value).map(|lanes| lanes[0])
    }

    /// The shadow of a value; one without stands for itself, for nothing behind it is active.
    fn shadow(&mut self, op: Op, value: Value) -> Result<Value, Error> {
        Ok(self.companions_of(op, value, &[])?[0])
    }

    /// Forgets what is true of the primal but not of the forward sweep, which makes a tape that may hold addresses.
    fn forget_false_facts(&mut self, has_unions: bool, has_constants: bool) {
        let function = self.mode.task.call.function;
        let follows_rules = follows_rules(&mut Search::default(), self.module(), function);
        let is_own_shadow: Vec<bool> = self
            .arguments
            .iter()
            .map(|&arg| self.is_constant_argument(arg) && self.has_shadow(arg))
            .collect();
        let function = &mut self.function;
        function.facts.memory = MemoryEffect::Any;
        function.facts.willreturn = false;
        for (param, is_own_shadow) in function.params.iter_mut().zip(is_own_shadow) {
            param.facts.nocapture = false;
            // Where other pointers lead to floats, derivatives are added, though never to what is its own shadow; nobody can see that. Nor can anybody tell shadows
            // from constant memory that a function puts beside them.
            if follows_rules || is_own_shadow || has_constants {
                forget_accesses(param);
            }
            // Whether what was put somewhere are floats is seen from where it is now: see `unions.rs`.
            param.facts.writeonly &= !has_unions;
            // What the primal leaves behind may be of interest for the derivative.
            param.facts.discarded = false;
        }
    }

    /// Puts a shadow behind each duplicated parameter, and lists of memory to be released behind all.
    fn add_parameters(&mut self) {
        let lists = self.mode.task.lists;
        for (param, &activity) in std::mem::take(&mut self.function.params)
            .into_iter()
            .zip(self.args)
        {
            let shadow = (activity == Activity::Duplicated).then(|| shadow_param(&param, lists));
            self.function.params.push(param);
            self.function.params.extend(shadow);
        }
        self.add_companion_parameters(|activity| activity == Activity::Duplicated);
        let body = self.function.body();
        for key in lists.passed(&self.mode.lists) {
            self.function.params.push(Type::PTR.into());
            let list = self.function.add_argument(body, Type::PTR);
            self.function.set_name(list, "pending");
            self.mode.pending.push((key, list));
        }
    }

    /// Makes the lists that are this function's own.
    fn make_lists(&mut self) {
        let new_list = match self.mode.task.lists {
            Lists::Stack => deferral::new_list,
            Lists::Heap => deferral::new_heap_list,
            Lists::Caller | Lists::Shared => return,
        };
        for key in self.mode.lists.clone() {
            let mut b = Builder::new(&mut self.function, self.region);
            let list = new_list(&mut b, &key);
            b.function.set_name(list, "pending");
            self.mode.pending.push((key, list));
        }
    }

    /// Whoever gets a part of a word by value takes it for a number: its shadow does not come along. What has no derivative needs none.
    fn check_parts(&mut self, op: Op) {
        for value in self.function.ops[op].operands.clone() {
            if let Some(shadow) = self.shadow_of(value)
                && self.is_part(value)
            {
                unions::check_number(&mut self.builder(op), value, shadow);
            }
        }
    }

    fn add_rule_step(&mut self, op: Op) {
        let opcode = self.function.ops[op].opcode;
        if matches!(rules::rule(opcode), Rule::Partials(_) | Rule::Linear(_)) {
            self.mode.steps.insert(op, Step::Rule);
        }
    }
}

/// What is known of a shadow parameter, given its primal: it is written, whatever the primal is.
///
/// Memory that is only read may be passed twice; inside the program, its shadow is then written through both pointers.
fn shadow_param(primal: &Param, lists: Lists) -> Param {
    let mut param = primal.clone();
    let inside = matches!(lists, Lists::Caller | Lists::Shared);
    param.facts.noalias &= !(inside && param.facts.readonly);
    param.facts.readonly = false;
    param.facts.writeonly = false;
    param.facts.discarded = false;
    param
}
