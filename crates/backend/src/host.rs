//! The host's side of a run: feeders, which run ahead on threads of their own, and receivers, which run behind.
//!
//! A feeder is at most [`AHEAD`] tensors ahead. What it has made when the run ends is fed first in the next run. A feeder, a receiver or a Rust function of the graph that panics, or a tensor of another type, is an error, and the run returns it: it ends
//! where a tensor cannot be fed or computed, and nothing is received any more.

use crate::Error;
use crate::bytes::{array_of, bytes_of};
use ferrozyme_graph::Scalar;
use ferrozyme_graph::interpret::{Array, call};
use ferrozyme_graph::lower::{Call, Exchange};
use ferrozyme_graph::user::{Slice, SliceMut, UserFunction, message_of};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

/// How many tensors wait between two threads.
const AHEAD: usize = 1;

/// Makes the bytes of the next tensor.
type Next = Box<dyn FnMut() -> Vec<u8> + Send>;
/// Gets what was received.
pub(crate) type Receiver = Box<dyn FnMut(Vec<Array>) + Send>;
/// A tensor, or why there is none.
type Item = Result<Vec<u8>, String>;

/// What feeds under one name.
pub(crate) struct Feeder {
    element: Scalar,
    next: Next,
    /// What was made in the last run and not fed.
    waiting: VecDeque<Item>,
}

impl Feeder {
    pub(crate) fn new(element: Scalar, next: impl FnMut() -> Vec<u8> + Send + 'static) -> Feeder {
        Feeder {
            element,
            next: Box::new(next),
            waiting: VecDeque::new(),
        }
    }
}

/// A call with the function that it calls.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) call: Call,
    pub(crate) function: UserFunction,
}

/// The host of a run: compiled code takes fed tensors from it, and hands over what is received.
pub struct Host<'h> {
    exchanges: &'h [Exchange],
    calls: &'h [Bound],
    feeds: FxHashMap<&'h str, mpsc::Receiver<Item>>,
    receivers: FxHashMap<&'h str, SyncSender<Vec<Array>>>,
    /// The tensors of a `receive` so far.
    tensors: Vec<Array>,
    problem: Option<String>,
}

/// Starts feeders and receivers, runs, and waits for them.
pub(crate) fn with_host(
    exchanges: &[Exchange],
    calls: &[Bound],
    feeders: &mut FxHashMap<String, Feeder>,
    receivers: &mut FxHashMap<String, Receiver>,
    run: impl FnOnce(&mut Host<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    check(exchanges, feeders)?;
    check_names(exchanges, true, feeders.keys())?;
    check_names(exchanges, false, receivers.keys())?;
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let mut host = Host {
            exchanges,
            calls,
            feeds: FxHashMap::default(),
            receivers: FxHashMap::default(),
            tensors: Vec::new(),
            problem: None,
        };
        let is_used = |name: &str| exchanges.iter().any(|other| &*other.name == name);
        let mut feeding = Vec::new();
        for (name, feeder) in feeders.iter_mut().filter(|(name, _)| is_used(name)) {
            let (sender, receiver) = mpsc::sync_channel(AHEAD);
            host.feeds.insert(name, receiver);
            let Feeder { next, waiting, .. } = feeder;
            let thread = scope.spawn(move || feed_ahead(next, waiting, &sender, stop));
            feeding.push((name.as_str(), thread));
        }
        let mut receiving = Vec::new();
        for (name, receiver) in receivers.iter_mut().filter(|(name, _)| is_used(name)) {
            let (sender, tensors) = mpsc::sync_channel::<Vec<Array>>(AHEAD);
            host.receivers.insert(name, sender);
            let receive = move || tensors.into_iter().for_each(receiver);
            receiving.push((name.as_str(), scope.spawn(receive)));
        }
        let outcome = run(&mut host);
        let Host {
            feeds,
            receivers,
            mut problem,
            ..
        } = host;
        // Feeders make nothing more; what they have made is taken until they end, and is for the next run.
        stop.store(true, Ordering::Release);
        let mut left: FxHashMap<&str, Vec<Item>> = FxHashMap::default();
        for (name, feed) in feeds {
            left.insert(name, feed.into_iter().collect());
        }
        for (name, thread) in feeding {
            if let Ok(waiting) = thread.join() {
                let rest: Vec<Item> = waiting.drain(..).collect();
                let made = left.remove(name).unwrap_or_default();
                waiting.extend(made.into_iter().chain(rest));
            }
        }
        drop(receivers);
        for (name, thread) in receiving {
            if let Err(panic) = thread.join() {
                let message = message_of(&*panic);
                problem.get_or_insert(format!("the receiver of \"{name}\" panicked: {message}"));
            }
        }
        outcome?;
        problem.map_or(Ok(()), |problem| Err(Error::Host(problem)))
    })
}

/// Every feed has a feeder of its type.
fn check(exchanges: &[Exchange], feeders: &FxHashMap<String, Feeder>) -> Result<(), Error> {
    for exchange in exchanges.iter().filter(|exchange| exchange.feeds) {
        let (name, ty) = (&exchange.name, &exchange.types[0]);
        match feeders.get(&**name) {
            None => return Err(Error::Host(format!("nothing feeds \"{name}\""))),
            Some(feeder) if feeder.element != ty.element => {
                let element = feeder.element;
                let problem = format!("\"{name}\" is {ty}, but its feeder makes {element}");
                return Err(Error::Host(problem));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The graph knows all names under which the host feeds, or receives.
fn check_names<'n>(
    exchanges: &[Exchange],
    feeds: bool,
    given: impl Iterator<Item = &'n String>,
) -> Result<(), Error> {
    let own = exchanges.iter().filter(|exchange| exchange.feeds == feeds);
    let mut known: Vec<&str> = own.map(|exchange| &*exchange.name).collect();
    known.sort_unstable();
    known.dedup();
    let mut unknown: Vec<&str> = given.map(String::as_str).collect();
    unknown.retain(|name| !known.contains(name));
    unknown.sort_unstable();
    let Some(name) = unknown.first() else {
        return Ok(());
    };
    let (operation, role) = match feeds {
        true => ("feed", "feeder"),
        false => ("receive", "receiver"),
    };
    let known: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
    let known = match known.is_empty() {
        true => "none".to_owned(),
        false => known.join(", "),
    };
    Err(Error::Host(format!(
        "there is a {role} of \"{name}\", but the graph has no `{operation}` of that name; it has {known}"
    )))
}

/// Sends what waits, then what is made, until it is told to stop. Returns what still waits.
fn feed_ahead<'f>(
    next: &mut Next,
    waiting: &'f mut VecDeque<Item>,
    sender: &SyncSender<Item>,
    stop: &AtomicBool,
) -> &'f mut VecDeque<Item> {
    while !stop.load(Ordering::Acquire) {
        let item = waiting.pop_front().unwrap_or_else(|| {
            let made = catch_unwind(AssertUnwindSafe(&mut *next));
            made.map_err(|panic| message_of(&*panic))
        });
        let failed = item.is_err();
        if sender.send(item).is_err() || failed {
            break;
        }
    }
    waiting
}

impl Host<'_> {
    /// The size of a tensor of an exchange.
    pub fn bytes_of(&self, number: usize, position: usize) -> usize {
        self.exchanges[number].types[position].bytes()
    }

    /// Whether the run has failed: the rest of it must not be carried out.
    pub fn has_failed(&self) -> bool {
        self.problem.is_some()
    }

    /// Writes the next tensor.
    pub fn feed(&mut self, number: usize, to: &mut [u8]) {
        to.fill(0);
        if self.problem.is_some() {
            return;
        }
        let Exchange { name, types, .. } = &self.exchanges[number];
        let item = self.feeds.get(&**name).and_then(|feed| feed.recv().ok());
        match item {
            Some(Ok(bytes)) if bytes.len() == to.len() => to.copy_from_slice(&bytes),
            Some(Ok(bytes)) => {
                let (ty, size) = (&types[0], types[0].element.bytes() as usize);
                let (is, needs) = (bytes.len() / size, ty.shape.count());
                self.problem = Some(format!(
                    "\"{name}\" is {ty} with {needs} elements, but {is} were fed"
                ));
            }
            Some(Err(message)) => {
                self.problem = Some(format!("the feeder of \"{name}\" panicked: {message}"));
            }
            None => self.problem = Some(format!("the feeder of \"{name}\" has ended")),
        }
    }

    /// The operands and results of the call of this number.
    pub fn call_of(&self, number: usize) -> &Call {
        &self.calls[number].call
    }

    /// Calls a Rust function.
    pub fn call(&mut self, number: usize, operands: &[Slice<'_>], results: &mut [SliceMut<'_>]) {
        let Bound { call, function } = &self.calls[number];
        let outcome = function.call(call.derivative, operands, results);
        self.check_call(number, outcome);
    }

    /// Calls a Rust function on bytes, for devices with a memory of their own. None if it fails.
    pub fn call_on_bytes(&mut self, number: usize, operands: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
        let Bound {
            call: made,
            function,
        } = &self.calls[number];
        let arrays = made.operands.iter().zip(operands);
        let arrays: Vec<Array> = arrays.map(|(ty, bytes)| array_of(ty, bytes)).collect();
        let outcome = call(function, made.derivative, &arrays, &made.results);
        let results = self.check_call(number, outcome)?;
        Some(results.iter().map(bytes_of).collect())
    }

    /// Remembers why a call failed, with the line of the program that made it.
    fn check_call<T>(&mut self, number: usize, outcome: Result<T, String>) -> Option<T> {
        let location = &self.calls[number].call.location;
        let place = location
            .as_ref()
            .map(|location| format!(" (called at {location})"));
        match outcome {
            Ok(results) => Some(results),
            Err(message) => {
                let message = format!("{message}{}", place.unwrap_or_default());
                self.problem.get_or_insert(message);
                None
            }
        }
    }

    /// Takes a tensor; with the last one of its `receive`, all go to the receiver.
    pub fn receive(&mut self, number: usize, position: usize, from: &[u8]) {
        let Exchange { name, types, .. } = &self.exchanges[number];
        let Some(receiver) = self.receivers.get(&**name) else {
            return;
        };
        if position == 0 {
            self.tensors.clear();
        }
        self.tensors.push(array_of(&types[position], from));
        if position + 1 == types.len() && self.problem.is_none() {
            let tensors = std::mem::take(&mut self.tensors);
            if receiver.send(tensors).is_err() {
                // Its panic is found when its thread is joined.
                self.receivers.remove(&**name);
            }
        }
    }
}
