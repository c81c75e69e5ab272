//! Lists of steps as CUDA graphs: captured once, and replayed by one call.
//!
//! Steps are dealt out to lanes, each a stream. A stream waits for an event of another one only where a step needs what the other did, so the graph has no order but that, and the GPU runs at the same time what may run at the same time.

#![allow(unsafe_code, reason = "calls of the driver")]

use crate::device::Stream;
use crate::library::Handle;
use ferrozyme_backend::Error;
use ferrozyme_gpu::{Place, Seat, Step, deal_out, dependencies};
use std::ptr::null_mut;

/// The number of the driver's headers for captures of what this thread queues.
const CAPTURE_THREAD_LOCAL: i32 = 1;

impl Stream {
    /// The graph of a list of steps, which stays where it is.
    pub(crate) fn capture(&mut self, steps: &[Step], status: Place) -> Result<Handle, Error> {
        let key = (steps.as_ptr() as usize, steps.len());
        if let Some(&known) = self.captured.get(&key) {
            return Ok(known);
        }
        let seats = deal_out(&dependencies(&self.kernels, steps), self.lanes.len());
        let (mut graph, mut executable) = (null_mut(), null_mut());
        // SAFETY: the stream is valid; between both calls nothing waits for it.
        let code = unsafe { (self.library().begin_capture)(self.lanes[0], CAPTURE_THREAD_LOCAL) };
        self.check("cuStreamBeginCapture", code)?;
        let mut events = Events {
            stream: self,
            all: Vec::new(),
        };
        let queued = events.queue(steps, &seats, status);
        drop(events);
        // SAFETY: the capture has begun.
        let code = unsafe { (self.library().end_capture)(self.lanes[0], &mut graph) };
        queued?;
        self.check("cuStreamEndCapture", code)?;
        // SAFETY: the graph is complete, and is not used behind.
        unsafe {
            let code = (self.library().instantiate)(&mut executable, graph, 0);
            let destroyed = (self.library().destroy_graph)(graph);
            self.check("cuGraphInstantiate", code)?;
            self.check("cuGraphDestroy", destroyed)?;
        }
        self.captured.insert(key, executable);
        Ok(executable)
    }
}

/// The events of a capture, which go when it is done.
struct Events<'s> {
    stream: &'s Stream,
    all: Vec<Handle>,
}

impl Events<'_> {
    /// Queues steps in their lanes. The first lane begins and ends with all of them.
    fn queue(&mut self, steps: &[Step], seats: &[Seat], status: Place) -> Result<(), Error> {
        let lanes = self.stream.lanes.len();
        let start = self.record(0)?;
        let mut has_begun = vec![false; lanes];
        has_begun[0] = true;
        let mut is_waited_for = vec![false; steps.len()];
        for &other in seats.iter().flat_map(|seat| &seat.waits) {
            is_waited_for[other] = true;
        }
        let mut ended: Vec<Option<Handle>> = Vec::with_capacity(steps.len());
        for ((step, seat), is_waited_for) in steps.iter().zip(seats).zip(is_waited_for) {
            if !std::mem::replace(&mut has_begun[seat.lane], true) {
                self.wait(seat.lane, start)?;
            }
            for event in seat.waits.iter().filter_map(|&other| ended[other]) {
                self.wait(seat.lane, event)?;
            }
            self.stream.queue_in(seat.lane, step, status)?;
            let event = is_waited_for.then(|| self.record(seat.lane)).transpose()?;
            ended.push(event);
        }
        for lane in (1..lanes).filter(|&lane| has_begun[lane]) {
            let end = self.record(lane)?;
            self.wait(0, end)?;
        }
        Ok(())
    }

    /// An event behind all that is in a lane.
    fn record(&mut self, lane: usize) -> Result<Handle, Error> {
        let event = self.stream.event_in(lane)?;
        self.all.push(event);
        Ok(event)
    }

    /// Has a lane wait for an event.
    fn wait(&self, lane: usize, event: Handle) -> Result<(), Error> {
        let (library, lane) = (self.stream.library(), self.stream.lanes[lane]);
        // SAFETY: both are valid and of one context.
        let status = unsafe { (library.wait_in_stream)(lane, event, 0) };
        self.stream.check("cuStreamWaitEvent", status)
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        for &event in &self.all {
            // SAFETY: what was captured does not need the events any more.
            unsafe { (self.stream.library().destroy_event)(event) };
        }
    }
}
