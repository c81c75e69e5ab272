//! Rust: the macros of the `ferrozyme` crate write requests with a constant descriptor, and everything travels in slots of memory.
//!
//! | file | what lives there |
//! |---|---|
//! | `requests.rs`, `descriptor.rs` | finds requests, and reads what they ask for from constants |
//! | `accelerated.rs` | whether accelerated functions run their requests or their bodies |
//! | `registrations.rs`, `rules.rs` | what programs say of functions, and rules with several results |
//! | `passing.rs`, `root.rs`, `wrap.rs` | how slots of memory become parameters: the root, and the function that a request calls |
//! | `given.rs` | which closure or function was given to `grad` and its relatives |
//! | `shapes.rs` | describes types that the program asks about |
//! | `formatting.rs` | code of the program that formatting runs |
//! | `rayon.rs` | parallel iterators as loops |
//! | `mathematics.rs` | functions of other crates that are known by their names |

mod accelerated;
mod descriptor;
mod formatting;
mod given;
mod mathematics;
mod passing;
mod rayon;
mod registrations;
mod requests;
mod root;
mod rules;
mod shapes;
mod wrap;

pub use registrations::REGISTRATIONS;
pub use requests::REQUEST;

use crate::frontend::{FrontEnd, Interface, Language};
use crate::gather::Gathered;
use crate::options::Options;
use crate::registrations::Registration;
use crate::report::Diagnostic;
use crate::requests::{FoundRequest, Given};
use descriptor::{Activity, Descriptor, Slot};
use ferrozyme_diff as diff;
use ferrozyme_export::Team;
use ferrozyme_ir::{self as ir, FunctionId, GlobalId, Range, Scalar};
use ferrozyme_library::demangle;
use ferrozyme_llvm::{Context, Module, Value};
use ferrozyme_refusal::{Argument, RUST};
use passing::{Passing, passing_of, slot_of};
use std::fmt::Write;

/// The front end of Rust.
pub(crate) struct Rust;

static LANGUAGE: Language = Language {
    terms: &RUST,
    compiler: "rustc",
    makes_shadows: false,
    inactive_writes: true,
    team: Team::Caller,
};

impl FrontEnd for Rust {
    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn name_of(&self, symbol: &str) -> String {
        demangle(symbol)
    }

    fn asks(&self, module: Module<'_>) -> bool {
        module.function(REQUEST).is_some()
            || shapes::asks_about_types(module)
            || accelerated::has_accelerated(module)
    }

    fn replace_requests<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        _identity: &str,
    ) -> Result<Vec<FoundRequest>, Vec<Diagnostic>> {
        let found = requests::replace_requests(context, module)?;
        shapes::describe_types(context, module);
        accelerated::take_requests(context, module);
        Ok(found)
    }

    fn read_registrations<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        source: usize,
        _identity: &str,
    ) -> Result<Vec<Registration>, Diagnostic> {
        registrations::read_registrations(context, module, source)
    }

    fn before_linking<'c>(&self, context: &'c Context, source: Module<'c>) {
        shapes::forget_shapes(context, source);
        accelerated::take_bodies(source);
    }

    fn after_linking<'c>(&self, context: &'c Context, module: Module<'c>) {
        rayon::fold_parallel_iterators(context, module);
    }

    fn adapt_registrations<'c>(
        &self,
        context: &'c Context,
        module: Module<'c>,
        registrations: &mut [Registration],
    ) -> Result<(), Diagnostic> {
        rules::return_results(context, module, registrations);
        Ok(())
    }

    fn adapt_module<'c>(
        &self,
        context: &'c Context,
        gathered: &Gathered<'c>,
        options: &Options,
    ) -> Result<(), Vec<Diagnostic>> {
        rayon::define_splits(context, gathered.module);
        if !options.strict {
            mathematics::call_library_functions(context, gathered.module);
        }
        Ok(())
    }

    fn mark_loops(&self, module: &mut ir::Module) {
        rayon::mark_parallel_iterators(module);
    }

    fn check_module<'c>(&self, context: &'c Context, module: Module<'c>) -> Vec<Diagnostic> {
        formatting::refuse_changes_in_formatting(context, module)
    }
}

impl Interface for Descriptor {
    fn front_end(&self) -> &'static dyn FrontEnd {
        &Rust
    }

    fn find_given<'c>(&self, context: &'c Context, primal: Value<'c>) -> Option<Given> {
        given::find_given(context, primal)
    }

    fn build_root<'c>(&self, context: &'c Context, module: Module<'c>, request: &FoundRequest) {
        root::build_slot_root(context, module, request, &self.slots);
    }

    fn asked(&self, root: FunctionId) -> diff::Request {
        passing::request_for(self, root)
    }

    fn describe_parameters(&self, params: &mut [ir::Param]) {
        let mut index = 0;
        for slot in &self.slots {
            match passing_of(slot) {
                Passing::Float(_) => index += usize::from(!slot.result),
                Passing::Memory => {
                    params[index].facts.layout = slot.layout.clone();
                    index += 1;
                }
                Passing::Words(words) => {
                    for word in &words {
                        if word.scalar == Scalar::Ptr {
                            params[index].facts.layout = word.pointee.clone();
                        }
                        index += 1;
                    }
                    // The length of a slice: no object has more than `isize::MAX` bytes.
                    if let [pointer, length] = words.as_slice()
                        && (slot.shared || slot.unique)
                        && length.scalar == Scalar::Int(64)
                        && let Some(pointee) = &pointer.pointee
                    {
                        params[index - 1].facts.range = Some(Range {
                            min: 0,
                            max: i128::from(i64::MAX) / i128::from(pointee.stride.max(1)),
                        });
                    }
                }
            }
        }
    }

    fn can_be_shaped(&self) -> Vec<bool> {
        passing::can_be_shaped(self)
    }

    fn wrap(
        &self,
        module: &mut ir::Module,
        symbol: &str,
        derivative: FunctionId,
        shadows: &[GlobalId],
        shaped: &[bool],
    ) -> FunctionId {
        wrap::wrap_derivative(module, symbol, self, derivative, shadows, shaped)
    }

    fn stop(&self, module: &mut ir::Module, symbol: &str, text: &str) -> Option<FunctionId> {
        Some(wrap::stopping_derivative(module, symbol, self, text))
    }

    fn is_constant(&self, parameter: usize) -> bool {
        slot_of(self, parameter).is_some_and(|slot| slot.activity == Activity::Const)
    }

    fn argument(&self, parameter: usize, _function: &str) -> Option<Argument> {
        let slot = slot_of(self, parameter)?;
        Some(Argument::Named(slot.name.clone()))
    }

    fn explain_arguments(&self, _root: &ir::Function, _asked: &diff::Request) -> String {
        let name_of = |slot: &Slot| match slot.result {
            true => "result".to_owned(),
            false => slot.name.clone(),
        };
        let width = self
            .slots
            .iter()
            .map(|slot| name_of(slot).len())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for slot in &self.slots {
            let layout = match &slot.layout {
                Some(layout) => format!("layout {layout}"),
                None => format!("{} bytes of unknown layout", slot.size),
            };
            let activity = format!("{:?}", slot.activity);
            let _ = writeln!(
                text,
                "  {:<width$}  {activity:<14}  {layout}",
                name_of(slot)
            );
        }
        text
    }
}
