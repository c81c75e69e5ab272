//! The host's side of a run: feeders, which run ahead on threads of their own, and receivers, which run behind.
//!
//! A feeder is at most [`AHEAD`] tensors ahead. What it has made when the run ends is fed first in the next run. A feeder or receiver that panics, or a tensor of another type, is an error: from then on the run is fed zeros, nothing is received any more,
//! and the run returns the error.

use crate::Error;
use crate::bytes::array_of;
use ferrozyme_graph::Scalar;
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::lower::Exchange;
use rustc_hash::FxHashMap;
use std::any::Any;
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

/// The host of a run: compiled code takes fed tensors from it, and hands over what is received.
pub struct Host<'h> {
    exchanges: &'h [Exchange],
    feeds: FxHashMap<&'h str, mpsc::Receiver<Item>>,
    receivers: FxHashMap<&'h str, SyncSender<Vec<Array>>>,
    /// The tensors of a `receive` so far.
    tensors: Vec<Array>,
    problem: Option<String>,
}

/// Starts feeders and receivers, runs, and waits for them.
pub(crate) fn with_host(
    exchanges: &[Exchange],
    feeders: &mut FxHashMap<String, Feeder>,
    receivers: &mut FxHashMap<String, Receiver>,
    run: impl FnOnce(&mut Host<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    check(exchanges, feeders)?;
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let mut host = Host {
            exchanges,
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

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message").to_owned()
}

impl Host<'_> {
    /// The size of a tensor of an exchange.
    pub fn bytes_of(&self, number: usize, position: usize) -> usize {
        self.exchanges[number].types[position].bytes()
    }

    /// Whether the run has failed already, so that the rest of it need not be carried out.
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
