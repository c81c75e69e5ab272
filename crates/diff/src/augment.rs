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

mod calls;
mod releases;
mod updates;

use crate::activity::{Activities, reachable_from};
use crate::deferral::{self, ListKey, Manner};
use crate::error::Error;
use crate::memory::{self, Cells};
use crate::objects::{Class, Contradiction, Kind, Objects, Source, ValueKind};
use crate::request::Activity;
use crate::rules::{self, Rule};
use crate::search::{Search, follows_rules, forget_accesses};
use crate::shadowing::{self, is_global_its_own_shadow, is_own_shadow, leads_on};
use crate::statics::{self, stop_without_shadow};
use crate::unions;
use ferrozyme_ir::entity::packed_option::PackedOption;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{
    Builder, Constant, Function, FunctionId, GlobalId, Layout, MemoryEffect, Module, Op, Opcode,
    Param, Payload, Region, Type, Value, ValueDef,
};
use ferrozyme_refusal::{Refusal, UnknownBytes};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What the reverse sweep does for an operation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Applies the rule of the table.
    Rule,
    /// Gives the adjoint of a value that a loop replaces now and then to what replaced it last.
    Update {
        /// What replaces it.
        replacement: Value,
        /// What it was before.
        kept: Value,
        /// The number of the iteration.
        number: Value,
        /// That of the last iteration that replaced it.
        last: Value,
    },
    /// Adds the adjoint of the loaded value to the shadow.
    Load {
        /// Where the shadow is.
        shadow: Value,
    },
    /// Takes the adjoint of the stored value from the shadow, which becomes zero.
    Store {
        /// Where the shadow is.
        shadow: Value,
    },
    /// Like [`Step::Load`], where the shadow may hold a pointer or number instead: only if what was found there is zero.
    LoadUnion {
        /// Where the shadow is.
        shadow: Value,
        /// What was found in the shadow.
        shape: Value,
    },
    /// Like [`Step::Store`], where what was put into the shadow may be a pointer or number: the adjoint is taken if that is zero, and not at all if
    /// there is none.
    StoreUnion {
        /// Where the shadow is.
        shadow: Value,
        /// What was put there, for a value that may carry a float.
        shape: Option<Value>,
    },
    /// Adds what is in the shadow to the adjoint of the added value, and the adjoint of the old value to the shadow.
    AtomicAdd {
        /// Where the shadow is.
        shadow: Value,
    },
    /// Moves the shadow's floats back to where they came from.
    Copy {
        /// The shadow of the destination.
        to: Value,
        /// The shadow of the source, if it has one.
        from: Option<Value>,
        /// How many bytes.
        bytes: Value,
        /// What they are.
        cells: Cells,
        /// Whether the two may overlap.
        overlapping: bool,
        /// Whether what was copied is constant, where only the run can tell.
        constant: Option<Value>,
    },
    /// Like [`Step::Copy`], where floats share their place with something else (see `unions.rs`).
    CopyUnions {
        /// Where the copy's shadow is.
        to: Value,
        /// The shadow of what was copied, if that carries derivatives.
        from: Option<Value>,
        /// How many bytes.
        bytes: Value,
        /// A copy of what was in the shadow; none if all are floats for certain.
        shape: Option<Value>,
        /// Whether what was copied is constant, and nothing goes back to it.
        constant: Option<Value>,
    },
    /// Forgets what is in a shadow where floats share their place with something else.
    FillUnions {
        /// Where the shadow is.
        to: Value,
        /// How many bytes.
        bytes: Value,
    },
    /// Zeroes the floats of the shadow.
    Fill {
        /// The shadow of the destination.
        to: Value,
        /// How many bytes.
        bytes: Value,
        /// What they are.
        cells: Cells,
    },
    /// Runs the callee's reverse sweep.
    Call(CallStep),
    /// Reverses the regions.
    Regions,
    /// Releases memory that this operation made.
    Release {
        /// The memory and its shadow.
        pointers: Vec<Value>,
        /// The size that they were asked for with, if the allocator is told.
        size: Option<Value>,
        /// How they are released.
        manner: Manner,
    },
}

/// How a call is reversed.
#[derive(Clone, Debug)]
pub(crate) struct CallStep {
    /// The function that runs the reverse sweep.
    pub reverse: CallTarget,
    /// What it takes from the forward sweep, in order: arguments, shadows. `None` where it does not look.
    pub args: Vec<Option<Value>>,
    /// The type of each of those.
    pub arg_types: Vec<Type>,
    /// The results whose adjoints it takes, in order.
    pub seeds: Vec<Value>,
    /// What follows the seeds: the tape.
    pub tape: Option<Value>,
    /// A constant behind everything, for rules that users give: which arguments are active.
    pub mask: Option<i64>,
    /// The primal arguments whose adjoints it returns, in order.
    pub gradients: Vec<Value>,
}

/// Who is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallTarget {
    /// A function of the module.
    Direct(FunctionId),
    /// What a pointer leads to.
    Indirect(Value),
}

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

    /// Notes the memory whose shadow comes from outside the derivative, and what the caller knows of that of arguments.
    fn find_given(&mut self) {
        let Sweep {
            objects,
            args,
            unions,
            ..
        } = *self.sweep;
        for class in objects.classes() {
            if objects.has_unknown_origin(class) {
                // Whoever made it knows nothing of shadows.
                self.given.insert(class);
            }
            for source in objects.sources(class) {
                let given = match source {
                    Source::Param(index) => {
                        let index = index as usize;
                        args.get(index) == Some(&Activity::Duplicated)
                            && unions.get(index) != Some(&true)
                    }
                    Source::External(_) | Source::Address(_) => true,
                    _ => false,
                };
                if !given {
                    continue;
                }
                match objects.is_plain(class) {
                    true => {
                        self.given.insert(class);
                    }
                    false => self.given.extend(reachable_from(objects, class)),
                }
            }
        }
    }

    /// Whether an access meets floats where at other times pointers or numbers are. Then the shadow's floats are zero in the forward sweep, and what
    /// is found there says what the bytes are.
    fn meets_union(&mut self, op: Op, address: Value, bytes: u64) -> Result<bool, Error> {
        let function = &self.augmented.function;
        let objects = self.sweep.objects;
        let Some((class, offset)) = objects.class_of(function, address) else {
            return Ok(false);
        };
        if !self.sweep.activities.is_active_class(class) {
            return Ok(false);
        }
        if objects.is_plain(class) {
            return Ok(false);
        }
        let kind = objects.kind_of_access(class, offset, bytes);
        if !kind.is_union(bytes) {
            return Ok(false);
        }
        // Floats of which the bits are looked at elsewhere, and nothing else: as far as this function goes.
        let is_float = matches!(kind, Kind::Conflict(Contradiction::FloatAndInteger(_)))
            && self.given.contains(&class)
            && !self.is_passed_on(class);
        if is_float {
            return Ok(false);
        }
        self.refuse_given(op, address)?;
        Ok(true)
    }

    /// Whether memory from outside is described as nothing but floats.
    fn is_plain(&self, address: Value) -> bool {
        self.sweep
            .objects
            .class_of(&self.augmented.function, address)
            .is_some_and(|(class, _)| self.sweep.objects.is_plain(class))
    }

    /// Whether memory that an argument leads to holds floats where at other times it holds pointers or integers.
    fn leads_to_union(&self, value: Value) -> bool {
        let objects = self.sweep.objects;
        let Some((class, _)) = objects.class_of(&self.augmented.function, value) else {
            return false;
        };
        reachable_from(objects, class).into_iter().any(|class| {
            self.sweep.activities.is_active_class(class)
                && !objects.is_plain(class)
                && objects.has_unions(class)
        })
    }

    fn is_passed_on(&self, class: Class) -> bool {
        let function = &self.augmented.function;
        let objects = self.sweep.objects;
        let leads_there = |value: &Value| {
            objects
                .class_of(function, *value)
                .is_some_and(|(from, _)| reachable_from(objects, from).contains(&class))
        };
        function.ops.values().any(|data| {
            matches!(data.opcode, Opcode::Call | Opcode::CallIndirect)
                && data.operands.iter().any(leads_there)
        })
    }

    /// Where pointers and floats share their place, floats of the shadow must be zero in the forward sweep. Nobody knows what they are in memory
    /// that comes from outside.
    fn refuse_given(&mut self, op: Op, address: Value) -> Result<(), Error> {
        let objects = self.sweep.objects;
        let given = objects
            .class_of(&self.augmented.function, address)
            .is_some_and(|(class, _)| self.given.contains(&class) && objects.is_handled(class));
        match given {
            true => self.refuse_given_memory(op),
            false => Ok(()),
        }
    }

    fn refuse_given_memory(&mut self, op: Op) -> Result<(), Error> {
        Err(self.error(op, Refusal::UnionOfCaller))
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

    fn visit_load(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        self.keep(region, op);
        let result = data.results[0];
        let ty = self.augmented.function.ty(result);
        // What is read as a float is one, whatever the shadow says.
        let union = ty != Type::F64 && self.meets_union(op, data.operands[0], ty.bytes())?;
        if self.is_plain(data.operands[0]) && self.is_union(result) {
            // A float for certain.
            let shape = unions::shape_of_float(&mut self.builder(region, op), result);
            self.augmented.shadows[result] = shape.into();
        } else if self.has_shadow(result) || self.is_part(result) {
            let address = self.shadow(op, data.operands[0])?;
            let shape = self.repeat_on_shadow(region, op, &[address]);
            let is_pointer = self.augmented.function.ty(result) == Type::PTR;
            let in_union = self.is_in_union(data.operands[0]);
            let is_checked = in_union || self.callees.checks_pointers();
            if is_pointer && is_checked && self.needs_shadow(result) {
                if in_union {
                    self.doubtful.insert(result);
                } else {
                    let b = &mut self.builder(region, op);
                    stop_without_shadow(b, result, shape, false);
                }
            }
            if union {
                let (load, _) = self.augmented.function.def_op(shape).expect("just made");
                self.augmented.unsteady.insert(load);
            }
        }
        if self.sweep.activities.is_part(result) {
            return self.check_number(region, op);
        }
        if self.works.contains(op) {
            let shadow = self.shadow(op, data.operands[0])?;
            let shadow = self.shadow_to_add_to(region, op, data.operands[0], shadow);
            let step = match self.augmented.shadows[result].expand() {
                Some(shape) if self.is_union(result) => Step::LoadUnion { shadow, shape },
                _ => Step::Load { shadow },
            };
            self.augmented.steps.insert(op, step);
        }
        Ok(())
    }

    /// A part of a word must be part of a number, or of an address if it is only moved: then its shadow goes the same way.
    fn check_number(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        let (result, address) = (data.results[0], data.operands[0]);
        let is_moved = !self.calculated.contains(&result);
        let shadow = self.shadow(op, address)?;
        let mut b = self.builder(region, op);
        let ty = b.ty(result);
        let found = b.value(Opcode::Load, &[shadow], data.payload, ty);
        match is_moved {
            true => unions::check_no_part_of_float(&mut b, result, found),
            false => unions::check_number(&mut b, result, found),
        }
        let (load, _) = self.augmented.function.def_op(found).expect("just made");
        self.augmented.unsteady.insert(load);
        Ok(())
    }

    fn visit_store(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        self.keep(region, op);
        let (value, address) = (data.operands[0], data.operands[1]);
        if !self.has_shadow(address) {
            return Ok(());
        }
        let shadow = self.shadow(op, address)?;
        let ty = self.augmented.function.ty(value);
        let what = self.stored_kind(address, value);
        let is_zero = matches!(
            self.augmented.function.constant_of(value),
            Some(Constant::Bits(0))
        );
        let active = self.works.contains(op);
        if self.meets_union(op, address, ty.bytes())? {
            return self.visit_store_of_union(region, op, shadow);
        }
        let shadow = self.shadow_to_write(region, op, address, value, shadow)?;
        if active && !is_zero && matches!(what, ValueKind::Unknown) {
            return Err(self.error(op, Refusal::UnknownLayout));
        }
        if !ty.is_float() && !matches!(what, ValueKind::CarriesFloat(_)) {
            let to_shadow = self.shadow(op, value)?;
            let Payload::Align(align) = data.payload else {
                unreachable!("a verified store has an alignment")
            };
            self.builder(region, op).store(to_shadow, shadow, align);
        }
        let float = ty.is_float()
            || matches!(what, ValueKind::CarriesFloat(_))
            || (matches!(what, ValueKind::Unknown) && is_zero);
        // Bytes of which nothing is known and that are no float by their number hold no derivative.
        if active && float && rules::derivative_type(ty).is_some() {
            self.augmented.steps.insert(op, Step::Store { shadow });
        }
        Ok(())
    }

    /// A store to where floats are at times, and at others something else: the shadow of a float is zero from now on.
    fn visit_store_of_union(&mut self, region: Region, op: Op, shadow: Value) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        let (value, address) = (data.operands[0], data.operands[1]);
        let ty = self.augmented.function.ty(value);
        let is_float =
            ty.is_float() || matches!(self.stored_kind(address, value), ValueKind::CarriesFloat(_));
        let shape = match is_float {
            true => unions::shape_of_float(&mut self.builder(region, op), value),
            false => self.shadow(op, value)?,
        };
        if ty == Type::PTR && self.may_be_mistaken(op, value)? {
            unions::check_no_float(&mut self.builder(region, op), value, shape);
        }
        let shadow = self.shadow_to_write(region, op, address, value, shadow)?;
        let Payload::Align(align) = data.payload else {
            unreachable!("a verified store has an alignment")
        };
        let store = self.builder(region, op).store(shape, shadow, align);
        self.augmented.unsteady.insert(store);
        if self.works.contains(op) {
            let step = match is_float {
                true => Step::Store { shadow },
                false => Step::StoreUnion {
                    shadow,
                    shape: self.is_union(value).then_some(shape),
                },
            };
            self.augmented.steps.insert(op, step);
        }
        Ok(())
    }

    /// Whether a pointer may be a float that was read as a pointer: from where there are floats at times, or by somebody else.
    fn may_be_mistaken(&mut self, op: Op, pointer: Value) -> Result<bool, Error> {
        let function = &self.augmented.function;
        if !self.works.contains(op) || function.is_constant(pointer) {
            return Ok(false);
        }
        let Some((source, _)) = function.def_op(pointer) else {
            return Ok(true);
        };
        let data = &function.ops[source];
        match data.opcode {
            Opcode::Stack | Opcode::Alloc | Opcode::Offset | Opcode::Inttoptr => Ok(false),
            Opcode::Load => {
                let address = data.operands[0];
                self.meets_union(source, address, Type::PTR.bytes())
            }
            _ => Ok(true),
        }
    }

    /// What a stored integer is, by what is known of the memory.
    fn stored_kind(&self, address: Value, value: Value) -> ValueKind {
        let function = &self.augmented.function;
        let ty = function.ty(value);
        if !ty.is_int() {
            return ValueKind::Integer;
        }
        let Some((class, offset)) = self.sweep.objects.class_of(function, address) else {
            return ValueKind::Unknown;
        };
        match self.sweep.objects.kind_of_access(class, offset, ty.bytes()) {
            Kind::Float(scalar) => ValueKind::CarriesFloat(scalar),
            Kind::Integer | Kind::Padding => ValueKind::Integer,
            Kind::Pointer(place) => ValueKind::CarriesPointer(place),
            Kind::Unknown | Kind::Conflict(_) => ValueKind::Unknown,
        }
    }

    fn visit_atomic_add(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        self.keep(region, op);
        if !self.works.contains(op) || !self.augmented.function.ty(data.operands[1]).is_float() {
            return Ok(());
        }
        let shadow = self.shadow(op, data.operands[0])?;
        let (address, value) = (data.operands[0], data.operands[1]);
        let shadow = self.shadow_to_write(region, op, address, value, shadow)?;
        self.augmented.steps.insert(op, Step::AtomicAdd { shadow });
        Ok(())
    }

    fn visit_copy(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        self.keep(region, op);
        let [to, from, bytes] = data.operands[..] else {
            unreachable!("a verified copy has three operands")
        };
        if !self.has_shadow(to) || self.augmented.function.int_of(bytes) == Some(0) {
            return Ok(());
        }
        let to_shadow = self.shadow(op, to)?;
        let from_shadow = self.shadow(op, from)?;
        let bytes = self.bytes_to_copy(region, op, (to, to_shadow), (from, from_shadow));
        let overlapping = data.opcode == Opcode::Move;
        let active = self.works.contains(op);
        if !active {
            // No float here has a derivative: the shadow's floats are zero, and the whole can be copied.
            let mut b = self.builder(region, op);
            b.op(
                data.opcode,
                &[to_shadow, from_shadow, bytes],
                data.payload,
                &[],
            );
            return Ok(());
        }
        let from_active = self.sweep.activities.points_to_active(
            self.sweep.objects,
            &self.augmented.function,
            from,
        );
        if self.is_union_behind(to) || self.is_union_behind(from) {
            let shadows = (to_shadow, from_shadow);
            return self.visit_copy_of_unions(region, op, shadows, bytes, from_active);
        }
        let cells = self.cells(op, to, Some(from))?;
        if cells.has_unions() {
            let shadows = (to_shadow, from_shadow);
            return self.visit_copy_of_unions(region, op, shadows, bytes, from_active);
        }
        let mut b = self.builder(region, op);
        memory::copy_other_fields(&mut b, &cells, to_shadow, from_shadow, bytes, overlapping);
        if cells.has_floats() {
            let constant = self.is_constant_behind(region, op, from, from_shadow);
            let step = Step::Copy {
                to: to_shadow,
                from: from_active.then_some(from_shadow),
                bytes,
                cells,
                overlapping,
                constant,
            };
            self.augmented.steps.insert(op, step);
        }
        Ok(())
    }

    /// A copy where floats share their place with something else: the shadow is copied in the same manner (see `unions.rs`).
    fn visit_copy_of_unions(
        &mut self,
        region: Region,
        op: Op,
        (to_shadow, from_shadow): (Value, Value),
        bytes: Value,
        from_active: bool,
    ) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        let (to, from) = (data.operands[0], data.operands[1]);
        self.refuse_other_floats(op, to)?;
        self.refuse_other_floats(op, from)?;
        let constant = self.is_constant_behind(region, op, from, from_shadow);
        let mut shape = None;
        if self.is_plain(to) || self.is_plain(from) {
            if from_active {
                // The reverse sweep gives back whole words only.
                unions::stop_if_in_parts(
                    &mut self.builder(region, op),
                    to_shadow,
                    from_shadow,
                    bytes,
                );
            }
            if !self.is_plain(to) {
                self.refuse_given(op, to)?;
                let mut b = self.builder(region, op);
                unions::put_shapes_of_floats(&mut b, to, to_shadow, bytes);
            }
            if !self.is_plain(from) {
                self.refuse_given(op, from)?;
            }
        } else {
            self.refuse_given(op, to)?;
            self.refuse_given(op, from)?;
            let mut b = self.builder(region, op);
            for read in unions::check_parts(&mut b, to_shadow, to, from_shadow, bytes) {
                self.augmented.unsteady.insert(read);
            }
            if from_active {
                let mut b = self.builder(region, op);
                let (copy, read) = unions::copy_of(&mut b, from_shadow, bytes);
                self.augmented.unsteady.insert(read);
                shape = Some(copy);
            }
            let mut b = self.builder(region, op);
            let operands = [to_shadow, from_shadow, bytes];
            let copied = b.op(data.opcode, &operands, data.payload, &[]);
            self.augmented.unsteady.insert(copied);
        }
        let step = Step::CopyUnions {
            to: to_shadow,
            from: from_active.then_some(from_shadow),
            bytes,
            shape,
            constant,
        };
        self.augmented.steps.insert(op, step);
        Ok(())
    }

    /// Whether the caller knows that any word behind a pointer may be a float at times, and at others something else.
    fn is_union_behind(&self, pointer: Value) -> bool {
        self.sweep
            .objects
            .class_of(&self.augmented.function, pointer)
            .is_some_and(|(class, _)| self.sweep.objects.is_union(class))
    }

    /// Whether floats share their place with other things in the memory behind a pointer.
    pub(super) fn is_in_union(&self, pointer: Value) -> bool {
        let objects = self.sweep.objects;
        let class = objects.class_of(&self.augmented.function, pointer);
        class.is_some_and(|(class, _)| {
            self.sweep.activities.is_active_class(class) && objects.has_unions(class)
        })
    }

    /// Where words are moved that may be anything, floats of other types than those of eight bytes would not be recognised.
    fn refuse_other_floats(&mut self, op: Op, pointer: Value) -> Result<(), Error> {
        let objects = self.sweep.objects;
        let other = objects
            .class_of(&self.augmented.function, pointer)
            .is_some_and(|(class, _)| {
                objects
                    .fields(class)
                    .any(|field| field.kind.may_be_other_float())
            });
        match other {
            true => Err(self.error(op, Refusal::MixedCopy)),
            false => Ok(()),
        }
    }

    fn visit_fill(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        self.keep(region, op);
        let [to, byte, bytes] = data.operands[..] else {
            unreachable!("a verified fill has three operands")
        };
        if !self.has_shadow(to) {
            return Ok(());
        }
        let to_shadow = self.shadow(op, to)?;
        let bytes = self.bytes_to_fill(region, op, to, to_shadow, bytes);
        if !self.works.contains(op) {
            let mut b = self.builder(region, op);
            b.op(Opcode::Fill, &[to_shadow, byte, bytes], data.payload, &[]);
            return Ok(());
        }
        if self.is_union_behind(to) {
            return self.visit_fill_of_unions(region, op, to_shadow, bytes);
        }
        let zero = matches!(
            self.augmented.function.constant_of(byte),
            Some(Constant::Bits(0))
        );
        let cells = if zero {
            self.cells_of(
                op,
                Cells::of_zeros(self.sweep.objects, &self.augmented.function, to),
            )?
        } else {
            self.cells(op, to, None)?
        };
        if cells.has_unions() {
            return self.visit_fill_of_unions(region, op, to_shadow, bytes);
        }
        let mut b = self.builder(region, op);
        memory::fill_other_fields(&mut b, &cells, to_shadow, byte, bytes);
        if cells.has_floats() {
            let step = Step::Fill {
                to: to_shadow,
                bytes,
                cells,
            };
            self.augmented.steps.insert(op, step);
        }
        Ok(())
    }

    /// Numbers are their own shadows.
    fn visit_fill_of_unions(
        &mut self,
        region: Region,
        op: Op,
        shadow: Value,
        bytes: Value,
    ) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        let (to, byte) = (data.operands[0], data.operands[1]);
        if self.is_plain(to) {
            return Err(self.error(op, Refusal::UnionFilled));
        }
        self.refuse_given(op, to)?;
        let mut b = self.builder(region, op);
        let filled = b.op(Opcode::Fill, &[shadow, byte, bytes], data.payload, &[]);
        self.augmented.unsteady.insert(filled);
        let step = Step::FillUnions { to: shadow, bytes };
        self.augmented.steps.insert(op, step);
        Ok(())
    }

    /// What the bytes from a pointer on are, to which something is copied.
    fn cells(&mut self, op: Op, to: Value, from: Option<Value>) -> Result<Cells, Error> {
        let bytes = self.augmented.function.ops[op].operands[2];
        let cells = Cells::at(
            self.sweep.objects,
            &self.augmented.function,
            to,
            from,
            bytes,
        );
        self.cells_of(op, cells)
    }

    fn cells_of(&mut self, op: Op, cells: Result<Cells, UnknownBytes>) -> Result<Cells, Error> {
        cells.map_err(|what| self.error(op, Refusal::UnknownBytes { what }))
    }

    // ---- regions

    /// Gives pointers that flow into and out of regions company by their shadows.
    fn visit_structured(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        let returns = data
            .regions
            .iter()
            .any(|&inner| !self.augmented.function.ends_in_trap(inner));
        let reversed = self.works.contains(op) && returns;
        if reversed {
            self.augmented.steps.insert(op, Step::Regions);
        }
        // Carried values start with their shadows, which the regions must know before they are visited.
        let (first_initial, first_arg) = match data.opcode {
            Opcode::For => (3, 1),
            _ => (0, 0),
        };
        let is_loop = matches!(data.opcode, Opcode::For | Opcode::Loop);
        // An integer may carry an address into the loop, and none out of it.
        let shadowed: Vec<usize> = (0..data.results.len())
            .filter(|&index| {
                let carried =
                    || self.augmented.function.regions[data.regions[0]].args[first_arg + index];
                let has_shadow = |value| self.has_shadow(value) || self.is_part(value);
                has_shadow(data.results[index]) || (is_loop && has_shadow(carried()))
            })
            .collect();
        if is_loop {
            for &index in &shadowed {
                let start = self.shadow(op, data.operands[first_initial + index])?;
                self.function().ops[op].operands.push(start);
                let arg = self.augmented.function.regions[data.regions[0]].args[first_arg + index];
                let ty = self.augmented.function.ty(arg);
                let shadow = self.function().add_argument(data.regions[0], ty);
                self.set_shadow(arg, shadow);
            }
        }
        for &inner in &data.regions {
            self.visit(inner)?;
            let terminator = self.augmented.function.terminator(inner);
            let end = self.augmented.function.ops[terminator].clone();
            if end.opcode == Opcode::Trap {
                continue;
            }
            let skip = usize::from(end.opcode == Opcode::Again);
            for &index in &shadowed {
                let shadow = self.shadow(op, end.operands[skip + index])?;
                self.function().ops[terminator].operands.push(shadow);
            }
        }
        for &index in &shadowed {
            let ty = self.augmented.function.ty(data.results[index]);
            let shadow = self.function().add_result(op, ty);
            self.set_shadow(data.results[index], shadow);
        }
        let mut number = None;
        if data.opcode == Opcode::Loop && reversed {
            let trips = count_trips(self.function(), op);
            self.augmented.trips.insert(op, trips);
            number = Some(trips.number);
        }
        if is_loop && reversed {
            self.remember_updates(op, number);
        }
        self.keep(region, op);
        Ok(())
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

/// Makes a general loop count its iterations.
fn count_trips(function: &mut Function, op: Op) -> Trips {
    let body = function.ops[op].regions[0];
    let zero = function.int(Type::I64, 0);
    function.ops[op].operands.push(zero);
    let number = function.add_argument(body, Type::I64);
    let end = function.regions[body]
        .ops
        .pop()
        .expect("a region ends in a terminator");
    let mut b = Builder::new(function, body);
    b.location = b.function.ops[op].location;
    let one = b.i64(1);
    let next = b.binary(Opcode::Add, number, one);
    function.ops[end].operands.push(next);
    function.regions[body].ops.push(end);
    let count = function.add_result(op, Type::I64);
    function.set_name(count, "trips");
    Trips { number, count }
}
