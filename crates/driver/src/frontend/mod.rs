//! A front end is a way in which programs ask for derivatives: Rust by macros, C and C++ by calls in Enzyme's convention.
//!
//! [`FrontEnd`] is what the rest of the driver knows of one: how requests are found, what programs say of functions, and what is done to the working module for the language's sake. [`Interface`] is what it knows of
//! one request: how its arguments travel to the function that is differentiated (the *root*) and from there to the derivative. Nothing outside of a front end's own folder asks which one it is.

pub(crate) mod c;
mod define;
pub(crate) mod rust;

use crate::gather::Gathered;
use crate::options::Options;
use crate::registrations::Registration;
use crate::report::Diagnostic;
use crate::requests::{FoundRequest, Given};
pub(crate) use define::adopt_target;
use ferrozyme_diff as diff;
use ferrozyme_export::Team;
use ferrozyme_ir::{self as ir, FunctionId, GlobalId};
use ferrozyme_llvm::{Context, Module, Value};
use ferrozyme_refusal::{Argument, Terms};

/// All front ends. Each looks into every module of the program.
pub(crate) const FRONT_ENDS: [&dyn FrontEnd; 2] = [&rust::Rust, &c::C];

/// What a language leaves open and promises, as far as derivatives have to know.
#[derive(Debug)]
pub(crate) struct Language {
    /// In which terms refusals are worded.
    pub(crate) terms: &'static Terms,
    /// Its compiler, as modules name it that it wrote. No two front ends have the same.
    pub(crate) compiler: &'static str,
    /// Whether programs make shadows of all they use: who keeps pointers to active memory in a global gives the shadows their values as well, and who calls functions through pointers may put tables of derivatives into the
    /// shadows of their addresses. Otherwise programs change their statics whenever they like, and shadows hold the addresses of the primals.
    pub(crate) makes_shadows: bool,
    /// Whether inactive functions may write numbers to memory that they are given. Where types do not say what a function may write, nothing would be left.
    pub(crate) inactive_writes: bool,
    /// Who runs the bodies of teams, unless the program has functions for that.
    pub(crate) team: Team,
}

/// The front end whose compiler wrote a module: the one that the module names. Any other module is taken for one of C, the last: rustc always names itself, but clang does not with `-fno-ident`, and
/// other compilers follow the conventions of C.
pub(crate) fn author_of(module: Module<'_>) -> &'static dyn FrontEnd {
    let idents = module.named_metadata("llvm.ident");
    let names: Vec<String> = idents
        .iter()
        .filter_map(|ident| ident.operands().first().copied().flatten()?.as_text())
        .collect();
    let [others @ .., last] = FRONT_ENDS;
    let is_named = |front_end: &&dyn FrontEnd| {
        let compiler = front_end.language().compiler;
        names.iter().any(|name| name.contains(compiler))
    };
    others.into_iter().find(is_named).unwrap_or(last)
}

/// A way in which programs ask for derivatives.
pub(crate) trait FrontEnd: Sync {
    /// Its language.
    fn language(&self) -> &'static Language;

    /// What the author of a program calls a function with this symbol.
    fn name_of(&self, symbol: &str) -> String;

    /// Whether a module asks for something that [`FrontEnd::replace_requests`] answers.
    fn asks(&self, module: Module<'_>) -> bool;

    /// Replaces all requests of a module by calls of derivatives, and gives what they ask for. `identity` tells the module from others.
    fn replace_requests<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        identity: &str,
    ) -> Result<Vec<FoundRequest>, Vec<Diagnostic>>;

    /// What a module, which is the input `source`, says of functions and globals.
    fn read_registrations<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        source: usize,
        identity: &str,
    ) -> Result<Vec<Registration>, Diagnostic>;

    /// Changes a module that was answered before it is linked into the working module.
    fn before_linking<'c>(&self, _context: &'c Context, _source: Module<'c>) {}

    /// Changes what has come into the working module, before it is looked at what that needs in turn. It sees again what it has changed.
    fn after_linking<'c>(&self, _context: &'c Context, _module: Module<'c>) {}

    /// Gives the rules of functions that have come into the working module the form that the differentiator wants. Those that have it already are left alone.
    fn adapt_registrations<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        registrations: &mut [Registration],
    ) -> Result<(), Diagnostic>;

    /// The passes that run on the working module for the language's sake, before it is optimised.
    fn adapt_module<'c>(
        &self,
        context: &'c Context,
        gathered: &Gathered<'c>,
        options: &Options,
    ) -> Result<(), Vec<Diagnostic>>;

    /// Marks the loops of imported functions that the program means for several threads.
    fn mark_loops(&self, _module: &mut ir::Module) {}

    /// Refuses what can only be told of the optimised module.
    fn check_module<'c>(&self, _context: &'c Context, _module: Module<'c>) -> Vec<Diagnostic> {
        Vec::new()
    }

    /// Completes functions that belong to a derivative, as soon as they are made.
    fn adapt_derivative(&self, _module: &mut ir::Module, _made: &[FunctionId]) {}

    /// Removes what only had to be there until derivatives were made.
    fn clean_up(&self, _module: Module<'_>) {}
}

/// How the arguments of one request travel.
pub(crate) trait Interface: std::fmt::Debug {
    /// Who asks.
    fn front_end(&self) -> &'static dyn FrontEnd;

    /// The user's function behind what the root calls, where it is a library that asks.
    fn find_given<'c>(&self, _context: &'c Context, _primal: Value<'c>) -> Option<Given> {
        None
    }

    /// Defines the root in the working module.
    fn build_root<'c>(&self, context: &'c Context, module: Module<'c>, request: &FoundRequest);

    /// What is asked of the differentiator, for the root.
    fn asked(&self, root: FunctionId) -> diff::Request;

    /// Tells the differentiator what is known of the root's parameters.
    fn describe_parameters(&self, parameters: &mut [ir::Param]);

    /// Changes what is known of the root's parameters to what holds for their shadows too, once it is optimised.
    fn describe_shadows(&self, _module: &mut ir::Module, _root: FunctionId) {}

    /// For each parameter of the root: whether its shadow can be made for the call. Nothing if none can.
    fn can_be_shaped(&self) -> Vec<bool> {
        Vec::new()
    }

    /// Defines the function that the request calls, around the derivative of the root. It starts with fresh `shadows` of statics, and makes the shadows of parameters that are `shaped`.
    fn wrap(
        &self,
        module: &mut ir::Module,
        symbol: &str,
        derivative: FunctionId,
        shadows: &[GlobalId],
        shaped: &[bool],
    ) -> FunctionId;

    /// Defines it as a function that stops the program with a text, if that can be had.
    fn stop(&self, _module: &mut ir::Module, _symbol: &str, _text: &str) -> Option<FunctionId> {
        None
    }

    /// Whether a parameter of the root has no derivative.
    fn is_constant(&self, parameter: usize) -> bool;

    /// What a parameter of the root is to the author of `function`.
    fn argument(&self, parameter: usize, function: &str) -> Option<Argument>;

    /// The arguments, a line each, for people.
    fn explain_arguments(&self, root: &ir::Function, asked: &diff::Request) -> String;
}

impl Gathered<'_> {
    /// The front ends whose programs the working module is made of: those that ask, and those whose compilers wrote what was linked.
    pub(crate) fn front_ends(&self) -> Vec<&'static dyn FrontEnd> {
        let takes_part = |front_end: &&dyn FrontEnd| {
            let compiler = front_end.language().compiler;
            let asks = |request: &FoundRequest| request.language().compiler == compiler;
            self.requests.iter().any(asks) || self.compilers.contains(compiler)
        };
        FRONT_ENDS.into_iter().filter(takes_part).collect()
    }
}
