//! Shows what becomes of Loop IR: `emit file.fz [exported|optimised|assembly] [cpu]`.
//!
//! For people who work on the export: `exported` is the LLVM IR as it is handed to LLVM, `optimised` what LLVM makes of it at its highest level, `assembly` the machine code.

use anyhow::{Context as _, bail};
use ferrozyme_export::{ExportOptions, export};
use ferrozyme_ir::{FunctionId, parse_module, verify_module};
use ferrozyme_llvm::compile::{OptimisationLevel, optimise};
use ferrozyme_llvm::{Context, Linkage, TargetDescription, TargetMachine};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments
        .first()
        .context("usage: emit file.fz [exported|optimised|assembly] [cpu]")?;
    let stage = arguments.get(1).map_or("exported", String::as_str);
    let module = parse_module(&std::fs::read_to_string(path)?)?;
    if let Err(errors) = verify_module(&module) {
        bail!("{}", errors[0]);
    }
    let context = Context::new()?;
    let mut target = TargetDescription {
        level: OptimisationLevel::O3.codegen_level(),
        ..TargetDescription::default()
    };
    if let Some(cpu) = arguments.get(2) {
        target.cpu.clone_from(cpu);
    }
    let machine = TargetMachine::new(&target)?;
    let into = context.create_module(path);
    into.set_triple(machine.triple());
    into.set_data_layout(&machine.data_layout());
    let defined: Vec<FunctionId> = module
        .functions
        .iter()
        .filter(|(_, function)| function.body.is_some())
        .map(|(id, _)| id)
        .collect();
    for function in export(&module, &defined, into, &ExportOptions::default())? {
        function.set_linkage(Linkage::External);
    }
    into.verify()?;
    match stage {
        "exported" => print!("{into}"),
        "optimised" | "assembly" => {
            let into = optimise(into, OptimisationLevel::O3, &machine)?;
            if stage == "optimised" {
                print!("{into}");
            } else {
                print!("{}", machine.emit_assembly(into)?);
            }
        }
        _ => bail!("there is no stage `{stage}`"),
    }
    Ok(())
}
