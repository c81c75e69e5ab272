//! The forward sweep of reverse mode: the primal program with its shadows made explicit.
//!
//! Every pointer into shadowed memory gets a companion that points to the same place in the shadow: parameters,
//! allocations, offsets, loaded pointers, results and carried values of regions. What the program stores besides floats
//! (pointers, integers) is stored to the shadow as well, so that a shadow structure has the shape of its primal.
//! Memory that the program releases while the reverse sweep still needs it is kept for later.
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
use crate::objects::{Class, Kind, Objects};
use crate::request::Activity;
use crate::rules::{self, Rule};
use crate::search::{Search, follows_rules, forget_accesses};
use crate::shadowing::{self, is_global_its_own_shadow, is_own_shadow, leads_on};
use crate::statics::{self, stop_without_shadow};
use crate::step::Step;
use crate::unions;
use ferrozyme_ir::entity::packed_option::PackedOption;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{
    Builder, Constant, Function, FunctionId, GlobalId, Layout, MemoryEffect, Module, Op, Opcode,
    Param, Region, Type, Value, ValueDef,
};
use ferrozyme_refusal::Refusal;
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
    /// The callee.
    pub function: FunctionId,
    /// What its arguments mean.
    pub args: Vec<Activity>,
    /// What its results mean.
    pub results: Vec<Activity>,
    /// Whether the memory behind each argument may change between the sweeps.
    pub overwritten: Vec<bool>,
    /// What is known of the memory behind each argument, and then of that behind each result.
    pub layouts: Vec<Option<Layout>>,
    /// Whether memory that each argument leads to holds floats where at other times it holds pointers or integers.
    pub unions: Vec<bool>,
    /// Whether some of the memory that each argument leads to may be constant, and its own shadow.
    pub constants: Vec<bool>,
    /// Where lists of memory to be released later are.
    pub lists: Lists,
}

/// Finds or makes derivatives of callees.
pub(crate) trait Callees {
    /// The module, for looking things up.
    fn module(&mut self) -> &mut Module;

    /// The lists of memory to be released later that the forward sweep of a function uses, and the register of shadows where there is one.
    fn lists(&mut self, function: FunctionId, split: bool) -> Vec<ListKey>;

    /// What a function alone tells of its memory, whoever calls it.
    fn own_objects(&mut self, function: FunctionId) -> Arc<Objects>;

    /// The manners of releasing memory that entries of a list for anything name by their position.
    fn manners(&mut self) -> &[Manner];

    /// Whether pointers that are found in memory may have no shadow, though what they lead to needs one: see `statics.rs`.
    fn checks_pointers(&mut self) -> bool;

    /// The number by which notes about released memory name a layout.
    fn number_of_layout(&mut self, cells: &Cells) -> usize;

    /// The derivative of a function.
    fn split(&mut self, key: SplitKey) -> Result<CalleeDerivative, Error>;

    /// The global that stands for the derivatives of a function whose address is taken.
    fn shadow_of_function(&mut self, function: FunctionId) -> Result<Constant, Error>;

    /// The shadow of a global. To some code floats there may share their place with other things, or what is there may go to such a place.
    fn shadow_of_global(&mut self, global: GlobalId, in_unions: bool) -> Result<Constant, Error>;
}

/// What the forward sweep of one function is to be.
pub(crate) struct Sweep<'a> {
    /// What was found out about the primal.
    pub objects: &'a Objects,
    /// What is active there.
    pub activities: &'a Activities,
    /// What the arguments mean.
    pub args: &'a [Activity],
    /// What the results mean.
    pub results: &'a [Activity],
    /// For each call and argument: whether memory behind it may change after the call.
    pub overwritten: &'a FxHashMap<Op, Vec<bool>>,
    /// For each argument: whether memory that it leads to holds floats where at other times it holds pointers or integers, as the caller knows.
    pub unions: &'a [bool],
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
    pub shadows: SecondaryMap<Value, PackedOption<Value>>,
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
        let key = ListKey::Register;
        let mut pending = self.pending.iter();
        pending.find(|(other, _)| *other == key).map(|&(_, v)| v)
    }
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
pub(crate) fn augment(
    callees: &mut dyn Callees,
    function: FunctionId,
    sweep: &Sweep<'_>,
) -> Result<Augmented, Error> {
    let primal = callees.module().functions[function].clone();
    let mut works = EntitySet::new();
    let arguments = primal.arguments().to_vec();
    let has_unions = sweep
        .objects
        .classes()
        .any(|class| sweep.activities.is_active_class(class) && sweep.objects.has_unions(class));
    let body = primal.body();
    find_work(callees.module(), &primal, sweep, body, &mut works);
    let lists = callees.lists(function, sweep.split);
    let own_objects = callees.own_objects(function);
    let calculated = match primal.values.keys().any(|v| sweep.activities.is_part(v)) {
        true => shadowing::find_calculated(&primal, sweep.objects, sweep.activities),
        false => FxHashSet::default(),
    };
    let mut augmenter = Augmenter {
        callees,
        sweep,
        works,
        lists,
        own_objects,
        augmented: Augmented {
            function: primal,
            shadows: SecondaryMap::with_default(None.into()),
            steps: FxHashMap::default(),
            trips: FxHashMap::default(),
            pending: Vec::new(),
            unsteady: EntitySet::new(),
            has_unions,
            has_constants: sweep
                .objects
                .classes()
                .any(|class| sweep.activities.may_be_constant(class)),
        },
        given: FxHashSet::default(),
        doubtful: FxHashSet::default(),
        checked: FxHashSet::default(),
        calculated,
        arguments,
    };
    augmenter.find_given();
    let follows_rules = follows_rules(&mut Search::default(), augmenter.callees.module(), function);
    augmenter.forget_false_facts(follows_rules);
    augmenter.add_shadow_parameters();
    augmenter.visit(body)?;
    augmenter.shadow_returned_constants()?;
    Ok(augmenter.augmented)
}

/// Whether an operation or anything within it has a part in the reverse sweep.
fn find_work(
    module: &Module,
    function: &Function,
    sweep: &Sweep<'_>,
    region: Region,
    works: &mut EntitySet<Op>,
) -> bool {
    if function.ends_in_trap(region) {
        return false;
    }
    let Sweep {
        objects,
        activities,
        ..
    } = sweep;
    let mut any = false;
    for &op in &function.regions[region].ops {
        let data = &function.ops[op];
        let mut work = match data.opcode {
            Opcode::Store => {
                let (value, address) = (data.operands[0], data.operands[1]);
                let bytes = function.ty(value).bytes();
                activities.points_to_active(objects, function, address)
                    && (!function.ty(value).is_ptr()
                        || objects.union_at(function, address, bytes).is_some())
            }
            Opcode::AtomicAdd | Opcode::Copy | Opcode::Move | Opcode::Fill => {
                activities.points_to_active(objects, function, data.operands[0])
            }
            Opcode::Call | Opcode::CallIndirect => {
                activities.is_active_call(module, function, objects, op)
            }
            _ => data
                .results
                .iter()
                .any(|&result| activities.is_active(result)),
        };
        for &inner in &data.regions {
            work |= find_work(module, function, sweep, inner, works);
        }
        if work {
            works.insert(op);
        }
        any |= work;
    }
    any
}

pub(crate) struct Augmenter<'a> {
    pub(crate) callees: &'a mut dyn Callees,
    pub(crate) sweep: &'a Sweep<'a>,
    /// Operations with a part in the reverse sweep.
    works: EntitySet<Op>,
    /// The lists that memory is put on to be released later.
    lists: Vec<ListKey>,
    /// What the function alone tells of its memory, by which it is put on lists.
    own_objects: Arc<Objects>,
    pub(crate) augmented: Augmented,
    /// Memory whose shadow comes from outside the derivative, with derivatives in it.
    given: FxHashSet<Class>,
    /// Pointers that were found where floats are at times.
    doubtful: FxHashSet<Value>,
    /// Those of them that are checked, and in which regions.
    checked: FxHashSet<(Region, Value)>,
    /// Values that somebody does more with than to move them: see [`shadowing::find_calculated`].
    calculated: FxHashSet<Value>,
    /// The arguments of the primal.
    arguments: Vec<Value>,
}

impl Augmenter<'_> {
    pub(crate) fn function(&mut self) -> &mut Function {
        &mut self.augmented.function
    }

    /// A builder at the end of a region, for code that belongs to `op`.
    pub(crate) fn builder(&mut self, region: Region, op: Op) -> Builder<'_> {
        let location = self.augmented.function.ops[op].location;
        let mut builder = Builder::new(&mut self.augmented.function, region);
        builder.location = location;
        builder
    }

    pub(crate) fn error(&mut self, op: Op, refusal: Refusal) -> Error {
        let module = &*self.callees.module();
        Error::at(module, &self.augmented.function, op, refusal)
    }

    pub(crate) fn has_shadow(&self, value: Value) -> bool {
        let function = &self.augmented.function;
        self.sweep
            .activities
            .has_shadow(self.sweep.objects, function, value)
            || self.is_union(value)
    }

    /// Whether an integer may carry a float with a derivative or something else. Its shadow tells: it is zero for a float.
    pub(crate) fn is_union(&self, value: Value) -> bool {
        let function = &self.augmented.function;
        self.sweep.activities.is_active(value)
            && self.sweep.objects.union_of_value(function, value).is_some()
    }

    /// Whether an integer may be part of a pointer. Its shadow is the same part of the shadow, wherever the parts are put together again.
    fn is_part(&self, value: Value) -> bool {
        let function = &self.augmented.function;
        self.sweep.objects.is_part_of_union(function, value)
    }

    fn set_shadow(&mut self, value: Value, shadow: Value) {
        self.augmented.shadows[value] = shadow.into();
        if let Some(name) = &self.augmented.function.values[value].name {
            let name = format!("{name}'");
            self.function().set_name(shadow, name);
        }
    }

    /// The shadow of a pointer; a pointer without one stands for itself, for nothing behind it is active.
    pub(crate) fn shadow(&mut self, op: Op, value: Value) -> Result<Value, Error> {
        if let Some(shadow) = self.augmented.shadows[value].expand() {
            return Ok(shadow);
        }
        let ty = self.augmented.function.ty(value);
        let undefined = || self.augmented.function.constant_of(value) == Some(&Constant::Undef);
        if ty.is_float() || (ty.is_int() && undefined()) {
            // Before the reverse sweep the derivative of a float is zero.
            return Ok(self.function().zero(ty));
        }
        let constant = match self.augmented.function.constant_of(value).cloned() {
            Some(Constant::Global(global)) if self.is_global_its_own_shadow(value, global) => {
                return Ok(value);
            }
            Some(Constant::Global(global)) if self.has_shadow(value) => {
                let objects = self.sweep.objects;
                let class = objects.class_of(&self.augmented.function, value);
                let no_float = |class| {
                    let mut fields = objects.fields(class);
                    !fields.any(|field| matches!(field.kind, Kind::Float(_)))
                };
                let in_unions =
                    class.is_some_and(|(class, _)| objects.has_unions(class) || no_float(class));
                self.callees.shadow_of_global(global, in_unions)?
            }
            Some(Constant::Function(function)) if self.has_shadow(value) => {
                self.callees.shadow_of_function(function)?
            }
            Some(_) => return Ok(value),
            None if self.has_shadow(value)
                && !self.is_own_shadow(value)
                && !self.is_constant_argument(value) =>
            {
                return Err(self.lost_shadow(op));
            }
            None => return Ok(value),
        };
        Ok(self.function().constant(Type::PTR, constant))
    }

    /// The caller gets a shadow of each pointer that is returned, also of the address of a global or a function, which no operation makes.
    fn shadow_returned_constants(&mut self) -> Result<(), Error> {
        let function = &self.augmented.function;
        let end = function.terminator(function.body());
        let returned = function.ops[end].operands.clone();
        if function.ops[end].opcode != Opcode::Return {
            return Ok(());
        }
        for (&value, &activity) in returned.iter().zip(self.sweep.results) {
            let is_address = matches!(
                self.augmented.function.constant_of(value),
                Some(Constant::Global(_) | Constant::Function(_))
            );
            if activity == Activity::Duplicated && is_address {
                let shadow = self.shadow(end, value)?;
                self.augmented.shadows[value] = shadow.into();
            }
        }
        Ok(())
    }

    /// Whether what a pointer leads to needs no second memory.
    fn is_own_shadow(&mut self, pointer: Value) -> bool {
        let objects = self.sweep.objects;
        let class = objects.class_of(&self.augmented.function, pointer);
        class.is_some_and(|(class, _)| is_own_shadow(self.callees.module(), objects, class))
    }

    /// Whether whoever follows the shadow of a pointer must find a shadow there.
    fn needs_shadow(&mut self, pointer: Value) -> bool {
        let objects = self.sweep.objects;
        let class = objects.class_of(&self.augmented.function, pointer);
        class.is_some_and(|(class, _)| leads_on(objects, class)) && !self.is_own_shadow(pointer)
    }

    fn is_global_its_own_shadow(&mut self, value: Value, global: GlobalId) -> bool {
        let objects = self.sweep.objects;
        let class = objects.class_of(&self.augmented.function, value);
        class.is_some_and(|(class, _)| {
            is_global_its_own_shadow(self.callees.module(), objects, global, class)
        })
    }

    /// Whether a value is an argument without a shadow: a number, though it is put where addresses are in other cases, or a pointer to numbers, though it
    /// is where others lead to floats.
    fn is_constant_argument(&self, value: Value) -> bool {
        let mut arguments = self.arguments.iter();
        let position = arguments.position(|&argument| argument == value);
        position.is_some_and(|index| self.sweep.args.get(index) == Some(&Activity::Const))
    }

    /// Forgets what is true of the primal but not of the forward sweep, which makes a tape that may hold addresses.
    fn forget_false_facts(&mut self, follows_rules: bool) {
        let is_own_shadow: Vec<bool> = self
            .arguments
            .iter()
            .map(|&arg| self.is_constant_argument(arg) && self.has_shadow(arg))
            .collect();
        let has_unions = self.augmented.has_unions;
        let has_constants = self.augmented.has_constants;
        let function = self.function();
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
    fn add_shadow_parameters(&mut self) {
        let body = self.augmented.function.body();
        let args = self.augmented.function.regions[body].args.clone();
        let params = std::mem::take(&mut self.function().params);
        self.function().regions[body].args.clear();
        for ((arg, param), &activity) in args.into_iter().zip(params).zip(self.sweep.args) {
            let function = &mut self.augmented.function;
            let index = function.params.len() as u32;
            function.values[arg].def = ValueDef::Argument {
                region: body,
                index,
            };
            function.regions[body].args.push(arg);
            let shadow_param = shadow_param(&param, self.sweep.lists);
            function.params.push(param);
            if activity == Activity::Duplicated {
                let ty = shadow_param.ty;
                function.params.push(shadow_param);
                let shadow = function.add_argument(body, ty);
                self.set_shadow(arg, shadow);
            }
        }
        for key in self.sweep.lists.passed(&self.lists) {
            let function = &mut self.augmented.function;
            function.params.push(Type::PTR.into());
            let list = function.add_argument(body, Type::PTR);
            function.set_name(list, "pending");
            self.augmented.pending.push((key, list));
        }
    }

    fn visit(&mut self, region: Region) -> Result<(), Error> {
        if self.augmented.function.ends_in_trap(region) {
            return Ok(());
        }
        let ops = std::mem::take(&mut self.function().regions[region].ops);
        let is_body = self.augmented.function.body() == region;
        if is_body && matches!(self.sweep.lists, Lists::Stack | Lists::Heap) {
            for key in self.lists.clone() {
                let mut b = Builder::new(&mut self.augmented.function, region);
                let list = match self.sweep.lists {
                    Lists::Stack => deferral::new_list(&mut b, &key),
                    _ => deferral::new_heap_list(&mut b, &key),
                };
                b.function.set_name(list, "pending");
                self.augmented.pending.push((key, list));
            }
        }
        let releases = deferral::paired_releases(&self.augmented.function, &ops);
        let region_works = ops.iter().any(|&op| self.works.contains(op));
        for op in ops {
            self.visit_op(region, op, region_works, &releases)?;
        }
        Ok(())
    }

    fn keep(&mut self, region: Region, op: Op) {
        self.function().regions[region].ops.push(op);
    }

    fn visit_op(
        &mut self,
        region: Region,
        op: Op,
        region_works: bool,
        releases: &FxHashMap<Op, Op>,
    ) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        if self.sweep.activities.needs_numbers(op) {
            for &operand in &data.operands {
                if self.is_union(operand) {
                    let shape = self.shadow(op, operand)?;
                    unions::check_no_float(&mut self.builder(region, op), operand, shape);
                }
            }
        }
        self.check_followed(region, op);
        match data.opcode {
            // Addresses that integers carry are calculated with as such.
            Opcode::Offset
            | Opcode::Add
            | Opcode::Sub
            | Opcode::And
            | Opcode::Or
            | Opcode::TruncInt
            | Opcode::Select
            | Opcode::Ptrtoint
            | Opcode::Inttoptr
            | Opcode::Bitcast
            | Opcode::Splat
            | Opcode::Insert
            | Opcode::Extract
            | Opcode::Shuffle
                if self.has_shadow(data.results[0]) || self.is_part(data.results[0]) =>
            {
                self.keep(region, op);
                let mut operands = data.operands.clone();
                // How far an address lies from another is a number, though it may come from where pointers and floats are at other times.
                let is_moved = data.opcode == Opcode::Offset && self.has_shadow(operands[0]);
                let carrying = if is_moved { 1 } else { operands.len() };
                if self.sweep.objects.may_be_hidden(data.results[0])
                    && self.augmented.shadows[operands[0]].is_none()
                {
                    return Err(self.lost_shadow(op));
                }
                for operand in &mut operands[..carrying] {
                    *operand =
                        match shadowing::is_moved_part(&self.augmented.function, op, *operand) {
                            true => self.shadow_of_moved(region, op, *operand)?,
                            false => self.shadow(op, *operand)?,
                        };
                }
                self.repeat_on_shadow(region, op, &operands);
                if self.works.contains(op) && self.is_union(data.results[0]) {
                    self.add_rule_step(op);
                }
            }
            Opcode::Load => self.visit_load(region, op)?,
            Opcode::Store => self.visit_store(region, op)?,
            Opcode::AtomicAdd => self.visit_atomic_add(region, op)?,
            Opcode::Stack | Opcode::Alloc => {
                self.visit_allocation(region, op, region_works, releases)?;
            }
            Opcode::Free => self.visit_free(region, op, region_works, releases),
            Opcode::Copy | Opcode::Move => self.visit_copy(region, op)?,
            Opcode::Fill => self.visit_fill(region, op)?,
            Opcode::Call => {
                self.check_parts(region, op);
                self.visit_call(region, op)?;
            }
            Opcode::Return => {
                self.check_parts(region, op);
                self.keep(region, op);
            }
            Opcode::CallIndirect => {
                self.check_parts(region, op);
                self.visit_indirect_call(region, op)?;
            }
            Opcode::If | Opcode::Switch | Opcode::For | Opcode::Loop => {
                self.visit_structured(region, op)?;
            }
            _ => {
                self.keep(region, op);
                if self.works.contains(op) {
                    self.add_rule_step(op);
                }
            }
        }
        Ok(())
    }

    /// Stops the program ahead of an operation that goes on with a pointer which was found where floats are at times, and leads to memory without a shadow.
    fn check_followed(&mut self, region: Region, op: Op) {
        if self.doubtful.is_empty() {
            return;
        }
        let data = &self.augmented.function.ops[op];
        for pointer in statics::followed(data, |pointer| self.doubtful.contains(&pointer)) {
            if self.checked.insert((region, pointer))
                && let Some(shadow) = self.augmented.shadows[pointer].expand()
            {
                stop_without_shadow(&mut self.builder(region, op), pointer, shadow, true);
            }
        }
    }

    fn lost_shadow(&mut self, op: Op) -> Error {
        self.error(op, Refusal::LostShadow)
    }

    /// The shadow of what extensions and shifts make of parts of words.
    fn shadow_of_moved(&mut self, region: Region, op: Op, value: Value) -> Result<Value, Error> {
        let function = &self.augmented.function;
        let source = function.def_op(value).map(|(source, _)| source);
        let (Some(source), None) = (source, self.augmented.shadows[value].expand()) else {
            return self.shadow(op, value);
        };
        let data = function.ops[source].clone();
        if !shadowing::moves_parts(data.opcode) {
            return self.shadow(op, value);
        }
        let mut operands = data.operands.clone();
        operands[0] = self.shadow_of_moved(region, op, operands[0])?;
        let ty = self.augmented.function.ty(value);
        let mut b = self.builder(region, op);
        Ok(b.value(data.opcode, &operands, data.payload, ty))
    }

    /// Whoever gets a part of a word by value takes it for a number: its shadow does not come along. What has no derivative needs none.
    fn check_parts(&mut self, region: Region, op: Op) {
        let data = &self.augmented.function.ops[op];
        if data.opcode != Opcode::Return && !self.works.contains(op) {
            return;
        }
        for value in data.operands.clone() {
            if let Some(shadow) = self.augmented.shadows[value].expand()
                && self.is_part(value)
            {
                unions::check_number(&mut self.builder(region, op), value, shadow);
            }
        }
    }

    fn add_rule_step(&mut self, op: Op) {
        let opcode = self.augmented.function.ops[op].opcode;
        if matches!(rules::rule(opcode), Rule::Partials(_) | Rule::Linear(_)) {
            self.augmented.steps.insert(op, Step::Rule);
        }
    }

    /// The same operation on other operands gives the shadow of its result.
    fn repeat_on_shadow(&mut self, region: Region, op: Op, operands: &[Value]) -> Value {
        let data = self.augmented.function.ops[op].clone();
        let mut b = self.builder(region, op);
        let ty = b.ty(data.results[0]);
        let shadow = b.value(data.opcode, operands, data.payload, ty);
        let (copy, _) = b.function.def_op(shadow).expect("just made");
        b.function.ops[copy].flags = data.flags;
        self.set_shadow(data.results[0], shadow);
        shadow
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
