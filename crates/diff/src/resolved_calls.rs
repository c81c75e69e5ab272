//! Indirect calls whose targets are known, as choices between direct calls.
//!
//! The derivative of a function behind a pointer is made once for all call sites, without what they know: the layouts of arguments, union words, constant memory. So a method behind a
//! trait object that only moves words, or objects of several types behind one pointer, are refused. Where the points-to analysis knows which functions a call may mean, the call becomes one of a *dispatcher*, which compares
//! addresses; each function is then differentiated as its call sites need it, as all directly called functions are.
//!
//! ```text
//!                                                             func @dispatch(%target: ptr, %0: ptr) -> (ptr) {
//!                                                               %1 = icmp eq ptr %target, @clone_a
//! %copy = call_indirect %target(ptr %data) -> (ptr)             %2 = if %1 -> (ptr) {
//!                                                                 %3 = call @clone_a(%0)
//!                       →                                         yield %3
//!                                                               } else { …; trap }
//! %copy = call @dispatch(%target, %data)                        return %2
//!                                                             }
//! ```
//!
//! It is done for requests that ask for it (`Choices::resolve`), and not for all, since each call site may cost derivatives of its own, and tables of derivatives also serve callers that are not known.
//!
//! Which functions a call may mean holds for calls from the function that is differentiated. So its derivative calls copies of the functions with resolved calls and of what calls them, with
//! the facts that follow; all other callers find the functions as they were.
//!
//! Assumes: the module verifies. Guarantees: the same results, and a program that stops with a message where the target is none of the functions, which the points-to analysis rules out.

use crate::error::Error;
use crate::objects::{Class, Objects, ObjectsCache, Source};
use crate::request::Request;
use ferrozyme_ir::{
    Builder, Constant, Function, FunctionId, IntPredicate, Module, Op, Opcode, Param, Payload,
    Type, Value, all_ops, returning_ops,
};
use ferrozyme_refusal::Refusal;
use rustc_hash::{FxHashMap, FxHashSet};

/// From how many functions at most a dispatcher chooses.
const CANDIDATES: usize = 64;

/// How often calls are resolved that only functions make which were found behind pointers before.
const ROUNDS: usize = 16;

/// Makes a derivative with resolved calls if the request asks for that and all calls through pointers can be resolved, otherwise with the calls as they are. The functions of the module are as before afterwards.
///
/// # Errors
/// Those of the attempt.
pub(crate) fn with_resolved_calls<T>(
    module: &mut Module,
    request: &Request,
    attempt: impl FnOnce(&mut Module, bool) -> Result<T, Error>,
) -> Result<T, Error> {
    if !request.choices.resolve || !makes_indirect_calls(module) {
        return attempt(module, false);
    }
    let untouched = module.clone();
    let Some(resolved) = resolve_calls(module, request.function) else {
        *module = untouched;
        return attempt(module, false);
    };
    let made = attempt(module, true);
    match made {
        Ok(_) => set_apart(module, &untouched, resolved),
        Err(_) => *module = untouched,
    }
    made
}

/// Whether there are calls through pointers below a function, and all of them can be resolved: only then does [`Choices::resolve`](crate::Choices) make a difference.
pub fn can_resolve_calls(module: &Module, function: FunctionId) -> bool {
    makes_indirect_calls(module)
        && resolve_calls(&mut module.clone(), function).is_some_and(|resolved| !resolved.is_empty())
}

/// Makes the functions that were there before what they were, where they reach resolved calls. What is new calls copies of them.
fn set_apart(module: &mut Module, before: &Module, resolved: FxHashSet<FunctionId>) {
    let (old, mut pending): (Vec<FunctionId>, Vec<FunctionId>) = module
        .functions
        .keys()
        .partition(|&id| before.functions.get(id).is_some());
    let reaching = callers_of(module, &old, resolved);
    let mut copies: FxHashMap<FunctionId, FunctionId> = FxHashMap::default();
    while let Some(caller) = pending.pop() {
        for op in all_ops(&module.functions[caller]) {
            let Payload::Callee(callee) = module.functions[caller].ops[op].payload else {
                continue;
            };
            if !reaching.contains(&callee) {
                continue;
            }
            let copy = *copies.entry(callee).or_insert_with(|| {
                let copy = copy_function(module, callee);
                pending.push(copy);
                copy
            });
            module.functions[caller].ops[op].payload = Payload::Callee(copy);
        }
    }
    for id in reaching {
        module.functions[id] = before.functions[id].clone();
    }
}

/// Some functions, and those of a list that call them, directly or not.
fn callers_of(
    module: &Module,
    list: &[FunctionId],
    mut reached: FxHashSet<FunctionId>,
) -> FxHashSet<FunctionId> {
    loop {
        let before = reached.len();
        for &id in list {
            let function = &module.functions[id];
            let mut ops = all_ops(function).into_iter();
            let reaches = |op: Op| match function.ops[op].payload {
                Payload::Callee(callee) => reached.contains(&callee),
                _ => false,
            };
            if ops.any(reaches) {
                reached.insert(id);
            }
        }
        if reached.len() == before {
            return reached;
        }
    }
}

/// A copy of a function, with its rule if it has one.
fn copy_function(module: &mut Module, function: FunctionId) -> FunctionId {
    let mut copy = module.functions[function].clone();
    copy.name = module.fresh_name(&format!("{}.resolved", copy.name));
    let copy = module.functions.push(copy);
    if let Some(rule) = module.rules.get(&function).cloned() {
        module.rules.insert(copy, rule);
    }
    copy
}

/// Whether anything in a module calls through pointers.
pub fn makes_indirect_calls(module: &Module) -> bool {
    let mut functions = module.functions.values();
    functions.any(|function| {
        let mut ops = returning_ops(function).into_iter();
        ops.any(|op| function.ops[op].opcode == Opcode::CallIndirect)
    })
}

/// An indirect call, which becomes one of a dispatcher.
struct Site {
    function: FunctionId,
    op: Op,
    target: Value,
    args: Vec<Type>,
    results: Vec<Type>,
    /// The functions that it may mean, as far as that is known.
    candidates: Vec<FunctionId>,
}

/// Resolves all indirect calls that a function reaches. Gives the changed functions; none if there is a call that cannot be resolved.
///
/// What is called directly is seen by the points-to analysis: functions found behind pointers may call others, and put other functions where calls find them. So all calls are looked at again until nothing
/// is new.
fn resolve_calls(module: &mut Module, root: FunctionId) -> Option<FxHashSet<FunctionId>> {
    let mut sites: Vec<Site> = Vec::new();
    let mut dispatchers = FxHashMap::default();
    for _ in 0..ROUNDS {
        let mut cache = ObjectsCache::new();
        let whole = cache.get(module, root);
        let mut called = whole.classes().filter(|&class| whole.is_called(class));
        if called.any(|class| code_of(module, &whole, class).is_none()) {
            return None;
        }
        let mut is_new = add_sites(module, root, &mut sites);
        for site in &mut sites {
            let objects = cache.get(module, site.function);
            let candidates = candidates(module, site, &objects, &whole);
            if candidates.len() > CANDIDATES {
                return None;
            }
            is_new |= candidates != site.candidates;
            site.candidates = candidates;
        }
        if !is_new {
            return Some(sites.iter().map(|site| site.function).collect());
        }
        for site in &sites {
            let Site {
                args,
                results,
                candidates,
                ..
            } = site;
            let key = (args.clone(), results.clone(), candidates.clone());
            let dispatcher = *dispatchers
                .entry(key)
                .or_insert_with(|| add_dispatcher(module, args, results, candidates));
            let data = &mut module.functions[site.function].ops[site.op];
            data.opcode = Opcode::Call;
            data.payload = Payload::Callee(dispatcher);
        }
    }
    None
}

/// Adds the indirect calls of a function and of what it calls directly. Whether there are any.
fn add_sites(module: &Module, root: FunctionId, sites: &mut Vec<Site>) -> bool {
    let before = sites.len();
    let mut seen = FxHashSet::from_iter([root]);
    let mut pending = vec![root];
    while let Some(id) = pending.pop() {
        let function = &module.functions[id];
        for op in returning_ops(function) {
            let data = &function.ops[op];
            let types = |values: &[Value]| values.iter().map(|&v| function.ty(v)).collect();
            if data.opcode == Opcode::CallIndirect {
                sites.push(Site {
                    function: id,
                    op,
                    target: data.target(),
                    args: types(data.arguments()),
                    results: types(&data.results),
                    candidates: Vec::new(),
                });
            }
            if let Payload::Callee(callee) = data.payload
                && seen.insert(callee)
            {
                pending.push(callee);
            }
        }
    }
    sites.len() > before
}

/// The functions that a class is the code of; none if addresses of others may be in memory where pointers to it are found.
fn code_of(module: &Module, objects: &Objects, class: Class) -> Option<Vec<FunctionId>> {
    let is_own = |source| match source {
        Source::Stack(_) | Source::Alloc(_) | Source::Call(_) => true,
        Source::Global(global) => module.globals[global].constant,
        _ => false,
    };
    let mut holders = objects
        .classes()
        .filter(|&holder| objects.pointees(holder).any(|pointee| pointee == class));
    let is_known = holders.all(|holder| objects.sources(holder).all(is_own));
    is_known.then(|| objects.functions_in(class)).flatten()
}

/// The functions of the right type that a call may mean: those that its own function knows, if it knows all, or all that the whole program knows the addresses of.
fn candidates(module: &Module, site: &Site, objects: &Objects, whole: &Objects) -> Vec<FunctionId> {
    let function = &module.functions[site.function];
    let own = match function.constant_of(site.target) {
        Some(&Constant::Function(callee)) => Some(vec![callee]),
        _ => objects
            .class_of(function, site.target)
            .filter(|&(class, _)| !objects.has_unknown_origin(class))
            .and_then(|(class, _)| code_of(module, objects, class)),
    };
    let mut candidates = own.unwrap_or_else(|| whole.functions().collect());
    candidates.sort_unstable();
    candidates.dedup();
    candidates.retain(|&candidate| {
        let candidate = &module.functions[candidate];
        let params = candidate.params.iter().map(|param| param.ty);
        params.eq(site.args.iter().copied()) && candidate.results == site.results
    });
    candidates
}

fn add_dispatcher(
    module: &mut Module,
    args: &[Type],
    results: &[Type],
    targets: &[FunctionId],
) -> FunctionId {
    let params = std::iter::once(&Type::PTR).chain(args);
    let params: Vec<Param> = params.map(|&ty| ty.into()).collect();
    let name = module.fresh_name("dispatch");
    let mut dispatcher = Function::define(name, params, results.to_vec());
    let arguments = dispatcher.arguments().to_vec();
    let mut b = Builder::at_body(&mut dispatcher);
    match choose(&mut b, &arguments, results, targets) {
        Some(values) => b.ret(&values),
        None => b.trap(&Refusal::NoTableBehindShadow.stop_text()),
    };
    module.functions.push(dispatcher)
}

/// Calls the one of some functions that the first argument is the address of. Gives its results; none if there is nothing to choose from.
fn choose(
    b: &mut Builder<'_>,
    arguments: &[Value],
    results: &[Type],
    targets: &[FunctionId],
) -> Option<Vec<Value>> {
    let (&first, others) = targets.split_first()?;
    let address = b.function.constant(Type::PTR, Constant::Function(first));
    let is_meant = b.icmp(IntPredicate::Eq, arguments[0], address);
    let (op, then_region, else_region) = b.if_else(is_meant, results);
    b.inside(then_region, |b| {
        let call = b.call(first, &arguments[1..], results);
        let values = b.function.ops[call].results.to_vec();
        b.yields(&values);
    });
    b.inside(else_region, |b| {
        match choose(b, arguments, results, others) {
            Some(values) => b.yields(&values),
            None => b.trap(&Refusal::NoTableBehindShadow.stop_text()),
        }
    });
    Some(b.function.ops[op].results.to_vec())
}
