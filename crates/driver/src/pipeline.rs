//! The stages from bitcode with requests to the object code of derivatives.

mod attempt;

pub(crate) use attempt::Choosing;

use crate::Output;
use crate::addresses::wrap_library_addresses;
use crate::derive::{Derived, Refusals, derive};
use crate::detach::attach_again;
use crate::dispatch::Choice;
use crate::finish::{emit, optimise_derivatives};
use crate::gather::{Gathered, gather};
use crate::inputs::Inputs;
use crate::machine::spell_out_instructions;
use crate::numbers::detach_known_numbers;
use crate::opaque::{is_inactive, is_opaque, may_write_constants};
use crate::options::{Level, Options, Relocation, Stage};
use crate::outside::copy_from_outside;
use crate::perturbation::Perturbation;
use crate::prepare::{choose_inlining, prepare};
use crate::processor::add_versions;
use crate::refusal::{Reasons, describe_import_error};
use crate::registrations::{Registration, RegistrationKind, RuleFunction};
use crate::report::{DerivativeReport, Diagnostic, Report, Timing};
use crate::requests::{FoundRequest, Mode};
use crate::text::refuse_numbers_from_text;
use attempt::attempt;
use ferrozyme_diff::declare_moved;
use ferrozyme_export::{ExportOptions, Team, export};
use ferrozyme_import::assembly::translate_assembly;
use ferrozyme_import::outline::outline_cold_code;
use ferrozyme_import::{ImportOptions, import};
use ferrozyme_ir as ir;
use ferrozyme_library::{Known, demangle, find, is};
use ferrozyme_llvm::{
    CodegenLevel, Context, Module, Opcode, RelocationModel, TargetDescription, TargetMachine, Value,
};
use ferrozyme_opt::InlinePolicy;
use ferrozyme_refusal::{LOOP_IR, Refusal};
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

/// Makes the derivatives that the inputs request.
///
/// # Errors
/// All that the user has to know why one of them cannot be made.
pub fn differentiate(inputs: &dyn Inputs, options: &Options) -> Result<Output, Vec<Diagnostic>> {
    let mut clock = Clock::start();
    ferrozyme_llvm::load(&options.sysroot).map_err(unloadable)?;
    clock.lap("load LLVM");

    let context = Context::new().map_err(unloadable)?;
    inputs.progress("gathers the functions to differentiate");
    let mut gathered = gather(&context, inputs, options.strict)?;
    clock.lap("gather");
    let mut made = make_derivatives(&context, &mut gathered, inputs, options, &mut clock)?;
    inputs.progress("compiles the derivatives");
    let machine = &made.machine;
    let module = optimise_derivatives(&gathered, machine, options.level)?;
    clock.lap("optimise");
    add_code(&mut made.reports, module, machine, options);
    let object = emit(module, machine)?;
    clock.lap("generate code");
    Ok(Output {
        rewritten: gathered.rewritten.into_iter().collect(),
        object,
        report: Report {
            derivatives: made.reports,
            timings: std::mem::take(&mut clock.timings),
            ..Report::default()
        },
    })
}

/// What comes with the derivatives in a working module.
pub(crate) struct Made {
    pub(crate) machine: TargetMachine,
    pub(crate) reports: Vec<DerivativeReport>,
}

/// Adds the derivatives to the working module, not yet optimised.
pub(crate) fn make_derivatives<'c>(
    context: &'c Context,
    gathered: &mut Gathered<'c>,
    program: &dyn Inputs,
    options: &Options,
    clock: &mut Clock,
) -> Result<Made, Vec<Diagnostic>> {
    let machine = prepare_module(context, gathered, program, options)?;
    let made = attempt(context, gathered, program, &machine, options, clock);
    match made {
        Ok(reports) => Ok(Made { machine, reports }),
        Err(refused) => Err(refused.problems),
    }
}

/// Brings the working module into the form that is differentiated.
fn prepare_module<'c>(
    context: &'c Context,
    gathered: &mut Gathered<'c>,
    program: &dyn Inputs,
    options: &Options,
) -> Result<TargetMachine, Vec<Diagnostic>> {
    let module = gathered.module;
    let front_ends = gathered.front_ends();
    for request in &gathered.requests {
        // Both halves of split reverse mode have the same root.
        if module.function(&request.root).is_none() {
            request.interface.build_root(context, module, request);
        }
    }
    for front_end in &front_ends {
        front_end.adapt_registrations(context, module, &mut gathered.registrations)?;
        front_end.adapt_module(context, gathered, options)?;
    }
    copy_from_outside(context, module);
    translate_assembly(context, module);
    spell_out_instructions(context, module);
    wrap_library_addresses(context, module);
    let machine = target_machine(&module.triple(), options)?;
    let perturbation = &options.perturbation;
    program.progress("optimises the functions to differentiate");
    choose_inlining(context, module, &gathered.requests, perturbation.inline);
    prepare(module, &machine, perturbation)?;
    let mut requests = gathered.requests.iter();
    let mut refused: Vec<Diagnostic> = match requests.any(|request| request.mode != Mode::Primal) {
        true => front_ends
            .iter()
            .flat_map(|front_end| front_end.check_module(context, module))
            .collect(),
        false => Vec::new(),
    };
    refused.extend(refuse_numbers_from_text(
        context,
        module,
        &gathered.requests,
    ));
    if !refused.is_empty() {
        return Err(refused);
    }
    Ok(machine)
}

/// From a working module that is optimised to one with derivatives.
fn differentiate_prepared<'c>(
    context: &'c Context,
    gathered: &Gathered<'c>,
    choices: &[Choice],
    calling_pointers: &HashSet<String>,
    options: &Options,
    clock: &mut Clock,
) -> Result<Derived, Refusals> {
    let module = gathered.module;
    let perturbation = &options.perturbation;
    let outlined = outline_cold_code(context, module, &|function| {
        perturbation.in_line || is_opaque(&function.name(), function)
    });
    clock.lap("prepare");

    let (mut loops, reasons) =
        bring_in(context, module, gathered, &outlined, choices, perturbation)?;
    clock.lap("import");
    let front_ends = gathered.front_ends();
    let derived = derive(
        &mut loops,
        &gathered.requests,
        choices,
        calling_pointers,
        &reasons,
        options,
    )?;
    clock.lap("differentiate");

    let like = gathered
        .requests
        .first()
        .and_then(|request| module.function(&request.root));
    add_versions(&mut loops, &derived.wrappers, module, like, options);
    let export_options = ExportOptions {
        like,
        strict: options.strict,
        highest_level: perturbation.highest_level,
        team: who_runs_teams(gathered),
        ..ExportOptions::default()
    };
    export(&loops, &derived.wrappers, module, &export_options).map_err(|error| {
        vec![Diagnostic {
            remedy: Some("this is a bug in Ferrozyme".to_owned()),
            ..Diagnostic::error(error.to_string())
        }]
    })?;
    attach_again(module);
    for front_end in front_ends {
        front_end.clean_up(module);
    }
    clock.lap("export");
    Ok(derived)
}

/// Who runs the bodies of teams: the program if it can, otherwise what its languages have for that.
fn who_runs_teams(gathered: &Gathered<'_>) -> Team {
    if gathered.runs_teams {
        return Team::OfProgram;
    }
    let mut languages = gathered.requests.iter().map(FoundRequest::language);
    let others = languages.find(|language| language.team != Team::Caller);
    others.map_or(Team::Caller, |language| language.team)
}

/// Imports the roots, and says of functions what was registered. Gives also why functions could not be imported.
fn bring_in<'c>(
    context: &'c Context,
    module: Module<'c>,
    gathered: &Gathered<'c>,
    outlined: &[Value<'c>],
    choices: &[Choice],
    perturbation: &Perturbation,
) -> Result<(ir::Module, Reasons), Vec<Diagnostic>> {
    let roots = gathered.requests.iter();
    let mut names: Vec<&str> = roots.map(|request| request.root.as_str()).collect();
    let rules: Vec<&str> = gathered
        .registrations
        .iter()
        .filter(|registration| matches!(registration.kind, RegistrationKind::Rule { .. }))
        .flat_map(Registration::symbols)
        .filter(|symbol| {
            module
                .function(symbol)
                .is_some_and(|function| !function.is_declaration())
        })
        .collect();
    // Rules alone are nobody's derivative.
    if !gathered.requests.is_empty() {
        names.extend(rules);
    }
    if perturbation.reversed {
        names.reverse();
    }
    let outlined: HashSet<String> = outlined.iter().map(|function| function.name()).collect();
    let languages = gathered.requests.iter().map(FoundRequest::language);
    let inactive_writes = languages.clone().any(|language| language.inactive_writes);
    let compilers: HashSet<&str> = languages.map(|language| language.compiler).collect();
    let options = ImportOptions {
        is_opaque: &|function| {
            let name = function.name();
            outlined.contains(&name) || is_opaque(&name, function)
        },
        is_inactive: &|name| match outlined.contains(name) {
            true => only_calls_inactive(module, name),
            false => {
                let is_inactive_in = |one: &&'static str| is(name, &Known::InactiveIn(one));
                is_inactive(name) || compilers.iter().any(is_inactive_in)
            }
        },
    };
    let imported = import(context, module, &names, &options)
        .map_err(|error| vec![describe_import_error(&gathered.requests, &error)])?;
    let mut loops = imported.module;
    for front_end in gathered.front_ends() {
        front_end.mark_loops(&mut loops);
    }
    // `#[inline(never)]` is meant for the program's own code: derivatives of loops save less where caller and callee are seen together.
    let all: Vec<ir::FunctionId> = loops.functions.keys().collect();
    for id in all {
        let function = &loops.functions[id];
        // Choices behind pointers stay apart, so that one without a derivative can be given up.
        let is_choice = choices.iter().any(|choice| choice.symbol == function.name);
        if function.body.is_none() || outlined.contains(&function.name) || is_choice {
            continue;
        }
        let large = ir::all_ops(function).len() > InlinePolicy::default().limit;
        let noinline =
            !does_nothing_but_compute(&loops, function) && (function.facts.noinline || large);
        let apart = !perturbation.inline.considers(&function.name);
        loops.functions[id].facts.noinline = noinline || apart;
    }
    if gathered.is_told_of_moves {
        declare_moved(&mut loops);
    }
    detach_known_numbers(&mut loops);
    for global in loops.globals.values_mut() {
        global.inactive |= is(&global.name, &Known::InactiveVariable);
    }
    for function in loops.functions.values_mut() {
        function.facts.writes_constants |= inactive_writes && may_write_constants(&function.name);
        let shown_from = |known: &Known| match known {
            Known::Shows(first) => Some(*first),
            _ => None,
        };
        if let Some(first) = find(&function.name, shown_from) {
            let shown = function.params.iter_mut().skip(first);
            for param in shown.filter(|param| param.ty == ir::Type::PTR) {
                param.facts.readonly = true;
            }
        }
    }
    for registration in &gathered.registrations {
        register(&mut loops, registration, inactive_writes)?;
    }
    let name_of = |function| loops.functions[function].name.clone();
    let (bodies, moved) = (imported.opaque.into_iter(), imported.moved.into_iter());
    let reasons = Reasons {
        bodies: bodies.map(|(id, error)| (name_of(id), error)).collect(),
        instructions: moved.map(|(id, why)| (name_of(id), why)).collect(),
    };
    Ok((loops, reasons))
}

/// Whether a function computes in memory that it is given, as loops over slices do: it makes none, and calls nobody whose body is unknown.
fn does_nothing_but_compute(module: &ir::Module, function: &ir::Function) -> bool {
    ir::all_ops(function).into_iter().all(|op| {
        let data = &function.ops[op];
        match (data.opcode, &data.payload) {
            (ir::Opcode::Call, ir::Payload::Callee(callee)) => {
                module.functions[*callee].body.is_some()
            }
            (
                ir::Opcode::Call | ir::Opcode::CallIndirect | ir::Opcode::Alloc | ir::Opcode::Free,
                _,
            ) => false,
            _ => true,
        }
    })
}

/// Whether a call that was moved away together with its cleanup is of an inactive function.
fn only_calls_inactive(module: Module<'_>, name: &str) -> bool {
    module.function(name).is_some_and(|function| {
        function
            .instructions()
            .filter(|instruction| instruction.is(Opcode::Invoke))
            .filter_map(|invoke| invoke.called_function())
            .all(|callee| is_inactive(&callee.name()))
    })
}

/// Says of a function what was registered.
fn register(
    module: &mut ir::Module,
    registration: &Registration,
    inactive_writes: bool,
) -> Result<(), Diagnostic> {
    if registration.kind == RegistrationKind::InactiveGlobal {
        for global in module.globals.values_mut() {
            global.inactive |= global.name == registration.primal;
        }
        return Ok(());
    }
    let Some(primal) = module.function_named(&registration.primal) else {
        return Ok(());
    };
    let id = |function: &Option<RuleFunction>| {
        let Some(function) = function else {
            return Ok(None);
        };
        let found = module.function_named(&function.symbol);
        found.map(Some).ok_or_else(|| Diagnostic {
            remedy: Some("this is a bug in Ferrozyme".to_owned()),
            ..Diagnostic::error(format!(
                "the rule `{}` for `{}` cannot be found",
                demangle(&function.symbol),
                demangle(&registration.primal)
            ))
        })
    };
    match &registration.kind {
        RegistrationKind::Inactive => {
            let facts = &mut module.functions[primal].facts;
            facts.inactive = true;
            facts.writes_constants = inactive_writes;
        }
        RegistrationKind::Rule {
            forward,
            augment,
            reverse,
        } => {
            let rule = ir::Rule {
                forward: id(forward)?,
                augment: id(augment)?,
                reverse: id(reverse)?,
            };
            // Forward and reverse mode may be registered separately.
            let before = module.rules.remove(&primal).unwrap_or_default();
            let rule = ir::Rule {
                forward: rule.forward.or(before.forward),
                augment: rule.augment.or(before.augment),
                reverse: rule.reverse.or(before.reverse),
            };
            module.rules.insert(primal, rule);
        }
        _ => return Ok(()),
    }
    module.functions[primal].facts.noinline = true;
    Ok(())
}

/// Adds the texts of the last stages where they are wanted.
pub(crate) fn add_code(
    reports: &mut [DerivativeReport],
    module: Module<'_>,
    machine: &TargetMachine,
    options: &Options,
) {
    let Some(explain) = &options.explain else {
        return;
    };
    for &stage in &explain.stages {
        let text = match stage {
            Stage::Llvm => module.to_string(),
            Stage::Assembly => machine
                .emit_assembly(module)
                .unwrap_or_else(|error| error.to_string()),
            _ => continue,
        };
        for report in reports.iter_mut() {
            report.stages.push((stage, text.clone()));
        }
    }
}

/// Whether the toolchain with this sysroot has an LLVM that can be used.
///
/// # Errors
/// If not, with the reason.
pub fn check_toolchain(sysroot: &Path) -> Result<(), Vec<Diagnostic>> {
    ferrozyme_llvm::load(sysroot)
        .map(|_| ())
        .map_err(unloadable)
}

pub(crate) fn unloadable(error: ferrozyme_llvm::LoadError) -> Vec<Diagnostic> {
    vec![Diagnostic {
        remedy: Some(error.remedy()),
        ..Diagnostic::error(error.to_string())
    }]
}

/// Whether derivatives are supported for a target. The calling convention, the size of pointers and the layout of `va_list` are known for x86-64 Linux.
pub fn is_supported_target(triple: &str) -> bool {
    let linux = triple.contains("-linux") && !triple.ends_with("x32");
    triple.starts_with("x86_64-") && linux
}

/// The code generator for the link's target. Derivatives are optimised in debug builds as well: what they replace is written by hand
/// with care, and nobody steps through it.
fn target_machine(triple: &str, options: &Options) -> Result<TargetMachine, Diagnostic> {
    if !is_supported_target(triple) {
        let triple = triple.to_owned();
        return Err(Diagnostic::refused_at(
            None,
            &Refusal::Target { triple },
            &LOOP_IR,
        ));
    }
    let description = TargetDescription {
        triple: triple.to_owned(),
        cpu: options.cpu.clone().unwrap_or_default(),
        level: match options.level {
            Level::O3 => CodegenLevel::Aggressive,
            _ => CodegenLevel::Default,
        },
        relocation: match options.relocation {
            Relocation::Static => RelocationModel::Static,
            Relocation::PositionIndependent => RelocationModel::Pic,
        },
        ..TargetDescription::default()
    };
    TargetMachine::new(&description).map_err(|error| Diagnostic {
        notes: vec![error.to_string()],
        ..Diagnostic::error("LLVM has no code generator for this target")
    })
}

/// Measures the phases.
pub(crate) struct Clock {
    last: Instant,
    pub(crate) timings: Vec<Timing>,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            last: Instant::now(),
            timings: Vec::new(),
        }
    }

    pub(crate) fn lap(&mut self, phase: &str) {
        let now = Instant::now();
        self.timings.push(Timing {
            phase: phase.to_owned(),
            time: now - self.last,
        });
        self.last = now;
    }
}
