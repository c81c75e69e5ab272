//! Runs tensor graphs on this processor: [`compile`] optimises, fuses, plans memory, lowers and compiles a graph, everything before the first step.
//!
//! ```
//! use ferrozyme_cpu::compile;
//! use ferrozyme_graph::Graph;
//! let mut g = Graph::new();
//! let w = g.parameter("w", [3], 1.0);
//! g.repeat(10, |g, _step| {
//!     let x = g.feed("x", [3]);
//!     let old = g.read(w);
//!     let new = g.add(old, x);
//!     g.update(w, new);
//! });
//! let mut program = compile(&g)?;
//! program.feeder("x", || vec![0.5f32; 3]);
//! program.run()?;
//! assert_eq!(program.parameter(w).elements[..], [6.0, 6.0, 6.0]);
//! # Ok::<(), ferrozyme_cpu::Error>(())
//! ```
//!
//! Feeders and receivers run on threads of their own, ahead of the program and behind it (`host.rs`). An index out of range stops the process.

mod bytes;
mod entry;
mod host;
mod native;

pub use bytes::Element;

use bytes::{Memory, array_of, bytes_of};
use ferrozyme_graph::fuse::{fuse, print_fusion};
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::lower::{Exchange, lower_planned};
use ferrozyme_graph::memory::plan_memory;
use ferrozyme_graph::opt::optimise;
use ferrozyme_graph::{Graph, Parameter, verify};
use ferrozyme_ir::entity::EntityRef;
use host::{Feeder, Receiver, with_host};
use native::Native;
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::time::Instant;
use thiserror::Error;

/// Why a graph cannot be compiled, or why a run failed.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The graph is not well formed.
    #[error("the graph is not well formed: {0}")]
    Graph(String),
    /// LLVM is not there, or refuses.
    #[error("cannot compile the graph: {0}")]
    Compile(String),
    /// A feeder or receiver is missing, panicked, or gave something else than the graph takes. Parameters are as the run left them.
    #[error("{0}")]
    Host(String),
}

/// A compiled graph, with the memory of its parameters.
pub struct Program {
    graph: Graph,
    native: Native,
    exchanges: Vec<Exchange>,
    parameters: Vec<Memory>,
    arena: Memory,
    feeders: FxHashMap<String, Feeder>,
    receivers: FxHashMap<String, Receiver>,
    report: String,
}

/// Compiles a graph.
pub fn compile(graph: &Graph) -> Result<Program, Error> {
    let start = Instant::now();
    verify(graph).map_err(|error| Error::Graph(error.to_string()))?;
    let mut graph = graph.clone();
    let statistics = optimise(&mut graph);
    let (fusion, fusion_report) = fuse(&graph);
    let plan = plan_memory(&graph, &fusion);
    let lowered = lower_planned(&graph, &fusion, &plan);
    let native = Native::compile(lowered.module, lowered.main)?;
    let mut report = String::new();
    let kernels = print_fusion(&graph, &fusion, &fusion_report);
    let _ = write!(
        report,
        "{kernels}{plan}\npasses changed {statistics:?}\ncompiled in {:.3} s\n",
        start.elapsed().as_secs_f64()
    );
    let parameters = graph.parameters.values().map(|data| {
        let value = Array::from_literal(&data.ty, &data.initial);
        Memory::holding(&bytes_of(&value))
    });
    Ok(Program {
        parameters: parameters.collect(),
        arena: Memory::zeroed(plan.arena),
        exchanges: lowered.exchanges,
        native,
        feeders: FxHashMap::default(),
        receivers: FxHashMap::default(),
        report,
        graph,
    })
}

impl Program {
    /// What `feed` of this name gives: the next tensor, in row-major order. It is called ahead of time, on a thread of its own.
    pub fn feeder<T: Element>(
        &mut self,
        name: &str,
        mut next: impl FnMut() -> Vec<T> + Send + 'static,
    ) {
        let feeder = Feeder::new(T::SCALAR, move || bytes::bytes_of_slice(&next()));
        self.feeders.insert(name.to_owned(), feeder);
    }

    /// What is done with the tensors that `receive` of this name hands over. It is called on a thread of its own; [`run`](Self::run) waits for it.
    pub fn receiver(&mut self, name: &str, receive: impl FnMut(Vec<Array>) + Send + 'static) {
        self.receivers.insert(name.to_owned(), Box::new(receive));
    }

    /// Runs the graph once. What nobody receives is dropped.
    pub fn run(&mut self) -> Result<(), Error> {
        let mut pointers: Vec<*mut u8> = self.parameters.iter_mut().map(Memory::address).collect();
        pointers.push(self.arena.address());
        let native = &self.native;
        with_host(
            &self.exchanges,
            &mut self.feeders,
            &mut self.receivers,
            |host| native.run(host, &pointers),
        )
    }

    /// The value of a parameter.
    pub fn parameter(&self, parameter: Parameter) -> Array {
        let ty = &self.graph.parameters[parameter].ty;
        array_of(ty, &self.parameters[parameter.index()].bytes())
    }

    /// Gives a parameter another value.
    ///
    /// # Panics
    /// If the value has another type.
    pub fn set_parameter(&mut self, parameter: Parameter, value: &Array) {
        assert_eq!(self.graph.parameters[parameter].ty, value.ty);
        self.parameters[parameter.index()] = Memory::holding(&bytes_of(value));
    }

    /// The graph as it was compiled, after all passes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The kernels with what was fused, the memory that is used, and the time of compilation.
    pub fn report(&self) -> &str {
        &self.report
    }
}
