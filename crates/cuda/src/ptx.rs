//! Kernels as PTX, by LLVM's code generator for NVIDIA's GPUs.
//!
//! `items.ll` defines the functions that kernels call for their place in the index space; the exporter finds them by name. There is no C library on a GPU: functions of floats are those that the exporter brings along.

use ferrozyme_backend::Error;
use ferrozyme_export::{ExportOptions, export};
use ferrozyme_gpu::GpuProgram;
use ferrozyme_llvm::compile::{OptimisationLevel, optimise};
use ferrozyme_llvm::{
    CodegenLevel, Context, Linkage, Place, RelocationModel, TargetDescription, TargetMachine,
};

/// What GPUs of NVIDIA are called as targets.
const TRIPLE: &str = "nvptx64-nvidia-cuda";
/// LLVM's number of the calling convention of kernels.
const KERNEL: u32 = 71;
/// The kernel that adds one to an `i32`.
pub(crate) const INCREMENT: &str = "__ferrozyme_increment";

/// The PTX of all kernels, for a processor such as `sm_90`.
pub fn print_ptx(program: &GpuProgram, processor: &str) -> Result<String, Error> {
    let problem = |error: &dyn std::fmt::Display| Error::Compile(error.to_string());
    let context = Context::new().map_err(|error| problem(&error))?;
    let into = context
        .parse_text("kernels", include_str!("items.ll"))
        .map_err(|error| problem(&error))?;
    let machine = TargetMachine::new(&TargetDescription {
        triple: TRIPLE.to_owned(),
        cpu: processor.to_owned(),
        level: CodegenLevel::Aggressive,
        relocation: RelocationModel::Default,
        ..TargetDescription::default()
    })
    .map_err(|error| problem(&error))?;
    into.set_triple(TRIPLE);
    into.set_data_layout(&machine.data_layout());
    let functions: Vec<_> = program
        .kernels
        .iter()
        .map(|kernel| kernel.function)
        .collect();
    let options = ExportOptions {
        no_library: true,
        ..ExportOptions::default()
    };
    let exported =
        export(&program.module, &functions, into, &options).map_err(|error| problem(&error))?;
    for (function, kernel) in exported.into_iter().zip(&program.kernels) {
        function.set_linkage(Linkage::External);
        function.set_function_convention(KERNEL);
        // So that registers are dealt out for groups of this size.
        let items = context.text_attribute("nvvm.maxntid", &kernel.items.to_string());
        function.add_attribute(Place::Function, items);
    }
    let module =
        optimise(into, OptimisationLevel::O3, &machine).map_err(|error| problem(&error))?;
    machine
        .emit_assembly(module)
        .map_err(|error| problem(&error))
}

/// The name of a kernel in PTX, where LLVM replaces what PTX does not allow in names.
pub(crate) fn kernel_name(name: &str) -> String {
    name.replace('.', "_$_").replace('@', "_%_")
}
