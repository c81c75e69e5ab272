//! Differentiates the imported roots, inner requests first.

mod attempt;

use crate::dispatch::Choice;
use crate::explain::{describe_loops, describe_products, show_locations, summarise};
use crate::frontend::FRONT_ENDS;
use crate::itself::copy_itself;
use crate::ladder::{Refused, Relaxation};
use crate::late_passes::{call_kernels, parallelise, raise};
use crate::options::{Explain, Options, Stage};
use crate::perturbation::{Perturbation, REFUSED};
use crate::refusal::{Reasons, say, shown_place};
use crate::report::{ACCELERATED, DerivativeReport, Diagnostic, Location, shorten};
use crate::requests::{FoundRequest, Mode, Part};
use attempt::{Made, give_up};
use ferrozyme_diff::{
    self as diff, constant_in_shadow, explain_activity, explain_plan, infer_handles,
    infer_inactive_globals,
};
use ferrozyme_ir::{
    Constant, FunctionId, GlobalId, Module, Opcode, Payload, Symbol, all_ops, print,
};
use ferrozyme_opt::{
    OptimiseOptions, distribute_tangents, hand_out_values, keep_order, merge_common_subexpressions,
    optimise_with, remove_dead_code, separate_pointers, simplify,
};
use ferrozyme_refusal::{Refusal, STOP};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

/// What differentiation leaves behind in the module.
pub(crate) struct Derived {
    /// The functions that requests call, one for each request.
    pub(crate) wrappers: Vec<FunctionId>,
    /// What is to be said of each.
    pub(crate) reports: Vec<DerivativeReport>,
}

/// Why derivatives cannot be made.
#[derive(Default)]
pub(crate) struct Refusals {
    pub(crate) problems: Vec<Diagnostic>,
    /// The functions that were to be differentiated, by the symbols of their roots.
    pub(crate) roots: Vec<String>,
    /// What the differentiator said, of functions behind pointers too.
    errors: Vec<diff::Error>,
}

impl From<Vec<Diagnostic>> for Refusals {
    fn from(problems: Vec<Diagnostic>) -> Refusals {
        Refusals {
            problems,
            ..Refusals::default()
        }
    }
}

impl Refused for Refusals {
    fn errors(&self) -> &[diff::Error] {
        &self.errors
    }

    fn is_silent(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Adds the derivatives to a module that holds the roots.
pub(crate) fn derive(
    module: &mut Module,
    requests: &[FoundRequest],
    choices: &[Choice],
    calling_pointers: &HashSet<String>,
    reasons: &Reasons,
    options: &Options,
) -> Result<Derived, Refusals> {
    let mut derivation = Derivation {
        module,
        requests: requests
            .iter()
            .map(|request| (request.symbol.as_str(), request))
            .collect(),
        choices,
        calling_pointers,
        reasons,
        explain: options.explain.as_ref(),
        strict: options.strict,
        perturbation: &options.perturbation,
        wrappers: HashMap::new(),
        splits: HashMap::new(),
        copies: HashMap::new(),
        split_shadows: HashMap::new(),
        open: Vec::new(),
        errors: Vec::new(),
        reports: Vec::new(),
        shown: Vec::new(),
    };
    let mut refusals = Refusals::default();
    for request in requests {
        derivation.describe_parameters(request);
    }
    let import = derivation.texts_of_roots(requests);
    derivation.optimise_all();
    derivation.describe_globals();
    let mut in_order: Vec<&FoundRequest> = requests.iter().collect();
    if options.perturbation.reversed {
        in_order.reverse();
    }
    for request in in_order {
        if let Err(found) = derivation.differentiate(request) {
            if options.perturbation.late && derivation.refuse_late(request, &found) {
                continue;
            }
            refusals.roots.push(request.root.clone());
            if !refusals.problems.contains(&found) {
                refusals.problems.push(found);
            }
        }
    }
    refusals.errors = std::mem::take(&mut derivation.errors);
    if !refusals.problems.is_empty() {
        return Err(refusals);
    }
    derivation.raise_all();
    for (report, text) in derivation
        .reports
        .iter_mut()
        .filter_map(|(symbol, report)| {
            let text = import.get(symbol)?.clone();
            Some((report, text))
        })
    {
        report.stages.insert(0, (Stage::Import, text));
    }
    let files = &derivation.module.files;
    for (_, report) in &mut derivation.reports {
        report.summary = show_locations(files, &report.summary);
        for (_, text) in &mut report.stages {
            *text = show_locations(files, text);
        }
    }
    Ok(Derived {
        wrappers: requests
            .iter()
            .map(|request| derivation.wrappers[&request.symbol])
            .collect(),
        reports: derivation
            .reports
            .into_iter()
            .map(|(_, report)| report)
            .collect(),
    })
}

struct Derivation<'m> {
    module: &'m mut Module,
    requests: HashMap<&'m str, &'m FoundRequest>,
    /// What calls through pointers may mean.
    choices: &'m [Choice],
    /// Roots of which it is known that they call code that comes from outside.
    calling_pointers: &'m HashSet<String>,
    reasons: &'m Reasons,
    explain: Option<&'m Explain>,
    /// Whether sums keep their order.
    strict: bool,
    perturbation: &'m Perturbation,
    /// The derivatives made so far, by symbol.
    wrappers: HashMap<String, FunctionId>,
    /// Split derivatives, by the symbol of their root.
    splits: HashMap<String, diff::Split>,
    /// Copies of functions that are asked for themselves, and of what they call.
    copies: HashMap<FunctionId, FunctionId>,
    /// The shadows of statics that the two halves of split reverse mode have in common, by root.
    split_shadows: HashMap<String, Vec<GlobalId>>,
    /// The requests being made, to find those that need themselves.
    open: Vec<String>,
    /// What the differentiator refused.
    errors: Vec<diff::Error>,
    reports: Vec<(String, DerivativeReport)>,
    /// The reports that show the text of a derivative, and which.
    shown: Vec<(usize, FunctionId)>,
}

impl Derivation<'_> {
    /// Tells the differentiator what is known of the root's parameters.
    fn describe_parameters(&mut self, request: &FoundRequest) {
        if let Some(root) = self.module.function_named(&request.root) {
            let params = &mut self.module.functions[root].params;
            request.interface.describe_parameters(params);
        }
    }

    fn texts_of_roots(&self, requests: &[FoundRequest]) -> HashMap<String, String> {
        let wanted = requests
            .iter()
            .filter(|request| self.wants(request, Stage::Import));
        wanted
            .filter_map(|request| {
                let root = self.module.function_named(&request.root)?;
                Some((request.symbol.clone(), self.print_reached(root)))
            })
            .collect()
    }

    /// Says of globals what derivatives have to know: which hold constants only, and which the program changes whenever it likes.
    fn describe_globals(&mut self) {
        infer_inactive_globals(self.module);
        infer_handles(self.module);
        let mut requests = self.requests.values();
        if requests.any(|request| !request.language().makes_shadows) {
            for global in self.module.globals.values_mut() {
                global.shared = !global.constant;
            }
        }
    }

    /// Optimises every function, callees first.
    fn optimise_all(&mut self) {
        for id in callees_first(self.module) {
            self.optimise(id);
        }
    }

    fn optimise(&mut self, id: FunctionId) {
        if self.strict {
            keep_order(self.module, id);
        }
        let options = OptimiseOptions {
            reorder: !self.strict,
            inline: Some(self.perturbation.inline.in_loop_ir().into()),
            ..OptimiseOptions::default()
        };
        optimise_with(self.module, id, &options);
    }

    fn differentiate(&mut self, request: &FoundRequest) -> Result<FunctionId, Diagnostic> {
        if let Some(&wrapper) = self.wrappers.get(&request.symbol) {
            return Ok(wrapper);
        }
        if self.open.contains(&request.symbol) {
            let function = request.shown_name().to_owned();
            return Err(Diagnostic {
                location: request.location(),
                ..say(request, &Refusal::NeedsItself { function })
            });
        }
        let root = self
            .module
            .function_named(&request.root)
            .ok_or_else(|| Diagnostic {
                location: request.location(),
                ..Diagnostic::error(format!("`{}` could not be read", request.shown_name()))
            })?;
        self.open.push(request.symbol.clone());
        let inner = self.differentiate_inner(root);
        self.open.pop();
        inner?;

        if !self.open.is_empty() || self.calls_derivatives(root) {
            self.optimise(root);
        }
        if request.mode == Mode::Reverse {
            self.separate_pointers(root);
        }
        if request.mode != Mode::Primal {
            request.interface.describe_shadows(self.module, root);
        }
        let asked = diff::Request {
            keep_order: self.strict,
            choices: self.perturbation.choices,
            ..request.asked(root)
        };
        let globals = self.module.globals.len();
        let Made {
            derivative,
            before,
            asked,
            report,
        } = match request.mode {
            Mode::Primal => self.itself(request, asked),
            Mode::Forward | Mode::Reverse => self.attempt(request, asked)?,
        };
        let made: Vec<FunctionId> = self.module.functions.keys().skip(before).collect();
        if request.part == Part::Whole {
            self.adapt(&made);
        }
        let directions = asked.width;
        for id in made {
            self.optimise(id);
            // Not where it is about to be differentiated once more, which would take a tape for what is handed out.
            if self.open.is_empty() && hand_out_values(self.module, id) > 0 {
                remove_dead_code(self.module, id);
            }
            if directions > 1 && !self.strict && distribute_tangents(self.module, id) > 0 {
                remove_dead_code(self.module, id);
            }
        }
        for id in self.module.functions.keys().skip(before) {
            say_where(self.module, id, request);
        }
        let mut shadows = self.own_shadows(globals);
        if request.part != Part::Whole {
            // The two halves are made together, and the first of them to run starts with fresh shadows.
            let made = self.split_shadows.entry(request.root.clone()).or_default();
            made.append(&mut shadows);
            if !matches!(request.part, Part::Reverse { .. }) {
                shadows.clone_from(made);
            }
        }
        let wrapper = request.interface.wrap(
            self.module,
            &request.symbol,
            derivative,
            &shadows,
            &asked.shaped,
        );
        self.wrappers.insert(request.symbol.clone(), wrapper);
        if self.explains(request).is_some() {
            self.shown.push((self.reports.len(), derivative));
        }
        self.reports.push((request.symbol.clone(), report));
        Ok(wrapper)
    }

    /// Has a function and its callees test whether memory overlaps where a reverse sweep would have to save it for fear of that.
    fn separate_pointers(&mut self, root: FunctionId) {
        for id in reached_from(self.module, root) {
            if self.module.functions[id].body.is_some() && separate_pointers(self.module, id) > 0 {
                simplify(self.module, id);
                merge_common_subexpressions(self.module, id);
                remove_dead_code(self.module, id);
            }
        }
    }

    /// Raises what the requests call to contractions: not before all derivatives are made, since those of loops are simpler than those of contractions' calls.
    fn raise_all(&mut self) {
        let mut reached: Vec<FunctionId> = Vec::new();
        for &wrapper in self.wrappers.values() {
            reached.extend(reached_from(self.module, wrapper));
        }
        reached.sort();
        reached.dedup();
        reached.retain(|&id| self.module.functions[id].body.is_some());
        let left = match self.strict || self.shown.is_empty() {
            true => HashMap::new(),
            false => describe_loops(self.module, &reached),
        };
        if !self.strict {
            for &id in &reached {
                raise(self.module, id);
            }
        }
        let products: Vec<String> = (self.shown.iter())
            .map(|&(_, derivative)| {
                let functions = reached_from(self.module, derivative);
                describe_products(self.module, &functions, &left)
            })
            .collect();
        let mut threads: HashMap<FunctionId, Vec<String>> = HashMap::new();
        for id in reached.clone() {
            let first = self.module.functions.len();
            threads.insert(id, parallelise(self.module, id, self.strict));
            reached.extend(self.module.functions.keys().skip(first));
        }
        for ((report, derivative), products) in
            std::mem::take(&mut self.shown).into_iter().zip(products)
        {
            let functions = reached_from(self.module, derivative);
            let threads: Vec<&str> = (functions.iter())
                .filter_map(|id| threads.get(id))
                .flatten()
                .map(String::as_str)
                .collect();
            let text = self.print_reached(derivative);
            let report = &mut self.reports[report].1;
            let wanted = self.explain.map(|explain| &explain.stages[..]);
            match wanted {
                Some([]) => {
                    report.summary.push_str(&products);
                    if !threads.is_empty() {
                        let threads = threads.join("\n");
                        let _ = writeln!(report.summary, "loops of parallel regions:\n{threads}");
                    }
                }
                Some(stages) if stages.contains(&Stage::Derivative) => {
                    report.stages.push((Stage::Derivative, text));
                }
                _ => {}
            }
        }
        for &id in &reached {
            call_kernels(self.module, id);
        }
    }

    /// The function that is asked for itself.
    fn itself(&mut self, request: &FoundRequest, asked: diff::Request) -> Made {
        let report = self.report(request, &asked, &[]);
        let before = self.module.functions.len();
        let requests = &self.requests;
        // What requests call is made here, and has no other body.
        let stays = |name: &str| requests.contains_key(name);
        let derivative = copy_itself(self.module, asked.function, &mut self.copies, stays);
        Made {
            derivative,
            before,
            asked,
            report,
        }
    }

    /// Puts a function that stops the program with the reason in the place of a derivative that cannot be made.
    fn refuse_late(&mut self, request: &FoundRequest, problem: &Diagnostic) -> bool {
        let text = format!("{REFUSED}{}\n", problem.headline());
        let interface = &request.interface;
        let stop = interface.stop(self.module, &request.symbol, &text);
        self.wrappers
            .extend(stop.map(|stop| (request.symbol.clone(), stop)));
        stop.is_some()
    }

    /// Lets all front ends change new derivatives: code of one language may be reached from a request in the other.
    fn adapt(&mut self, made: &[FunctionId]) {
        for front_end in FRONT_ENDS {
            front_end.adapt_derivative(self.module, made);
        }
    }

    /// The shadows of statics that a derivative made, from this number on, that it writes to: each thread has its own, and they hold nothing between calls.
    fn own_shadows(&mut self, first: usize) -> Vec<GlobalId> {
        let made: Vec<GlobalId> = self.module.globals.keys().skip(first).collect();
        let addresses = made
            .iter()
            .flat_map(|&id| &self.module.globals[id].relocations);
        let named: HashSet<Symbol> = addresses.map(|&(_, symbol)| symbol).collect();
        made.into_iter()
            .filter(|&id| {
                let is_copy = constant_in_shadow(self.module, id).is_some();
                let global = &mut self.module.globals[id];
                let is_written = !global.constant && (global.relocations.is_empty() || is_copy);
                // An address in a table is that of one memory for all threads. The sums there are those of constants, and nobody looks at them.
                let is_for_all =
                    !global.relocations.is_empty() || named.contains(&Symbol::Global(id));
                global.thread_local |= is_written && !is_for_all;
                is_written
            })
            .collect()
    }

    /// Makes the derivatives that a root calls. If one cannot be made, functions behind pointers that call it are given up.
    fn differentiate_inner(&mut self, root: FunctionId) -> Result<(), Diagnostic> {
        for id in reached_from(self.module, root) {
            let name = self.module.functions[id].name.as_str();
            let Some(inner) = self.requests.get(name).copied() else {
                continue;
            };
            let Err(problem) = self.differentiate(inner) else {
                continue;
            };
            for choice in self.choices {
                if let Some(function) = self.module.function_named(&choice.symbol)
                    && reached_from(self.module, function).contains(&id)
                {
                    give_up(self.module, function, choice, &problem);
                }
            }
            if reached_from(self.module, root).contains(&id) {
                return Err(problem);
            }
        }
        Ok(())
    }

    fn calls_derivatives(&self, root: FunctionId) -> bool {
        reached_from(self.module, root).iter().any(|&id| {
            let name = self.module.functions[id].name.as_str();
            self.requests.contains_key(name)
        })
    }

    fn wants(&self, request: &FoundRequest, stage: Stage) -> bool {
        self.explains(request)
            .is_some_and(|explain| explain.stages.contains(&stage))
    }

    /// What the user wants to know of a request, if anything.
    fn explains(&self, request: &FoundRequest) -> Option<&Explain> {
        let names = |path: &str| {
            let wanted = self.explain?.function.as_deref();
            wanted
                .is_none_or(|wanted| path == wanted || path.ends_with(&format!("::{wanted}")))
                .then_some(())
        };
        names(request.shown_name())
            .or_else(|| names(&request.primal_name))
            .or_else(|| names(&request.derivative_name))?;
        self.explain
    }

    /// What is said of a derivative that is asked for in this way, with these relaxations.
    fn report(
        &self,
        request: &FoundRequest,
        asked: &diff::Request,
        relaxed: &[Relaxation],
    ) -> DerivativeReport {
        let mut report = DerivativeReport {
            primal: request.shown_name().to_owned(),
            derivative: request.derivative_name.clone(),
            mode: match request.mode {
                Mode::Forward => "forward".to_owned(),
                Mode::Reverse => "reverse".to_owned(),
                Mode::Primal => ACCELERATED.to_owned(),
            },
            width: request.width,
            location: request.location(),
            ..DerivativeReport::default()
        };
        let Some(explain) = self.explains(request) else {
            return report;
        };
        let reverse = request.mode == Mode::Reverse;
        let text =
            |text: Result<String, diff::Error>| text.unwrap_or_else(|error| format!("{error}\n"));
        if explain.stages.is_empty() {
            report.summary = summarise(self.module, request, asked, relaxed);
        }
        for &stage in &explain.stages {
            let text = match stage {
                Stage::Optimised => self.print_reached(asked.function),
                Stage::Activity => text(explain_activity(self.module, asked)),
                Stage::Plan if reverse => text(explain_plan(self.module, asked)),
                _ => continue,
            };
            report.stages.push((stage, text));
        }
        report
    }

    fn print_reached(&self, root: FunctionId) -> String {
        let functions = reached_from(self.module, root)
            .into_iter()
            .filter(|&id| self.module.functions[id].body.is_some())
            .map(|id| print::print_function(self.module, id));
        functions.collect::<Vec<_>>().join("\n")
    }
}

/// Adds to the messages with which a derivative stops the program where that is in the source.
fn say_where(module: &mut Module, id: FunctionId, request: &FoundRequest) {
    if module.functions[id].body.is_none() {
        return;
    }
    for op in all_ops(&module.functions[id]) {
        let data = &module.functions[id].ops[op];
        let Payload::Message(message) = &data.payload else {
            continue;
        };
        // Derivatives of derivatives have the messages of the inner ones, which say it already.
        if !message.starts_with(STOP) || message.ends_with(')') {
            continue;
        }
        if let Some(Location { file, line, .. }) = shown_place(module, data.location, request) {
            let file = shorten(Path::new(&file));
            let text = format!("{message} ({file}:{line})");
            module.functions[id].ops[op].payload = Payload::Message(text.into());
        }
    }
}

/// The functions that a function mentions: calls, and addresses of functions but for those that are only compared.
fn mentions(module: &Module, id: FunctionId) -> Vec<FunctionId> {
    let function = &module.functions[id];
    if function.body.is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for op in all_ops(function) {
        let data = &function.ops[op];
        if let Payload::Callee(callee) = data.payload {
            found.push(callee);
        }
        if data.opcode != Opcode::Icmp {
            let addresses = data
                .operands
                .iter()
                .map(|&value| function.constant_of(value));
            found.extend(addresses.filter_map(|constant| match constant {
                Some(&Constant::Function(id)) => Some(id),
                _ => None,
            }));
        }
    }
    found
}

/// A function and all that it mentions, directly or not.
pub(crate) fn reached_from(module: &Module, root: FunctionId) -> Vec<FunctionId> {
    let mut seen = HashSet::from([root]);
    let mut reached = vec![root];
    let mut next = 0;
    while let Some(&id) = reached.get(next) {
        next += 1;
        for callee in mentions(module, id) {
            if seen.insert(callee) {
                reached.push(callee);
            }
        }
    }
    reached
}

/// All functions, each after those that it mentions as far as recursion allows.
fn callees_first(module: &Module) -> Vec<FunctionId> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    for root in module.functions.keys() {
        let mut work = vec![(root, false)];
        while let Some((id, done)) = work.pop() {
            if done {
                order.push(id);
            } else if seen.insert(id) {
                work.push((id, true));
                work.extend(
                    mentions(module, id)
                        .into_iter()
                        .map(|callee| (callee, false)),
                );
            }
        }
    }
    order
}
