//! Composes the derivatives that can be requested from the sweeps.
//!
//! *Combined* reverse mode is one function: forward sweep, then reverse sweep. *Split* reverse mode is two: the augmented
//! forward sweep returns a tape, which the reverse sweep consumes. Calls inside a differentiated function are always split,
//! since the rest of the caller runs between the two sweeps; so recursion needs nothing more.

mod joined;

use crate::activity::{Activities, Giver};
use crate::augment::{
    Augmented, CalleeDerivative, Callees, Lists, Reversible, SplitKey, Task, augment,
};
use crate::contractions::see_loops;
use crate::deferral::{self, ListKey, Manner};
use crate::error::Error;
use crate::given_memory;
use crate::globals::{self, Use};
use crate::memory::Cells;
use crate::overwritten::find_overwritten;
use crate::plan::{Decision, Plan, Surroundings, plan};
use crate::request::{Activity, Choices, Request};
use crate::resolved_calls::with_resolved_calls;
use crate::reverse::{Forward, reverse};
use crate::rules;
use crate::shadows::{Derivatives, Findings, Signature};
use crate::statics::{Assumption, assume_constants};
use crate::tape::{self, Tape};
use crate::tape::{pack_tape, unpack_tape};
use ferrozyme_ir::{
    Builder, Function, FunctionId, GlobalId, Module, Opcode, Param, Symbol, Type, Value,
};
use ferrozyme_opt::alias::Aliases;
use ferrozyme_refusal::Refusal;
use joined::join_split;
use rustc_hash::FxHashMap;

/// The two functions of split reverse mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// Runs the primal, and returns its results, the shadows of duplicated results, and a tape.
    pub augmented: FunctionId,
    /// Runs backwards, and consumes the tape.
    pub reverse: FunctionId,
}

/// Makes the reverse derivative of a function as one function.
///
/// # Errors
/// If something active in it cannot be differentiated, or the request does not fit the function.
pub fn differentiate_reverse(module: &mut Module, request: &Request) -> Result<FunctionId, Error> {
    if request.choices.split && !request.results.contains(&Activity::Duplicated) {
        let split = differentiate_split(module, request)?;
        return Ok(join_split(module, split, request));
    }
    see_loops(module);
    with_resolved_calls(module, request, |module, resolved| {
        assume_constants(module, |module, assumption| {
            Session::new(module, assumption, resolved).combined(request)
        })
    })
}

/// Makes the reverse derivative of a function as two functions.
///
/// # Errors
/// If something active in it cannot be differentiated, or the request does not fit the function.
pub fn differentiate_split(module: &mut Module, request: &Request) -> Result<Split, Error> {
    see_loops(module);
    let derivative = with_resolved_calls(module, request, |module, resolved| {
        assume_constants(module, |module, assumption| {
            let mut session = Session::new(module, assumption, resolved);
            let key = session.check(request, Lists::Heap)?;
            session.split_for(key)
        })
    })?;
    Ok(Split {
        augmented: derivative.augmented,
        reverse: derivative.reverse,
    })
}

/// What is only moved may be anything, whatever type it is moved as.
pub(crate) fn see_words(module: &mut Module) {
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for function in functions {
        ferrozyme_opt::move_words(module, function);
    }
}

/// What is found out about a function on the way to its reverse derivative.
pub(crate) struct Study {
    pub activities: Activities,
    pub augmented: Augmented,
    pub plan: Plan,
}

/// Analyses a function for combined reverse mode, up to the caching plan.
///
/// # Errors
/// If something active in it cannot be differentiated, or the request does not fit the function.
pub(crate) fn study_reverse(module: &mut Module, request: &Request) -> Result<Study, Error> {
    see_loops(module);
    with_resolved_calls(module, request, |module, resolved| {
        assume_constants(module, |module, assumption| {
            let mut session = Session::new(module, assumption, resolved);
            let key = session.check(request, Lists::Stack)?;
            session.study(&key)
        })
    })
}

/// One request, with all the derivatives of callees that it takes.
struct Session<'m> {
    module: &'m mut Module,
    assumption: &'m mut Assumption,
    /// The function that is asked about, once that is known to make sense.
    asked: Option<FunctionId>,
    /// What shadows of globals are called behind the global's name.
    suffix: String,
    /// The tables of derivatives of functions whose addresses are used.
    tables: FxHashMap<FunctionId, GlobalId>,
    findings: Findings,
    splits: FxHashMap<SplitKey, CalleeDerivative>,
    in_progress: Vec<SplitKey>,
    /// The manners of releasing memory that entries of a list for anything name by their position.
    manners: Option<Vec<Manner>>,
    /// Whether a register of shadows is kept, since memory of the caller's may be released.
    has_register: bool,
    /// The layouts that notes in the register name by their position.
    released: Vec<Cells>,
    /// What [`Request::keep_order`] says.
    keep_order: bool,
    /// What [`Request::choices`] says.
    choices: Choices,
}

impl Derivatives for Session<'_> {
    fn module(&self) -> &Module {
        self.module
    }

    fn parts(&mut self) -> (&mut Module, &mut Findings) {
        (self.module, &mut self.findings)
    }

    fn shadow_in(&self, global: GlobalId, _: usize, in_unions: bool) -> (String, Use) {
        let data = &self.module.globals[global];
        let purpose = match in_unions && data.constant && data.bytes.is_some() {
            true => Use::Tell,
            false => Use::Add,
        };
        (self.suffix.clone(), purpose)
    }

    /// The table that stands for a function's derivatives where its address is used: forward sweep, reverse sweep.
    fn function_table(&mut self, function: FunctionId) -> Result<GlobalId, Error> {
        if let Some(&table) = self.tables.get(&function) {
            return Ok(table);
        }
        let call = Signature::behind_pointer::<Reversible<'_>>(self.module, function)?;
        let name = format!("{}.shadow", self.module.functions[function].name);
        let name = self.module.fresh_name(&name);
        let table = self.module.globals.push(globals::zeros(name, 16));
        self.tables.insert(function, table);
        let derivative = self.split_for(SplitKey {
            overwritten: vec![true; call.args.len()],
            call,
            lists: Lists::Shared,
        })?;
        self.module.globals[table].relocations = vec![
            (0, Symbol::Function(derivative.augmented)),
            (8, Symbol::Function(derivative.reverse)),
        ];
        Ok(table)
    }
}

impl Callees for Session<'_> {
    fn lists(&mut self, function: FunctionId, split: bool) -> Vec<ListKey> {
        let mut lists =
            deferral::lists_of(self.module, &mut self.findings.objects, function, split);
        lists.extend(self.has_register.then_some(ListKey::Register));
        lists
    }

    fn manners(&mut self) -> &[Manner] {
        self.manners
            .get_or_insert_with(|| Manner::all_in(self.module))
    }

    fn number_of_layout(&mut self, cells: &Cells) -> usize {
        let known = self.released.iter().position(|other| other == cells);
        known.unwrap_or_else(|| {
            self.released.push(cells.clone());
            self.released.len() - 1
        })
    }

    fn split(&mut self, key: SplitKey) -> Result<CalleeDerivative, Error> {
        let under_way = self.in_progress.iter().find(|other| {
            other.call.serves(&key.call)
                && (&other.overwritten, other.lists) == (&key.overwritten, key.lists)
        });
        match under_way {
            Some(key) => Ok(self.splits[key].clone()),
            None => self.split_for(key),
        }
    }
}

impl<'m> Session<'m> {
    fn new(module: &'m mut Module, assumption: &'m mut Assumption, resolved: bool) -> Session<'m> {
        Session {
            suffix: globals::fresh_suffix(module, "shadow"),
            tables: FxHashMap::default(),
            module,
            assumption,
            asked: None,
            findings: Findings::new(resolved),
            splits: FxHashMap::default(),
            in_progress: Vec::new(),
            manners: None,
            has_register: false,
            released: Vec::new(),
            keep_order: false,
            choices: Choices::default(),
        }
    }

    /// Checks the request, and finds out what calls leave alone, which the analyses want to know. Gives what determines the derivative.
    fn check(&mut self, request: &Request, lists: Lists) -> Result<SplitKey, Error> {
        self.keep_order = request.keep_order;
        self.choices = request.choices;
        let function = &self.module.functions[request.function];
        request.check(function, true)?;
        let call = Signature::of_request::<Reversible<'_>>(self.module, request);
        let function = &self.module.functions[call.function];
        if function.body.is_none() {
            return Err(Error::no_body(function));
        }
        see_words(self.module);
        ferrozyme_opt::infer_facts(self.module, call.function);
        self.asked = Some(call.function);
        let objects = self.findings.objects.get(self.module, call.function);
        self.has_register = given_memory::is_needed(&objects);
        // What follows split reverse mode may overwrite memory between the sweeps.
        let overwritten = vec![lists == Lists::Heap; call.args.len()];
        Ok(SplitKey {
            call,
            overwritten,
            lists,
        })
    }

    /// Everything up to the plan.
    fn study(&mut self, key: &SplitKey) -> Result<Study, Error> {
        let split = key.lists != Lists::Stack;
        let giver = match self.asked == Some(key.call.function) {
            true => Giver::User,
            false => Giver::Call,
        };
        let (module, cache) = (&*self.module, &mut self.findings.objects);
        let (objects, activities) = key.call.analyse(module, cache, giver, self.assumption)?;
        let overwritten = find_overwritten(
            self.module,
            &self.module.functions[key.call.function],
            &key.overwritten,
            split,
        );
        let task = Task {
            objects: &objects,
            activities: &activities,
            call: &key.call,
            overwritten: &overwritten,
            split,
            lists: key.lists,
        };
        let augmented = augment(self, &task)?;
        // The flags are about the primal's parameters; shadows lie between them in the forward sweep.
        let mut overwritten = Vec::new();
        for (&flag, &activity) in key.overwritten.iter().zip(&key.call.args) {
            overwritten.push(flag);
            if activity == Activity::Duplicated {
                overwritten.push(flag);
            }
        }
        let surroundings = Surroundings {
            overwritten: &overwritten,
            split,
            keep_order: self.keep_order,
            choices: self.choices,
        };
        let plan = plan(self.module, &augmented, &activities, &surroundings);
        Ok(Study {
            activities,
            augmented,
            plan,
        })
    }

    fn combined(&mut self, request: &Request) -> Result<FunctionId, Error> {
        let key = self.check(request, Lists::Stack)?;
        if request.results.contains(&Activity::Duplicated) {
            let name = &self.module.functions[request.function].name;
            return Err(Error::of(name, Refusal::DuplicatedResult));
        }
        let primal_args = self.module.functions[key.call.function]
            .arguments()
            .to_vec();
        let mut study = self.study(&key)?;
        let tape = tape::save(&mut study.augmented, &study.plan, true);
        let mut target = study.augmented.function.clone();
        let wanted = gradients_of(&target, &key, &primal_args);
        let mut results = if request.primal {
            target.results.clone()
        } else {
            Vec::new()
        };
        results.extend(wanted.iter().map(|&value| target.ty(value)));
        let body = target.body();
        let terminator = target.terminator(body);
        let returned = target.ops[terminator].clone();
        if returned.opcode == Opcode::Return {
            target.regions[body].ops.pop();
            let seeds = add_seeds(&mut target, &key.call.results, &returned.operands);
            let gradients = reverse(&forward(&study, &tape), &mut target, None, &seeds, &wanted);
            self.release_lists(&mut target, &study.augmented.pending, false);
            let mut b = Builder::new(&mut target, body);
            b.location = returned.location;
            let mut values: Vec<Value> = Vec::new();
            if request.primal {
                values.extend(&returned.operands);
            }
            for (gradient, &value) in gradients.into_iter().zip(&wanted) {
                let ty = b.ty(value);
                values.push(gradient.unwrap_or_else(|| b.zero(ty)));
            }
            b.ret(&values);
        } else {
            add_seeds(&mut target, &key.call.results, &[]);
        }
        let mut position = 0;
        for (index, &activity) in key.call.args.iter().enumerate() {
            target.params[position].facts.discarded = request.is_discarded(index);
            position += match activity {
                Activity::Duplicated => 2,
                _ => 1,
            };
        }
        target.results = results;
        target.name = self.module.fresh_name(&format!(
            "{}.grad",
            self.module.functions[request.function].name
        ));
        let derivative = self.module.functions.push(target);
        ferrozyme_opt::infer_effects(self.module, derivative);
        Ok(derivative)
    }

    /// The derivative for a key, made if it is not there yet.
    fn split_for(&mut self, key: SplitKey) -> Result<CalleeDerivative, Error> {
        if let Some(done) = self.splits.get(&key) {
            return Ok(done.clone());
        }
        let lists = self.lists(key.call.function, true);
        let derivative = self.declare(&key, lists);
        self.splits.insert(key.clone(), derivative.clone());
        self.in_progress.push(key.clone());
        let built = self.build_split(&key, &derivative);
        self.in_progress.pop();
        if let Err(error) = built {
            self.splits.remove(&key);
            return Err(error);
        }
        Ok(self.splits[&key].clone())
    }

    /// Declares both functions, so that recursive calls find them.
    fn declare(&mut self, key: &SplitKey, lists: Vec<ListKey>) -> CalleeDerivative {
        let primal = &self.module.functions[key.call.function];
        let name = primal.name.clone();
        let mut params: Vec<Param> = Vec::new();
        for (param, &activity) in primal.params.iter().zip(&key.call.args) {
            params.push(param.ty.into());
            if activity == Activity::Duplicated {
                params.push(param.ty.into());
            }
        }
        let of = |activity: Activity, types: &[Type], activities: &[Activity]| -> Vec<Type> {
            types
                .iter()
                .zip(activities)
                .filter(|(_, other)| **other == activity)
                .map(|(&ty, _)| match activity {
                    Activity::Active => adjoint_type(ty),
                    _ => ty,
                })
                .collect()
        };
        let mut results = primal.results.clone();
        results.extend(of(Activity::Duplicated, &primal.results, &key.call.results));
        results.push(Type::PTR);
        let uses = vec![true; params.len()];
        let mut reverse_params = params.clone();
        let seeds = of(Activity::Active, &primal.results, &key.call.results);
        reverse_params.extend(seeds.into_iter().map(Param::from));
        reverse_params.push(Type::PTR.into());
        let arg_types: Vec<Type> = primal.params.iter().map(|param| param.ty).collect();
        let gradients = of(Activity::Active, &arg_types, &key.call.args);
        let passed = key.lists.passed(&lists);
        params.extend(passed.iter().map(|_| Param::from(Type::PTR)));
        let augmented_name = self.module.fresh_name(&format!("{name}.augmented"));
        let augmented =
            self.module
                .functions
                .push(Function::declare(augmented_name, params, results));
        let reverse_name = self.module.fresh_name(&format!("{name}.reverse"));
        let reverse =
            self.module
                .functions
                .push(Function::declare(reverse_name, reverse_params, gradients));
        CalleeDerivative {
            augmented,
            reverse,
            uses,
            lists: passed,
        }
    }

    fn build_split(&mut self, key: &SplitKey, derivative: &CalleeDerivative) -> Result<(), Error> {
        let primal_args = self.module.functions[key.call.function]
            .arguments()
            .to_vec();
        let mut study = self.study(key)?;
        let mut tape = tape::save(&mut study.augmented, &study.plan, false);
        if key.lists == Lists::Heap {
            tape.kept
                .extend(study.augmented.pending.iter().map(|(_, list)| *list));
        }
        let reverse = self.build_reverse(key, derivative, &study, &tape, &primal_args);
        let uses = uses_of_params(&reverse, derivative.uses.len());
        self.module.functions[derivative.reverse] = reverse;
        let augmented = self.build_augmented(key, derivative, study, &tape);
        self.module.functions[derivative.augmented] = augmented;
        // Whoever calls them is planned by what they leave alone.
        ferrozyme_opt::infer_effects(self.module, derivative.augmented);
        ferrozyme_opt::infer_effects(self.module, derivative.reverse);
        if let Some(done) = self.splits.get_mut(key) {
            done.uses = uses;
        }
        Ok(())
    }

    fn build_reverse(
        &mut self,
        key: &SplitKey,
        derivative: &CalleeDerivative,
        study: &Study,
        tape: &Tape,
        primal_args: &[Value],
    ) -> Function {
        let source = &study.augmented.function;
        let declared = &self.module.functions[derivative.reverse];
        let mut params = declared.params.clone();
        let pointers_from_tape = saves_pointers(study);
        let aliases = Aliases::new(self.module, source);
        for (param, original) in params
            .iter_mut()
            .zip(&source.params)
            .take(derivative.uses.len())
        {
            param.facts = original.facts.clone();
        }
        for (param, &value) in params.iter_mut().zip(source.arguments()) {
            // What is reached through a pointer from the tape, or one that the forward sweep stored, may be reached through a
            // parameter as well.
            param.facts.noalias &= !pointers_from_tape && !aliases.pointers().is_escaped(value);
        }
        let mut target = Function::define(declared.name.clone(), params, declared.results.clone());
        target.facts.level = source.facts.level;
        let body = target.body();
        let mut known = FxHashMap::default();
        for (position, &value) in source
            .arguments()
            .iter()
            .enumerate()
            .take(derivative.uses.len())
        {
            let param = target.arguments()[position];
            known.insert(value, param);
            if let Some(name) = &source.values[value].name {
                target.set_name(param, name.clone());
            }
        }
        let tape_param = *target.arguments().last().expect("the tape is last");
        target.set_name(tape_param, "tape");
        let wanted = gradients_of(source, key, primal_args);
        let returned = &source.ops[source.terminator(source.body())];
        if returned.opcode != Opcode::Return {
            // The forward sweep never returns, so nobody can call this.
            Builder::new(&mut target, body).trap("the forward sweep does not return");
            return target;
        }
        unpack_tape(&mut target, source, tape, tape_param, &mut known);
        let first_seed = derivative.uses.len();
        let seeds: Vec<(Value, Value)> = active_values(&key.call.results, &returned.operands)
            .into_iter()
            .enumerate()
            .map(|(index, value)| (value, target.arguments()[first_seed + index]))
            .collect();
        for &(value, seed) in &seeds {
            name_derivative(&mut target, source, value, seed);
        }
        let lists: Vec<(ListKey, Value)> = match key.lists {
            Lists::Heap => study
                .augmented
                .pending
                .iter()
                .map(|(key, list)| (key.clone(), known[list]))
                .collect(),
            _ => Vec::new(),
        };
        let gradients = reverse(
            &forward(study, tape),
            &mut target,
            Some(known),
            &seeds,
            &wanted,
        );
        self.release_lists(&mut target, &lists, true);
        let mut b = Builder::new(&mut target, body);
        b.location = returned.location;
        let values: Vec<Value> = gradients
            .into_iter()
            .zip(&wanted)
            .map(|(gradient, &value)| {
                let ty = adjoint_type(source.ty(value));
                gradient.unwrap_or_else(|| b.zero(ty))
            })
            .collect();
        b.ret(&values);
        target
    }

    fn build_augmented(
        &mut self,
        key: &SplitKey,
        derivative: &CalleeDerivative,
        study: Study,
        tape: &Tape,
    ) -> Function {
        let mut target = study.augmented.function;
        let declared = &self.module.functions[derivative.augmented];
        target.name = declared.name.clone();
        target.results = declared.results.clone();
        let body = target.body();
        let terminator = target.terminator(body);
        let returned = target.ops[terminator].clone();
        if returned.opcode != Opcode::Return {
            return target;
        }
        target.regions[body].ops.pop();
        let packed = pack_tape(&mut target, tape);
        let mut values = returned.operands.to_vec();
        for (&value, &activity) in returned.operands.iter().zip(&key.call.results) {
            if activity == Activity::Duplicated {
                let shadow = study.augmented.shadows.get(value);
                values.push(shadow.map_or(value, |lanes| lanes[0]));
            }
        }
        values.push(packed);
        let mut b = Builder::new(&mut target, body);
        b.location = returned.location;
        b.ret(&values);
        target
    }

    fn release_lists(&mut self, target: &mut Function, lists: &[(ListKey, Value)], on_heap: bool) {
        let register = ListKey::Register;
        // What is on the other lists is looked at for the last time by what works off the register.
        let (first, then): (Vec<_>, Vec<_>) = lists.iter().partition(|(key, _)| *key == register);
        for (key, list) in first.into_iter().chain(then) {
            let release = if *key == register {
                given_memory::settle_function(self.module, &self.released)
            } else {
                let manners = self.manners().to_vec();
                deferral::release_function(self.module, key, &manners)
            };
            let mut b = Builder::at_body(target);
            b.call(release, &[*list], &[]);
            if on_heap {
                b.free(*list);
            }
        }
    }
}

/// The type of the adjoint of an active value: itself for a float, a float for an integer that carries one.
fn adjoint_type(ty: Type) -> Type {
    rules::derivative_type(ty).unwrap_or(ty)
}

fn forward<'a>(study: &'a Study, tape: &'a Tape) -> Forward<'a> {
    Forward {
        augmented: &study.augmented,
        activities: &study.activities,
        plan: &study.plan,
        tape,
    }
}

/// Whether the tape holds pointers that were computed from parameters.
fn saves_pointers(study: &Study) -> bool {
    let function = &study.augmented.function;
    study.plan.decisions.iter().any(|(value, &decision)| {
        decision == Decision::Save
            && function.ty(value).is_ptr()
            && !function.def_op(value).is_some_and(|(op, _)| {
                matches!(function.ops[op].opcode, Opcode::Alloc | Opcode::Stack)
            })
    })
}

/// The arguments whose gradients are results.
fn gradients_of(function: &Function, key: &SplitKey, primal_args: &[Value]) -> Vec<Value> {
    debug_assert!(primal_args.iter().all(|&arg| function.values.is_valid(arg)));
    active_values(&key.call.args, primal_args)
}

fn active_values(activities: &[Activity], values: &[Value]) -> Vec<Value> {
    values
        .iter()
        .zip(activities)
        .filter(|(_, activity)| **activity == Activity::Active)
        .map(|(&value, _)| value)
        .collect()
}

/// Adds a parameter for the adjoint of each active result.
fn add_seeds(
    target: &mut Function,
    results: &[Activity],
    returned: &[Value],
) -> Vec<(Value, Value)> {
    let body = target.body();
    let mut seeds = Vec::new();
    for (index, &activity) in results.iter().enumerate() {
        if activity != Activity::Active {
            continue;
        }
        let ty = target.results[index];
        target.params.push(ty.into());
        let seed = target.add_argument(body, ty);
        if let Some(&value) = returned.get(index) {
            let name = target.values[value].name.as_deref().unwrap_or("result");
            let name = format!("d{name}");
            target.set_name(seed, name);
            seeds.push((value, seed));
        }
    }
    seeds
}

fn name_derivative(target: &mut Function, source: &Function, value: Value, seed: Value) {
    let name = source.values[value].name.as_deref().unwrap_or("result");
    target.set_name(seed, format!("d{name}"));
}

/// Which of the first parameters a function uses.
fn uses_of_params(function: &Function, count: usize) -> Vec<bool> {
    let mut used = vec![false; count];
    let positions: FxHashMap<Value, usize> = function
        .arguments()
        .iter()
        .take(count)
        .enumerate()
        .map(|(position, &value)| (value, position))
        .collect();
    for op in ferrozyme_ir::all_ops(function) {
        for operand in &function.ops[op].operands {
            if let Some(&position) = positions.get(operand) {
                used[position] = true;
            }
        }
    }
    used
}
