//! The way from bitcode with requests to the object code of derivatives, stage by stage.

use crate::Output;
use crate::gather::gather;
use crate::inputs::Inputs;
use crate::opaque::is_opaque;
use crate::options::{Level, Options, Relocation};
use crate::prepare::prepare;
use crate::report::{Diagnostic, Report, Timing};
use crate::root::build_root;
use ferrozyme_llvm::outline::outline_cold_code;
use ferrozyme_llvm::{CodegenLevel, Context, RelocationModel, TargetDescription, TargetMachine};
use std::time::Instant;

/// Makes the derivatives that the inputs request.
///
/// # Errors
/// All that the user has to know why one of them cannot be made.
pub fn differentiate(inputs: &dyn Inputs, options: &Options) -> Result<Output, Vec<Diagnostic>> {
    let mut clock = Clock::start();
    ferrozyme_llvm::load(&options.sysroot).map_err(unloadable)?;
    let context = Context::new().map_err(unloadable)?;
    clock.lap("load LLVM");

    let gathered = gather(&context, inputs)?;
    let module = gathered.module;
    for request in &gathered.requests {
        build_root(&context, module, request);
    }
    clock.lap("gather");
    let machine = target_machine(&module.triple(), options).map_err(|problem| vec![problem])?;
    prepare(module, &machine).map_err(|problem| vec![problem])?;
    let is_outside = |function: ferrozyme_llvm::Value<'_>| is_opaque(&function.name(), function);
    outline_cold_code(&context, module, &is_outside);
    module
        .verify()
        .map_err(|error| vec![Diagnostic::error(error.to_string())])?;
    clock.lap("prepare");
    if std::env::var_os("FZ_DEBUG").is_some() {
        eprintln!("{module}");
    }
    Ok(Output {
        rewritten: gathered.rewritten,
        object: Vec::new(),
        report: Report {
            timings: clock.timings,
            ..Report::default()
        },
    })
}

fn unloadable(error: ferrozyme_llvm::LoadError) -> Vec<Diagnostic> {
    vec![Diagnostic {
        remedy: Some(
            "Ferrozyme needs a toolchain of rustup on x86_64 or aarch64 Linux, with its shared libLLVM".to_owned(),
        ),
        ..Diagnostic::error(error.to_string())
    }]
}

/// The code generator for the link's target. Derivatives are optimised in debug builds as well: what they replace is written by hand
/// with care, and nobody steps through it.
fn target_machine(triple: &str, options: &Options) -> Result<TargetMachine, Diagnostic> {
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
struct Clock {
    last: Instant,
    timings: Vec<Timing>,
}

impl Clock {
    fn start() -> Clock {
        Clock {
            last: Instant::now(),
            timings: Vec::new(),
        }
    }

    fn lap(&mut self, phase: &str) {
        let now = Instant::now();
        self.timings.push(Timing {
            phase: phase.to_owned(),
            time: now - self.last,
        });
        self.last = now;
    }
}
