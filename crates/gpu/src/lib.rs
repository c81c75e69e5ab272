//! What the backends for GPUs share.
//!
//! [`prepare`] takes a planned graph to a [`GpuProgram`]: kernels that run once for each point of an index space, still as Loop IR, and a schedule of launches and copies for the host. A backend
//! prints the kernels in the language of its driver and implements [`Device`] (memory, copies, launches); [`Runner`] carries out the schedule on it.
//!
//! ```text
//! func @exp_1(%y: ptr, %x: ptr) {             func @exp_1_0(%y: ptr, %x: ptr, %status: ptr) {
//!   for %i: i64 = 0 to 1000 step 1 {            %group = call @__ferrozyme_group()
//!     …  store f32 %e, %y[i]              ─▶    %item = call @__ferrozyme_item()
//!   }                                           %i = group · 256 + item
//! }                                             if %i < 1000 { …  store f32 %e, %y[i] }
//!                                             }                    4 groups of 256 items
//! ```
//!
//! Which loops become the index space is not declared but proved: their iterations do not touch what others write ([`parallel`](self)). A loop without a proof runs in one item, in its order.
//!
//! | file | what lives there |
//! |---|---|
//! | `schedule.rs` | reads `@main` as a list of launches, copies, exchanges, loops and branches |
//! | `stages.rs` | splits a kernel where its parts need not run in one launch |
//! | `parallel.rs` | which loops are independent, and which carried values may be summed up in any order |
//! | `index_space.rs` | the parallel loops of a stage become an index space |
//! | `rows.rs` | a group for each row: its items share the loops inside, and add up sums in local memory |
//! | `tiles.rs` | contractions: a group for each tile of the result, operands in local memory |
//! | `columns.rs` | sums that go through rows go through columns |
//! | `merge_loops.rs` | nests that go through the same points become one launch |
//! | `widen.rs` | items take several neighbours, with accesses of sixteen bytes |
//! | `product.rs` | contractions as products that a library of BLAS takes |
//! | `accumulate.rs` | sums into memory become atomic additions |
//! | `traps.rs` | what would stop the program sets a status that the host looks at |
//! | `items.rs` | the functions that kernels call for their place in the index space, and for local memory |
//! | `dependencies.rs` | which launches need each other, and what may run at the same time |
//! | `traffic.rs` | what a kernel moves and computes |
//! | `run.rs` | carries out the schedule, and measures it |

mod accumulate;
mod columns;
mod dependencies;
mod index_space;
mod items;
mod merge_loops;
mod parallel;
mod product;
mod rows;
mod run;
mod schedule;
mod stages;
mod tiles;
mod traffic;
mod traps;
mod widen;

pub use dependencies::{BufferUse, Seat, deal_out, dependencies};
pub use items::{BARRIER, EXCHANGE_F32, EXCHANGE_I32, GROUP, ITEM, LOCAL};
pub use product::{Gemm, Operand, Product};
pub use run::{Device, Runner};
pub use schedule::{Buffer, Place, Step, launches};
pub use traffic::Traffic;

use ferrozyme_backend::Error;
use ferrozyme_graph::lower::Lowered;
use ferrozyme_ir::{FunctionId, Module, verify_module};
use schedule::read_schedule;
use stages::make_kernels;

/// What a device can do.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// The most items that a group may have.
    pub group: u32,
    /// How many groups it runs at a time at least: its multiprocessors.
    pub units: u32,
    /// Whether it can add to an `f32` and to an `f64` in memory in one step.
    pub atomic_f32: bool,
    /// As `atomic_f32`.
    pub atomic_f64: bool,
    /// Whether neighbouring items exchange numbers without memory ([`EXCHANGE_F32`]).
    pub exchange: bool,
}

/// A kernel that runs once for each item of each group.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// The function: addresses of buffers, and last that of the status.
    pub function: FunctionId,
    /// How many groups there are.
    pub groups: u32,
    /// How many items a group has.
    pub items: u32,
    /// The bytes of local memory that a group has.
    pub local: usize,
    /// What it does with the memory behind each parameter but the status.
    pub buffers: Vec<BufferUse>,
    /// Whether one item does all of it, although there is a loop in it: no loop was proved independent.
    pub alone: bool,
    /// The product of matrices that it computes, if it is one: a library may do that instead.
    pub product: Option<Product>,
    /// What it moves and computes.
    pub traffic: Traffic,
}

/// A graph for a GPU.
#[derive(Clone, Debug)]
pub struct GpuProgram {
    /// The kernels' functions.
    pub module: Module,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// What the host does, in order.
    pub steps: Vec<Step>,
}

impl GpuProgram {
    /// How many kernels there are, and which of them are slow because one item does all.
    pub fn describe(&self) -> String {
        let alone = self.kernels.iter().filter(|kernel| kernel.alone);
        let alone: Vec<&str> = alone.map(|kernel| &*kernel.name).collect();
        let count = self.kernels.len();
        match alone.len() {
            0 => format!("{count} kernels"),
            slow => format!(
                "{count} kernels, {slow} of them in one item ({})",
                alone.join(", ")
            ),
        }
    }
}

/// Makes kernels and a schedule of a lowered graph.
pub fn prepare(lowered: Lowered, abilities: &Abilities) -> Result<GpuProgram, Error> {
    let calls = read_schedule(&lowered.module, lowered.main)?;
    let (module, kernels, steps) = make_kernels(lowered, calls, abilities)?;
    verify_module(&module).map_err(|errors| {
        Error::Compile(format!(
            "a kernel is malformed (a bug in Ferrozyme): {}",
            errors[0]
        ))
    })?;
    Ok(GpuProgram {
        module,
        kernels,
        steps,
    })
}
