//! A compiled graph as its user sees it.

use crate::bytes::{self, Element, array_of, bytes_of};
use crate::host::{Feeder, Receiver, with_host};
use crate::{Backend, Error, Executable, Planned, Timeline};
use ferrozyme_graph::fuse::{fuse_for, print_fusion};
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::lower::{Exchange, lower_planned};
use ferrozyme_graph::memory::plan_memory;
use ferrozyme_graph::opt::optimise_for;
use ferrozyme_graph::{Graph, Parameter, verify};
use ferrozyme_ir::entity::EntityRef;
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::time::Instant;

/// A compiled graph, with the memory of its parameters.
pub struct Program {
    graph: Graph,
    executable: Box<dyn Executable>,
    exchanges: Vec<Exchange>,
    feeders: FxHashMap<String, Feeder>,
    receivers: FxHashMap<String, Receiver>,
    report: String,
}

/// Compiles a graph for a backend: optimises, fuses, plans memory, lowers, and has the backend compile the kernels.
pub fn compile_with(backend: &dyn Backend, graph: &Graph) -> Result<Program, Error> {
    let start = Instant::now();
    verify(graph).map_err(|error| Error::Graph(error.to_string()))?;
    let mut graph = graph.clone();
    let repeats = backend.repeats();
    let statistics = optimise_for(&mut graph, repeats);
    let (fusion, fusion_report) = fuse_for(&graph, repeats);
    let plan = plan_memory(&graph, &fusion);
    let lowered = lower_planned(&graph, &fusion, &plan);
    let exchanges = lowered.exchanges.clone();
    let parameters = graph.parameters.values().map(|data| {
        let value = Array::from_literal(&data.ty, &data.initial);
        bytes_of(&value)
    });
    let executable = backend.compile(Planned {
        lowered,
        parameters: parameters.collect(),
        arena: plan.arena,
    })?;
    let mut report = print_fusion(&graph, &fusion, &fusion_report);
    let _ = write!(
        report,
        "{plan}\npasses changed {statistics:?}\n{}compiled for {} in {:.3} s\n",
        executable.report(),
        backend.name(),
        start.elapsed().as_secs_f64()
    );
    Ok(Program {
        executable,
        exchanges,
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
        let executable = &mut self.executable;
        with_host(
            &self.exchanges,
            &mut self.feeders,
            &mut self.receivers,
            |host| executable.run(host),
        )
    }

    /// Runs the graph once and measures each kernel that runs on the device. None, and nothing has run, if the device has no kernels of its own to measure, as the processor.
    pub fn timeline(&mut self) -> Result<Option<Timeline>, Error> {
        let executable = &mut self.executable;
        let mut timeline = None;
        with_host(
            &self.exchanges,
            &mut self.feeders,
            &mut self.receivers,
            |host| {
                timeline = executable.timeline(host)?;
                Ok(())
            },
        )?;
        Ok(timeline)
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// If the device on which it is does not answer any more.
    pub fn parameter(&self, parameter: Parameter) -> Array {
        let ty = &self.graph.parameters[parameter].ty;
        let bytes = self.executable.parameter(parameter.index());
        array_of(ty, &bytes.unwrap_or_else(|error| panic!("{error}")))
    }

    /// Gives a parameter another value.
    ///
    /// # Panics
    /// If the value has another type, or the device does not answer any more.
    pub fn set_parameter(&mut self, parameter: Parameter, value: &Array) {
        assert_eq!(self.graph.parameters[parameter].ty, value.ty);
        let number = parameter.index();
        let outcome = self.executable.set_parameter(number, &bytes_of(value));
        outcome.unwrap_or_else(|error| panic!("{error}"));
    }

    /// The bytes of a parameter: its elements in row-major order, as they are in memory.
    pub fn parameter_bytes(&self, parameter: Parameter) -> Result<Vec<u8>, Error> {
        self.executable.parameter(parameter.index())
    }

    /// Gives a parameter these bytes.
    ///
    /// # Panics
    /// If they are more or fewer than the parameter has.
    pub fn set_parameter_bytes(&mut self, parameter: Parameter, bytes: &[u8]) -> Result<(), Error> {
        let data = &self.graph.parameters[parameter];
        assert_eq!(
            bytes.len(),
            data.ty.bytes(),
            "bytes of \"{}\", which is {}",
            data.name,
            data.ty
        );
        self.executable.set_parameter(parameter.index(), bytes)
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
