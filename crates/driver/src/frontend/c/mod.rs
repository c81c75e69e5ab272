//! Requests in Enzyme's calling convention, as C and C++ programs write them.
//!
//! ```text
//! %m = load i32, ptr @enzyme_dup
//! %r = call double (ptr, ...) @__enzyme_autodiff(ptr @f, i32 %m, ptr %x, ptr %dx, double 2.0)
//! ==>
//! %r = call double @__ferrozyme_request_f(ptr %x, ptr %dx, double 2.0)
//! ```
//!
//! The new function, a thunk, is made here and inlined later. It takes the arguments of the call and returns the result that the call expects. In between it calls
//! `__ferrozyme_derivative_…`, whose parameters and results are those of the derivative of the *root*: the primal with aggregates as lists of scalars.
//!
//! | file | what lives there |
//! |---|---|
//! | `entries.rs` | which functions are entry points, which globals markers |
//! | `arguments.rs` | reads a call: the primal, and the argument, shadow and activity of each parameter |
//! | `resolve.rs` | inlines wrappers whose callers choose the function to differentiate |
//! | `thunk.rs` | the function that replaces the entry point in one call |
//! | `batch.rs` | `__enzyme_batch` |
//! | `loops.rs` | loops that are written as calls |
//! | `results.rs` | the results of a derivative in the form that the call expects |
//! | `registrations.rs`, `rules.rs` | registrations, and their form in the driver |
//! | `arrays.rs` | C's rules about arrays |
//! | `casts.rs` | `dynamic_cast` |
//! | `exceptions.rs` | C++ exceptions that are caught in differentiated code |
//! | `contexts.rs` | sets of shadows of global variables |
//! | `globals.rs` | globals with a declared shadow |
//! | `inactive.rs` | inactive global variables |
//! | `hints.rs` | hints without an effect |
//! | `openmp.rs` | parallel regions |
//! | `variadic.rs` | functions with variable arguments |
//! | `root.rs` | the function that is differentiated |
//! | `unit.rs` | one translation unit: requests become calls, and derivatives are added to the unit or left for the link |

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
mod loops;
mod openmp;
mod registrations;
mod resolve;
mod results;
mod root;
mod rules;
mod thunk;
pub(crate) mod unit;
mod variadic;

use super::define::{define, reset_shadows};
use super::{FrontEnd, Interface, Language};
use crate::gather::Gathered;
use crate::marks::take_marks;
use crate::options::Options;
use crate::registrations::Registration;
use crate::report::Diagnostic;
use crate::requests::FoundRequest;
use ferrozyme_diff as diff;
use ferrozyme_export::Team;
use ferrozyme_ir::{Function, FunctionId, GlobalId, Layout, Module as Loops, Param};
use ferrozyme_library::demangle;
use ferrozyme_llvm::{Context, Module};
use ferrozyme_opt::infer_facts;
use ferrozyme_refusal::{self as terms, Argument};
use std::fmt::Write;
use thunk::LOCAL_MARK;
use variadic::LISTED;

/// What is known of the memory behind parameters, by their positions.
pub(crate) type Layouts = Vec<(usize, Layout)>;

/// How a derivative takes values as its arguments.
#[derive(Debug)]
pub(crate) struct ValueRequest {
    /// What the parameters of the root mean.
    pub(crate) parameters: Vec<Parameter>,
    /// What its results mean.
    pub(crate) results: Vec<diff::Activity>,
    /// Whether the derivative returns the results of the function too.
    pub(crate) with_primal: bool,
    /// What is in the memory that parameters of the root lead to, as far as it is known.
    pub(crate) layouts: Layouts,
}

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

/// The front end of C and C++.
pub(crate) struct C;

static LANGUAGE: Language = Language {
    terms: &terms::C,
    compiler: "clang",
    makes_shadows: true,
    inactive_writes: false,
    team: Team::OpenMp,
};

impl FrontEnd for C {
    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn name_of(&self, symbol: &str) -> String {
        let plain = symbol.split(LOCAL_MARK).next().unwrap_or(symbol);
        demangle(plain.trim_end_matches(LISTED))
    }

    fn asks(&self, module: Module<'_>) -> bool {
        entries::has_requests(module)
    }

    fn replace_requests<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        identity: &str,
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
            if entry.is_loop() {
                let replaced = loops::replace_loop(context, module, entry, call);
                problems.extend(replaced.err().map(|one| *one));
                continue;
            }
            match arguments::read_call(context, entry, call).and_then(|mut read| {
                if entry != entries::Entry::Accelerate {
                    globals::pass_globals(context, module, &mut read, &declared, &shelf)?;
                }
                thunk::replace_call(context, module, identity, &read)
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

    fn read_registrations<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        source: usize,
        identity: &str,
    ) -> Result<Vec<Registration>, Diagnostic> {
        registrations::read_enzyme_registrations(context, module, source, identity)
    }

    fn adapt_registrations<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        registrations: &mut [Registration],
    ) -> Result<(), Diagnostic> {
        rules::adapt_registrations(context, module, registrations)
    }

    fn adapt_module<'c>(
        &self,
        context: &'c Context,
        gathered: &Gathered<'c>,
        _options: &Options,
    ) -> Result<(), Vec<Diagnostic>> {
        let module = gathered.module;
        inactive::detach_inactive_globals(context, module, &gathered.registrations);
        hints::declare_hints(context, module);
        openmp::call_parallel_regions(context, module)?;
        variadic::pass_lists(context, module);
        exceptions::end_at_handlers(context, module);
        casts::follow_casts(context, module);
        arrays::mark_arrays(context, module);
        Ok(())
    }

    fn mark_loops(&self, module: &mut Loops) {
        take_marks(module);
    }

    fn adapt_derivative(&self, module: &mut Loops, made: &[FunctionId]) {
        hints::count_iterations(module, made);
    }

    fn clean_up(&self, module: Module<'_>) {
        hints::take_hints(module);
    }
}

impl Interface for ValueRequest {
    fn front_end(&self) -> &'static dyn FrontEnd {
        &C
    }

    fn build_root<'c>(&self, context: &'c Context, module: Module<'c>, request: &FoundRequest) {
        root::build_value_root(context, module, request);
    }

    fn asked(&self, root: FunctionId) -> diff::Request {
        diff::Request {
            function: root,
            args: self.parameters.iter().map(|one| one.activity).collect(),
            results: self.results.clone(),
            primal: self.with_primal,
            width: 1,
            discarded: self.parameters.iter().map(|one| one.discarded).collect(),
            keep_order: false,
            shaped: Vec::new(),
            choices: diff::Choices::default(),
        }
    }

    fn describe_parameters(&self, parameters: &mut [Param]) {
        for (index, layout) in &self.layouts {
            parameters[*index].facts.layout = Some(layout.clone());
        }
    }

    /// C lets `restrict` pointers meet in what is only read, so that callers may also give one shadow for both, which is written. Nothing is said any more of parameters that are only
    /// read, and of those whose shadows the call shows to meet. Others that are written in part are believed to lie apart as a whole.
    fn describe_shadows(&self, module: &mut Loops, root: FunctionId) {
        infer_facts(module, root);
        let params = module.functions[root].params.iter_mut();
        for (param, given) in params.zip(&self.parameters) {
            param.facts.noalias &= !param.facts.readonly && !given.meets;
        }
    }

    /// The function takes and gives what the derivative does.
    fn wrap(
        &self,
        module: &mut Loops,
        symbol: &str,
        derivative: FunctionId,
        shadows: &[GlobalId],
        _shaped: &[bool],
    ) -> FunctionId {
        let code = &module.functions[derivative];
        let (params, results) = (code.params.clone(), code.results.clone());
        let mut function = Function::define(symbol, params, results.clone());
        let arguments = function.arguments().to_vec();
        let mut build = ferrozyme_ir::Builder::at_body(&mut function);
        reset_shadows(&mut build, module, shadows);
        let call = build.call(derivative, &arguments, &results);
        let values = build.function.ops[call].results.clone();
        build.ret(&values);
        define(module, function)
    }

    fn is_constant(&self, parameter: usize) -> bool {
        let known = self.parameters.get(parameter);
        known.is_some_and(|known| known.activity == diff::Activity::Const)
    }

    fn argument(&self, parameter: usize, function: &str) -> Option<Argument> {
        Some(Argument::Number {
            number: self.parameters.get(parameter)?.number,
            function: function.to_owned(),
        })
    }

    fn explain_arguments(&self, root: &Function, asked: &diff::Request) -> String {
        let mut text = String::new();
        for (index, (param, activity)) in root.params.iter().zip(&asked.args).enumerate() {
            let _ = writeln!(text, "  {index}  {:<5}  {}", activity.name(), param.ty);
        }
        text
    }
}
