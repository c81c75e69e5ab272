//! A compiled graph as its user sees it.

use crate::bytes::{Element, array_of, bytes_of, bytes_of_slice};
use crate::session::{Session, bind};
use crate::{Backend, Error, Initial, Planned, Timeline};
use ferrozyme_graph::fuse::{Repeats, fuse_for, print_fusion};
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::lower::lower_planned;
use ferrozyme_graph::memory::{delay_values_for, fit_memory_for, plan_memory};
use ferrozyme_graph::opt::optimise_for;
use ferrozyme_graph::{Graph, Parameter, verify};
use ferrozyme_ir::entity::EntityRef;
use std::fmt::Write;
use std::time::Instant;

/// A compiled graph, with the memory of its parameters.
pub struct Program {
    graph: Graph,
    session: Session,
    report: String,
}

/// A graph that is ready for a backend, after all passes.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The graph after all passes.
    pub graph: Graph,
    /// What a backend takes.
    pub planned: Planned,
    /// The kernels, the memory, and what passes changed, in lines.
    pub report: String,
}

/// What is the same for all backends: optimises, fits into a budget of memory if there is one, fuses, plans memory, and lowers.
pub fn prepare_graph(
    graph: &Graph,
    repeats: Repeats,
    budget: Option<usize>,
) -> Result<Prepared, Error> {
    verify(graph).map_err(|error| Error::Graph(error.to_string()))?;
    let mut graph = graph.clone();
    let mut statistics = optimise_for(&mut graph, repeats);
    statistics.push(("delay_values", delay_values_for(&mut graph, repeats)));
    let fitted = budget.map(|budget| fit_memory_for(&mut graph, budget, repeats));
    let fitted = fitted.transpose()?;
    let (fusion, fusion_report) = fuse_for(&graph, repeats);
    let plan = plan_memory(&graph, &fusion);
    let lowered = lower_planned(&graph, &fusion, &plan);
    let parameters = graph.parameters.values();
    let parameters = parameters.map(|data| Initial::new(data.ty.clone(), data.initial.clone()));
    let planned = Planned {
        lowered,
        parameters: parameters.collect(),
        arena: plan.arena,
    };
    let mut report = print_fusion(&graph, &fusion, &fusion_report);
    let _ = writeln!(report, "{plan}");
    if let Some(fitted) = fitted {
        let _ = writeln!(report, "{fitted}");
    }
    let _ = writeln!(report, "passes changed {statistics:?}");
    Ok(Prepared {
        graph,
        planned,
        report,
    })
}

/// Compiles a graph for a backend: optimises, fuses, plans memory, lowers, and has the backend compile the kernels.
pub fn compile_with(backend: &dyn Backend, graph: &Graph) -> Result<Program, Error> {
    compile_within(backend, graph, None)
}

/// As [`compile_with`], with an arena of no more bytes than a budget, if there is one: values are computed again where they are needed instead of being kept. Parameters do not count. The error says what the least is.
pub fn compile_within(
    backend: &dyn Backend,
    graph: &Graph,
    budget: Option<usize>,
) -> Result<Program, Error> {
    let start = Instant::now();
    let Prepared {
        graph,
        planned,
        mut report,
    } = prepare_graph(graph, backend.repeats(), budget)?;
    let exchanges = planned.lowered.exchanges.clone();
    let calls = bind(&planned.lowered.calls, |name| graph.function_named(name))?;
    let executable = backend.compile(planned)?;
    let _ = writeln!(
        report,
        "{}compiled for {} in {:.3} s",
        executable.report(),
        backend.name(),
        start.elapsed().as_secs_f64()
    );
    Ok(Program {
        session: Session::bound(executable, exchanges, calls),
        report,
        graph,
    })
}

impl Program {
    /// What `feed` of this name gives: the next tensor, in row-major order. It is called ahead of time, on a thread of its own.
    pub fn feeder<T: Element>(
        &mut self,
        name: &str,
        next: impl FnMut() -> Vec<T> + Send + 'static,
    ) {
        self.session.feeder(name, next);
    }

    /// What is done with the tensors that `receive` of this name hands over. It is called on a thread of its own; [`run`](Self::run) waits for it.
    pub fn receiver(&mut self, name: &str, receive: impl FnMut(Vec<Array>) + Send + 'static) {
        self.session.receiver(name, receive);
    }

    /// Runs the graph once. What nobody receives is dropped.
    pub fn run(&mut self) -> Result<(), Error> {
        self.session.run()
    }

    /// Runs the graph once and measures each kernel that runs on the device. None, and nothing has run, if the device has no kernels of its own to measure, as the processor.
    pub fn timeline(&mut self) -> Result<Option<Timeline>, Error> {
        self.session.timeline()
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// If the device on which it is does not answer any more.
    pub fn parameter(&self, parameter: Parameter) -> Array {
        let bytes = self.parameter_bytes(parameter);
        let ty = &self.graph.parameters[parameter].ty;
        array_of(ty, &bytes.unwrap_or_else(|error| panic!("{error}")))
    }

    /// Gives a parameter another value.
    ///
    /// # Panics
    /// If the value has another type, or the device does not answer any more.
    pub fn set_parameter(&mut self, parameter: Parameter, value: &Array) {
        assert_eq!(self.graph.parameters[parameter].ty, value.ty);
        let outcome = self.set_parameter_bytes(parameter, &bytes_of(value));
        outcome.unwrap_or_else(|error| panic!("{error}"));
    }

    /// The bytes of a parameter: its elements in row-major order, as they are in memory.
    pub fn parameter_bytes(&self, parameter: Parameter) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.graph.parameters[parameter].ty.bytes()];
        self.read_bytes(parameter, 0, &mut bytes)?;
        Ok(bytes)
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
        self.write_bytes(parameter, 0, bytes)
    }

    /// Copies bytes of a parameter, from an offset on, until the buffer is full. So large parameters are moved piece by piece.
    ///
    /// # Panics
    /// If the parameter has fewer bytes behind the offset.
    pub fn read_bytes(
        &self,
        parameter: Parameter,
        offset: usize,
        to: &mut [u8],
    ) -> Result<(), Error> {
        self.assert_in(parameter, offset, to.len());
        let executable = self.session.executable();
        executable.read_parameter(parameter.index(), offset, to)
    }

    /// Overwrites bytes of a parameter, from an offset on.
    ///
    /// # Panics
    /// If the parameter has fewer bytes behind the offset.
    pub fn write_bytes(
        &mut self,
        parameter: Parameter,
        offset: usize,
        from: &[u8],
    ) -> Result<(), Error> {
        self.assert_in(parameter, offset, from.len());
        let executable = self.session.executable_mut();
        executable.write_parameter(parameter.index(), offset, from)
    }

    /// Backends rely on it.
    #[track_caller]
    fn assert_in(&self, parameter: Parameter, offset: usize, count: usize) {
        let data = &self.graph.parameters[parameter];
        let all = data.ty.bytes();
        assert!(
            offset <= all && count <= all - offset,
            "{count} bytes behind {offset} are not in \"{}\", which has {all}",
            data.name
        );
    }

    /// Copies elements of a parameter in row-major order, from a position on, until the buffer is full.
    ///
    /// # Panics
    /// If the parameter has other elements, or ends before.
    pub fn read_elements<T: Element>(
        &self,
        parameter: Parameter,
        first: usize,
        to: &mut [T],
    ) -> Result<(), Error> {
        let offset = self.offset_of::<T>(parameter, first, to.len());
        let mut bytes = vec![0; size_of_val(to)];
        self.read_bytes(parameter, offset, &mut bytes)?;
        let elements = bytes.chunks_exact(size_of::<T>()).map(T::from_bytes);
        to.iter_mut()
            .zip(elements)
            .for_each(|(to, from)| *to = from);
        Ok(())
    }

    /// Overwrites elements of a parameter in row-major order, from a position on.
    ///
    /// # Panics
    /// As [`read_elements`](Self::read_elements).
    pub fn write_elements<T: Element>(
        &mut self,
        parameter: Parameter,
        first: usize,
        from: &[T],
    ) -> Result<(), Error> {
        let offset = self.offset_of::<T>(parameter, first, from.len());
        self.write_bytes(parameter, offset, &bytes_of_slice(from))
    }

    /// Where elements of a parameter begin, in bytes.
    fn offset_of<T: Element>(&self, parameter: Parameter, first: usize, count: usize) -> usize {
        let data = &self.graph.parameters[parameter];
        let (element, all) = (data.ty.element, data.ty.shape.count());
        assert!(
            element == T::SCALAR && first <= all && count <= all - first,
            "{count} elements {} from {first} on of \"{}\", which is {}",
            T::SCALAR,
            data.name,
            data.ty
        );
        first * size_of::<T>()
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
