//! The attempts at the derivative of one request.

use super::Derivation;
use crate::dispatch::{Choice, stop_with};
use crate::explain::show_locations;
use crate::ladder::{Attempts, Refused, Relaxation, Scope, climb};
use crate::refusal::describe_refusal;
use crate::repeatable::without_releases;
use crate::report::{DerivativeReport, Diagnostic, Location};
use crate::requests::{FoundRequest, Mode, Part};
use crate::trim::stop_writers;
use ferrozyme_diff::{
    self as diff, can_resolve_calls, differentiate_forward, differentiate_reverse,
    differentiate_split, makes_indirect_calls, refuse_given_code,
};
use ferrozyme_ir::{FunctionId, Module};
use ferrozyme_refusal::Refusal;

/// A derivative.
pub(super) struct Made {
    pub(super) derivative: FunctionId,
    /// How many functions there were before.
    pub(super) before: usize,
    /// What it was asked for in the end.
    pub(super) asked: diff::Request,
    pub(super) report: DerivativeReport,
}

/// Why an attempt failed, and what can be said of it.
struct RefusedRequest {
    error: diff::Error,
    report: DerivativeReport,
}

impl Refused for RefusedRequest {
    fn errors(&self) -> &[diff::Error] {
        std::slice::from_ref(&self.error)
    }
}

/// The attempts at a request.
struct RequestAttempts<'d, 'm> {
    derivation: &'d mut Derivation<'m>,
    request: &'d FoundRequest,
    asked: diff::Request,
    relaxed: Vec<Relaxation>,
    /// How many choices were given up.
    given_up: usize,
}

/// How often a derivative is tried with one choice less. Programs that run into this have a mechanism behind their pointers that has no derivative.
const MOST_GIVEN_UP: usize = 12;

impl Attempts for RequestAttempts<'_, '_> {
    type Made = Made;
    type Refused = RefusedRequest;
    const SCOPE: Scope = Scope::Request;

    fn attempt(&mut self) -> Result<Made, RefusedRequest> {
        let (request, asked) = (self.request, &self.asked);
        let before = self.derivation.module.functions.len();
        let report = self.derivation.report(request, asked, &self.relaxed);
        let untouched = self
            .may_be_relaxed()
            .then(|| self.derivation.module.clone());
        match self.derivation.differentiate_as(request, asked) {
            Ok(derivative) => Ok(Made {
                derivative,
                before,
                asked: asked.clone(),
                report,
            }),
            Err(error) => {
                // What was made for a refused derivative may mention what was never finished.
                if let Some(untouched) = untouched {
                    *self.derivation.module = untouched;
                }
                Err(RefusedRequest { error, report })
            }
        }
    }

    fn relax(&mut self, relaxation: Relaxation, told: &RefusedRequest) -> bool {
        let is_relaxed = match relaxation {
            Relaxation::ResolvedCalls => {
                let helps = can_resolve_calls(self.derivation.module, self.asked.function);
                // A perturbation may have had them resolved before.
                self.asked.choices.resolve ^= helps;
                helps
            }
            Relaxation::ShapedShadows => {
                let shaped = self.can_be_shaped();
                let helps = told.error.refusal == Refusal::UnionOfCaller && shaped.contains(&true);
                if helps {
                    self.asked.shaped = shaped;
                }
                helps
            }
            Relaxation::FewerChoices => self.give_up_choice(told),
            Relaxation::Choices | Relaxation::LateRefusals => false,
        };
        if is_relaxed {
            self.relaxed.push(relaxation);
        }
        is_relaxed
    }

    fn take_back(&mut self, relaxation: Relaxation) {
        if relaxation == Relaxation::ResolvedCalls {
            self.asked.choices.resolve ^= true;
            self.relaxed.retain(|&other| other != relaxation);
        }
    }
}

impl RequestAttempts<'_, '_> {
    /// Whether another attempt may follow one that is refused, and needs the module as it was.
    fn may_be_relaxed(&self) -> bool {
        let derivation = &self.derivation;
        !derivation.choices.is_empty()
            || self.can_be_shaped().contains(&true)
            || makes_indirect_calls(derivation.module)
    }

    /// The shadows that could be made for the call, and are not yet.
    fn can_be_shaped(&self) -> Vec<bool> {
        match self.asked.shaped.is_empty() {
            true => self.request.interface.can_be_shaped(),
            false => Vec::new(),
        }
    }

    /// Gives up the function behind a pointer that a refusal is about, so that the others can be had: whoever calls it is told. Whether there is one.
    fn give_up_choice(&mut self, told: &RefusedRequest) -> bool {
        self.given_up += 1;
        if self.given_up > MOST_GIVEN_UP {
            return false;
        }
        let error = &told.error;
        let derivation = &mut *self.derivation;
        let (module, choices) = (&*derivation.module, derivation.choices);
        let has_code = |&(_, id): &(&Choice, FunctionId)| {
            let function = &module.functions[id];
            let body = function.body;
            body.is_some_and(|body| !function.ends_in_trap(body))
        };
        let callers = error.chain.iter().rev().map(|caller| &caller.function);
        let given_up = std::iter::once(&error.function)
            .chain(callers)
            .filter_map(|name| choices.iter().find(|choice| choice.symbol == *name))
            .filter_map(|choice| Some((choice, module.function_named(&choice.symbol)?)))
            .find(has_code);
        let Some((choice, id)) = given_up else {
            return stop_writers(derivation.module, &self.asked, choices);
        };
        let problem = derivation.refusal(self.request, told);
        give_up(derivation.module, id, choice, &problem);
        true
    }
}

impl Derivation<'_> {
    /// Makes a derivative, in one way or another.
    pub(super) fn attempt(
        &mut self,
        request: &FoundRequest,
        asked: diff::Request,
    ) -> Result<Made, Diagnostic> {
        let has_choices = self.calling_pointers.contains(&request.root);
        let mut attempts = RequestAttempts {
            derivation: self,
            request,
            asked,
            relaxed: has_choices
                .then_some(Relaxation::Choices)
                .into_iter()
                .collect(),
            given_up: 0,
        };
        climb(&mut attempts).map_err(|told| self.refusal(request, &told))
    }

    /// Makes a derivative in one way.
    fn differentiate_as(
        &mut self,
        request: &FoundRequest,
        asked: &diff::Request,
    ) -> Result<FunctionId, diff::Error> {
        self.check_given_code(request, asked)?;
        match request.mode {
            Mode::Reverse if request.part != Part::Whole => self.half_of(request, asked),
            Mode::Reverse => differentiate_reverse(self.module, asked),
            Mode::Forward | Mode::Primal => differentiate_forward(self.module, asked),
        }
    }

    /// One of the two functions of split reverse mode, which are made together.
    fn half_of(
        &mut self,
        request: &FoundRequest,
        asked: &diff::Request,
    ) -> Result<FunctionId, diff::Error> {
        let split = match self.splits.get(&request.root) {
            Some(split) => *split,
            None => {
                let before = self.module.functions.len();
                let split = differentiate_split(self.module, asked)?;
                let made: Vec<FunctionId> = self.module.functions.keys().skip(before).collect();
                self.adapt(&made);
                self.splits.insert(request.root.clone(), split);
                split
            }
        };
        Ok(match request.part {
            Part::Reverse { keep_tape: true } => without_releases(self.module, split.reverse),
            Part::Reverse { keep_tape: false } => split.reverse,
            _ => split.augmented,
        })
    }

    /// Refuses code whose address comes with an argument, unless its shadow may be a table of derivatives. What is none
    /// stops the program.
    fn check_given_code(
        &self,
        request: &FoundRequest,
        asked: &diff::Request,
    ) -> Result<(), diff::Error> {
        let tables =
            request.language().makes_shadows && self.calling_pointers.contains(&request.root);
        match tables {
            true => Ok(()),
            false => refuse_given_code(self.module, asked),
        }
    }

    /// Why there is no derivative. Who asked for stages gets those that were reached.
    fn refusal(&mut self, request: &FoundRequest, told: &RefusedRequest) -> Diagnostic {
        let mut refusal = describe_refusal(self.module, request, self.reasons, &told.error);
        for (stage, text) in &told.report.stages {
            let text = show_locations(&self.module.files, text);
            refusal
                .notes
                .push(format!("stage {}:\n{text}", stage.name()));
        }
        self.errors.push(told.error.clone());
        refusal
    }
}

/// What choices are called after that were given up.
const GIVEN_UP: &str = ".ferrozyme_given_up";

/// Makes a function that may be called through a pointer stop the program and say why it has no derivative.
pub(super) fn give_up(module: &mut Module, id: FunctionId, choice: &Choice, problem: &Diagnostic) {
    let place = match &problem.location {
        Some(Location { file, line, .. }) => format!(" ({file}:{line})"),
        None => String::new(),
    };
    let refusal = Refusal::TargetWithoutDerivative {
        function: choice.function.clone(),
        reason: format!("{}{place}", problem.headline()),
    };
    let text = refusal.stop_text();
    if let Some(body) = module.functions[id].body {
        stop_with(module, id, body, None, &text);
        // The function of its name in LLVM's module goes on, without derivatives.
        module.functions[id].name.push_str(GIVEN_UP);
    }
}
