//! Programs of one kernel. Tests of what prints kernels use them as well.

use ferrozyme_gpu::{Abilities, GpuProgram, prepare};
use ferrozyme_graph::lower::Lowered;
use ferrozyme_ir::parse_module;

/// What an ordinary device can do.
pub(crate) const ABILITIES: Abilities = Abilities {
    group: 256,
    units: 8,
    atomic_f32: true,
    atomic_f64: false,
    exchange: false,
};

/// The program of a kernel `@kernel(%to, %from)` of which one pointer is written, for a device that can do this.
pub(crate) fn program_for(kernel: &str, abilities: &Abilities) -> GpuProgram {
    let text = format!(
        "{kernel}\nfunc @main(%p: ptr noalias, %arena: ptr) {{\n  call @kernel(%arena, %p)\n  return\n}}\n"
    );
    let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let main = module.function_named("main").unwrap();
    let lowered = Lowered {
        calls: Vec::new(),
        module,
        main,
        exchanges: Vec::new(),
        sizes: Default::default(),
    };
    prepare(lowered, abilities).unwrap()
}
