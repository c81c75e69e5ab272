//! A compiled graph together with its host: what runs it and what is exchanged, without the graph itself.

use crate::bytes::bytes_of_slice;
use crate::host::{Bound, Feeder, Receiver, with_host};
use crate::{Element, Error, Executable, Timeline};
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::lower::{Call, Exchange};
use ferrozyme_graph::user::{UserFunction, not_known};
use rustc_hash::FxHashMap;

/// A compiled graph with its feeders and receivers.
pub struct Session {
    executable: Box<dyn Executable>,
    exchanges: Vec<Exchange>,
    calls: Vec<Bound>,
    feeders: FxHashMap<String, Feeder>,
    receivers: FxHashMap<String, Receiver>,
}

/// The functions that calls name, each with its call.
pub(crate) fn bind<'f>(
    calls: &[Call],
    function_named: impl Fn(&str) -> Option<&'f UserFunction>,
) -> Result<Vec<Bound>, Error> {
    let bound = |call: &Call| match function_named(&call.name) {
        Some(function) => Ok(Bound {
            call: call.clone(),
            function: function.clone(),
        }),
        None => Err(Error::Graph(not_known(&call.name))),
    };
    calls.iter().map(bound).collect()
}

impl Session {
    /// Of what runs a graph, what it exchanges and calls, and the functions that its calls name. The error names a function that is not there.
    pub fn new(
        executable: Box<dyn Executable>,
        exchanges: Vec<Exchange>,
        calls: &[Call],
        functions: &[UserFunction],
    ) -> Result<Session, Error> {
        let named = |name: &str| functions.iter().find(|function| function.name() == name);
        let calls = bind(calls, named)?;
        Ok(Session::bound(executable, exchanges, calls))
    }

    pub(crate) fn bound(
        executable: Box<dyn Executable>,
        exchanges: Vec<Exchange>,
        calls: Vec<Bound>,
    ) -> Session {
        Session {
            executable,
            exchanges,
            calls,
            feeders: FxHashMap::default(),
            receivers: FxHashMap::default(),
        }
    }

    /// What `feed` of this name gives: the next tensor, in row-major order. It is called ahead of time, on a thread of its own.
    pub fn feeder<T: Element>(
        &mut self,
        name: &str,
        mut next: impl FnMut() -> Vec<T> + Send + 'static,
    ) {
        let feeder = Feeder::new(T::SCALAR, move || bytes_of_slice(&next()));
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
            &self.calls,
            &mut self.feeders,
            &mut self.receivers,
            |host| executable.run(host),
        )
    }

    /// As [`Program::timeline`](crate::Program::timeline).
    pub fn timeline(&mut self) -> Result<Option<Timeline>, Error> {
        let executable = &mut self.executable;
        let mut timeline = None;
        with_host(
            &self.exchanges,
            &self.calls,
            &mut self.feeders,
            &mut self.receivers,
            |host| {
                timeline = executable.timeline(host)?;
                Ok(())
            },
        )?;
        Ok(timeline)
    }

    /// What runs it.
    pub fn executable(&self) -> &dyn Executable {
        &*self.executable
    }

    /// What runs it, to change parameters.
    pub fn executable_mut(&mut self) -> &mut dyn Executable {
        &mut *self.executable
    }
}
