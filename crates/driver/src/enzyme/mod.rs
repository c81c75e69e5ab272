//! Requests in Enzyme's calling convention, as C and C++ programs write them.
//!
//! ```text
//! %m = load i32, ptr @enzyme_dup
//! %r = call double (ptr, ...) @__enzyme_autodiff(ptr @f, i32 %m, ptr %x, ptr %dx, double 2.0)
//! ==>
//! %r = call double @__ferrozyme_request_f(ptr %x, ptr %dx, double 2.0)
//! ```
//!
//! The function that is called now is made here, and inlined later: it takes arguments as the call has them and gives the result that the call wants. In between it calls
//! `__ferrozyme_derivative_…`, whose parameters and results are those that the differentiator gives to the derivative of the *root*: the primal with aggregates as lists of scalars.
//!
//! | file | what lives there |
//! |---|---|
//! | `entries.rs` | which functions are entry points, which globals markers |
//! | `arguments.rs` | reads a call: the primal, and what is given for each of its parameters |
//! | `trace.rs` | what a value is, seen through casts and memory that is written once |
//! | `resolve.rs` | inlines functions that are told by their callers what to differentiate |
//! | `thunk.rs` | the function that takes the place of the entry point in one call |
//! | `batch.rs` | calls of a function several times at once
//! | `results.rs` | the results of a derivative in the form that the call wants |
//! | `registrations.rs`, `rules.rs` | what programs say of functions, and the form that it has here |
//! | `arrays.rs` | what C says of arrays |
//! | `casts.rs` | `dynamic_cast` |
//! | `exceptions.rs` | C++ exceptions that are caught in what is differentiated |
//! | `contexts.rs` | sets of shadows of global variables |
//! | `globals.rs` | global variables whose shadows are declared |
//! | `inactive.rs` | inactive global variables
//! | `hints.rs` | functions that say something and do nothing
//! | `openmp.rs` | parallel regions
//! | `addresses.rs` | functions of C's library whose address is taken |
//! | `root.rs` | the function that is differentiated |

mod addresses;
mod arguments;
mod arrays;
mod batch;
mod casts;
mod contexts;
mod entries;
mod exceptions;
mod globals;
mod hints;
mod inactive;
mod openmp;
mod outside;
mod registrations;
mod resolve;
mod results;
mod root;
mod rules;
mod thunk;
mod trace;
mod variadic;

pub(crate) use addresses::wrap_library_addresses;
pub(crate) use arrays::mark_arrays;
pub(crate) use casts::{DYNAMIC_CAST, follow_casts};
pub(crate) use entries::has_requests;
pub(crate) use exceptions::end_at_handlers;
pub(crate) use hints::{count_iterations, declare_hints, take_hints};
pub(crate) use inactive::detach_inactive_globals;
pub(crate) use openmp::call_parallel_regions;
pub(crate) use outside::copy_from_outside;
pub(crate) use registrations::read_enzyme_registrations;
pub(crate) use root::build_value_root;
pub(crate) use rules::adapt_registrations;
pub(crate) use thunk::LOCAL_MARK;
pub(crate) use variadic::{LISTED, pass_lists};

use crate::descriptor::Mode;
use crate::report::{Diagnostic, Location};
use crate::requests::FoundRequest;
use crate::wrap::reset_shadows;
use ferrozyme_diff as diff;
use ferrozyme_ir::{Function, FunctionId, GlobalId, Layout, Module as Loops, Opcode, Payload};
use ferrozyme_llvm::{Context, Module};
use std::collections::HashMap;

/// What is known of the memory behind parameters, by their positions.
pub(crate) type Layouts = Vec<(usize, Layout)>;

/// A derivative whose arguments are values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ValueRequest {
    /// Forward or reverse.
    pub(crate) mode: Mode,
    /// How many tangents forward mode carries.
    pub(crate) width: u32,
    /// The name of the function that is differentiated, for people.
    pub(crate) primal: String,
    /// The entry point, for people.
    pub(crate) derivative: String,
    /// Where the first such call stands.
    pub(crate) location: Option<Location>,
    /// What the parameters of the root mean.
    pub(crate) parameters: Vec<Parameter>,
    /// What its results mean.
    pub(crate) results: Vec<diff::Activity>,
    /// Whether the derivative returns the results of the function too.
    pub(crate) with_primal: bool,
    /// Which sweeps of reverse mode it has.
    pub(crate) part: Part,
    /// What is in the memory that parameters of the root lead to, as far as it is known.
    pub(crate) layouts: Layouts,
}

/// Which sweeps of reverse mode a derivative has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Part {
    /// Both.
    Whole,
    /// The forward sweep, which gives a tape.
    Augmented,
    /// The reverse sweep, which takes it.
    Reverse {
        /// Whether the tape can be used again.
        keep_tape: bool,
    },
}

/// What the names of the two halves end in; both have the same root.
pub(crate) const HALVES: [&str; 3] = [".augmented", ".reverse", ".repeatable"];

/// What a parameter of the root means for the derivative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Parameter {
    pub(crate) activity: diff::Activity,
    /// Nobody looks at the memory behind it afterwards.
    pub(crate) discarded: bool,
    /// Its shadow is in the same memory as that of another parameter, as far as the call shows.
    pub(crate) meets: bool,
    /// Which argument of the function it is (a part of), from 1 on.
    pub(crate) number: usize,
}

impl ValueRequest {
    /// What is asked of the differentiator.
    pub(crate) fn asked(&self, root: FunctionId) -> diff::Request {
        diff::Request {
            function: root,
            args: self.parameters.iter().map(|one| one.activity).collect(),
            results: self.results.clone(),
            primal: self.with_primal,
            width: self.width,
            discarded: self.parameters.iter().map(|one| one.discarded).collect(),
            keep_order: false,
            shaped: Vec::new(),
            choices: diff::Choices::default(),
        }
    }
}

/// Replaces all calls of entry points in a module, and gives what they ask for. `unit` names the module among others.
pub(crate) fn replace_calls<'c>(
    context: &'c Context,
    module: Module<'c>,
    unit: &str,
) -> Result<Vec<FoundRequest>, Vec<Diagnostic>> {
    resolve::resolve_functions(context, module);
    let mut found: Vec<FoundRequest> = Vec::new();
    let mut problems = entries::misuses(context, module);
    let declared = globals::declared_shadows(module)?;
    let shelf = contexts::Shelf::of(module);
    let (calls, of_contexts): (Vec<_>, Vec<_>) = entries::entry_calls(module)
        .into_iter()
        .partition(|(entry, _)| entry.takes_function());
    for (entry, call) in calls {
        if entry == entries::Entry::Table {
            problems.extend(
                thunk::replace_table(context, module, call)
                    .err()
                    .map(|one| *one),
            );
            continue;
        }
        if entry == entries::Entry::Batch {
            problems.extend(
                batch::replace_batch(context, module, call)
                    .err()
                    .map(|one| *one),
            );
            continue;
        }
        match arguments::read_call(context, entry, call).and_then(|mut read| {
            globals::pass_globals(context, module, &mut read, &declared, &shelf)?;
            thunk::replace_call(context, module, unit, &read)
        }) {
            Ok(Some(request)) if found.iter().all(|other| other.symbol != request.symbol) => {
                found.push(request);
            }
            Ok(_) => {}
            Err(problem) => problems.push(*problem),
        }
    }
    // Derivatives ask how contexts are made.
    for (entry, call) in of_contexts {
        let replaced = contexts::replace_call(context, module, &shelf, entry, call);
        problems.extend(replaced.err().map(|one| *one));
    }
    match problems.is_empty() {
        true => Ok(found),
        false => Err(problems),
    }
}

/// Defines `name`, which takes and gives what the derivative does, after shadows of globals got what they start with.
pub(crate) fn forward_to(
    module: &mut Loops,
    name: &str,
    derivative: FunctionId,
    shadows: &[GlobalId],
) -> FunctionId {
    let code = &module.functions[derivative];
    let (params, results) = (code.params.clone(), code.results.clone());
    let mut function = Function::define(name, params, results.clone());
    let arguments = function.arguments().to_vec();
    let mut build = ferrozyme_ir::Builder::at_body(&mut function);
    reset_shadows(&mut build, module, shadows);
    let call = build.call(derivative, &arguments, &results);
    let values = build.function.ops[call].results.clone();
    build.ret(&values);
    match module.function_named(name) {
        Some(id) => {
            module.functions[id] = function;
            id
        }
        None => module.functions.push(function),
    }
}

/// A copy of a reverse sweep, and of all that it calls, that releases nothing, so that it can run again with the same tape.
pub(crate) fn without_releases(module: &mut Loops, reverse: FunctionId) -> FunctionId {
    let mut copies = HashMap::new();
    let mut work = vec![reverse];
    while let Some(id) = work.pop() {
        if copies.contains_key(&id) {
            continue;
        }
        let mut copy = module.functions[id].clone();
        copy.name = module.fresh_name(&format!("{}.repeatable", copy.name));
        for region in copy.regions.keys().collect::<Vec<_>>() {
            let ops = std::mem::take(&mut copy.regions[region].ops);
            let kept = ops
                .into_iter()
                .filter(|op| copy.ops[*op].opcode != Opcode::Free);
            copy.regions[region].ops = kept.collect();
        }
        work.extend(callees(&copy).filter(|callee| module.functions[*callee].body.is_some()));
        copies.insert(id, module.functions.push(copy));
    }
    for copy in copies.values() {
        for op in module.functions[*copy].ops.values_mut() {
            if let Payload::Callee(callee) = &mut op.payload
                && let Some(other) = copies.get(callee)
            {
                *callee = *other;
            }
        }
    }
    copies[&reverse]
}

fn callees(function: &Function) -> impl Iterator<Item = FunctionId> {
    function.ops.values().filter_map(|op| match op.payload {
        Payload::Callee(callee) => Some(callee),
        _ => None,
    })
}
