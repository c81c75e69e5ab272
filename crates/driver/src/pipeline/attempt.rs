//! The attempts at the derivatives of a program.

use super::{Clock, differentiate_prepared};
use crate::bits::follow_bits;
use crate::derive::Refusals;
use crate::dispatch::{Choice, Dispatched, dispatch_unknown_calls, has_unknown_calls};
use crate::gather::Gathered;
use crate::inputs::Inputs;
use crate::ladder::{Attempts, Relaxation, Scope, climb};
use crate::options::Options;
use crate::prepare::{choose_inlining, prepare};
use crate::report::DerivativeReport;
use crate::requests::FoundRequest;
use crate::rounding::detach_rounding;
use ferrozyme_llvm::{Context, TargetMachine};
use std::collections::HashSet;

/// Maximum number of rounds of indirect-call resolution.
const MAX_ROUNDS: usize = 4;

/// Which calls through pointers become choices, and between what.
pub(crate) struct Choosing<'a> {
    /// Where the functions are.
    pub(crate) program: &'a dyn Inputs,
    /// The roots whose calls are meant.
    pub(crate) roots: &'a HashSet<String>,
}

/// The attempts at the derivatives of a prepared module.
struct ProgramAttempts<'a, 'c> {
    context: &'c Context,
    gathered: &'a mut Gathered<'c>,
    /// The module as it was prepared, where it may be needed once more.
    prepared: Option<Gathered<'c>>,
    /// Where more functions are.
    program: &'a dyn Inputs,
    machine: &'a TargetMachine,
    options: Options,
    /// Whether there may be late refusals.
    late: bool,
    /// The roots that reach unresolved indirect calls.
    calling: HashSet<String>,
    /// Those whose calls through pointers become choices between functions of the program.
    calling_pointers: HashSet<String>,
    is_first: bool,
    clock: &'a mut Clock,
}

/// Adds the derivatives to a prepared module, in one way or another.
pub(super) fn attempt<'c>(
    context: &'c Context,
    gathered: &mut Gathered<'c>,
    program: &dyn Inputs,
    machine: &TargetMachine,
    options: &Options,
    clock: &mut Clock,
) -> Result<Vec<DerivativeReport>, Refusals> {
    let roots = gathered.requests.iter().map(|request| request.root.clone());
    let calling: HashSet<String> = roots
        .filter(|root| has_unknown_calls(gathered.module, root))
        .collect();
    let mut options = options.clone();
    let late = std::mem::take(&mut options.perturbation.late);
    climb(&mut ProgramAttempts {
        context,
        prepared: (late || !calling.is_empty()).then(|| gathered.duplicate()),
        gathered,
        program,
        machine,
        options,
        late,
        calling,
        calling_pointers: HashSet::new(),
        is_first: true,
        clock,
    })
}

impl Attempts for ProgramAttempts<'_, '_> {
    type Made = Vec<DerivativeReport>;
    type Refused = Refusals;
    const SCOPE: Scope = Scope::Program;

    fn attempt(&mut self) -> Result<Vec<DerivativeReport>, Refusals> {
        let is_first = std::mem::take(&mut self.is_first);
        if let Some(prepared) = self.prepared.as_ref().filter(|_| !is_first) {
            self.gathered.replace_by(prepared.duplicate());
        }
        let choices = self.choose()?;
        detach_rounding(self.context, self.gathered.module);
        follow_bits(self.context, self.gathered.module);
        let names = names_of(&self.gathered.requests);
        self.program.progress(&format!("differentiates {names}"));
        let derived = differentiate_prepared(
            self.context,
            self.gathered,
            &choices,
            &self.calling_pointers,
            &self.options,
            self.clock,
        )?;
        Ok(derived.reports)
    }

    fn relax(&mut self, relaxation: Relaxation, told: &Refusals) -> bool {
        match relaxation {
            Relaxation::Choices if self.calling_pointers.is_empty() => {
                let refused = told
                    .roots
                    .iter()
                    .filter(|root| self.calling.contains(*root));
                self.calling_pointers = refused.cloned().collect();
                !self.calling_pointers.is_empty()
            }
            Relaxation::LateRefusals => {
                let before = std::mem::replace(&mut self.options.perturbation.late, self.late);
                before != self.late
            }
            _ => false,
        }
    }
}

impl ProgramAttempts<'_, '_> {
    /// Puts choices in the place of calls through pointers. Gives no problems with the refusal if there are too many: what was said before is all that can be said.
    fn choose(&mut self) -> Result<Vec<Choice>, Refusals> {
        let mut choices = Vec::new();
        if self.calling_pointers.is_empty() {
            return Ok(choices);
        }
        let (context, gathered) = (self.context, &mut *self.gathered);
        self.program.progress("resolves indirect calls");
        let choosing = Choosing {
            program: self.program,
            roots: &self.calling_pointers,
        };
        let perturbation = &self.options.perturbation;
        let mut dispatched = 0;
        for _ in 0..MAX_ROUNDS {
            match dispatch_unknown_calls(context, &choosing, gathered, &mut choices, dispatched)? {
                Dispatched::Nothing => break,
                Dispatched::Calls(calls) => dispatched += calls,
                Dispatched::TooMany => return Err(Vec::new().into()),
            }
            let module = gathered.module;
            for front_end in gathered.front_ends() {
                let adapted =
                    front_end.adapt_registrations(context, module, &mut gathered.registrations);
                adapted.map_err(Vec::from)?;
            }
            choose_inlining(context, module, &gathered.requests, perturbation.inline);
            prepare(module, self.machine, perturbation).map_err(Vec::from)?;
        }
        Ok(choices)
    }
}

/// What is differentiated, in a few words.
fn names_of(requests: &[FoundRequest]) -> String {
    match requests {
        [] => "nothing".to_owned(),
        [one] => format!("`{}`", one.shown_name()),
        [first, others @ ..] => format!("`{}` and {} more", first.shown_name(), others.len()),
    }
}
