//! Carries out the schedule on a device.
//!
//! The host runs ahead of the device: launches, copies and fed tensors are queued, in order. What is received is read in order too and handed over once it has arrived. The host waits where it must know a trip count or a condition, before it calls a Rust function, when
//! too many tensors are under way, and at the end. The status that kernels set is read along with everything that is handed over or decided on, so nothing is made of numbers behind an error.

use crate::schedule::{Place, Step};
use crate::{GpuProgram, Traffic};
use ferrozyme_backend::{Error, Executable, Host, Initial, Planned, Span, Timeline};
use std::collections::VecDeque;

/// How many tensors may be under way to the host.
const UNDER_WAY: usize = 8;
/// How many runs of kernels a timeline has at most.
const SPANS: usize = 1 << 16;

/// A device with one queue, in which everything runs in order. Buffers are numbered; all are made at once.
pub trait Device {
    /// A read that was queued.
    type Pending;

    /// Queues a copy of these bytes to a place.
    fn write(&mut self, to: Place, bytes: Vec<u8>) -> Result<(), Error>;

    /// Queues a read of a number of bytes.
    fn read(&self, from: Place, bytes: usize) -> Result<Self::Pending, Error>;

    /// Waits for a read.
    fn wait(&self, pending: Self::Pending) -> Result<Vec<u8>, Error>;

    /// Queues a copy between two places that do not overlap.
    fn copy(&mut self, to: Place, from: Place, bytes: usize) -> Result<(), Error>;

    /// Queues a write of an `i32`.
    fn set(&mut self, to: Place, value: i32) -> Result<(), Error>;

    /// Queues a launch of a kernel. The last of the places is that of the status.
    fn launch(&mut self, kernel: usize, places: &[Place]) -> Result<(), Error>;

    /// Waits until all is done.
    fn finish(&mut self) -> Result<(), Error>;

    /// Carries out steps that are only launches, copies and counts a number of times, in a way that is faster than one by one. False if there is none. The lists of steps stay where they are, so that they are known again.
    fn replay(&mut self, steps: &[Step], status: Place, count: u32) -> Result<bool, Error> {
        let _ = (steps, status, count);
        Ok(false)
    }

    /// The device's name.
    fn name(&self) -> String;

    /// Queues a mark, behind all that is queued. False if the device has no clock.
    fn mark(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Waits for all marks and takes them: when each was reached, in seconds behind the first one.
    fn take_marks(&mut self) -> Result<Vec<f64>, Error> {
        Ok(Vec::new())
    }

    /// What the report says.
    fn report(&self) -> String {
        String::new()
    }
}

/// A graph on a device.
pub struct Runner<D: Device> {
    device: D,
    steps: Vec<Step>,
    /// For each kernel its name and what a run of it moves and computes.
    kernels: Vec<(String, Traffic)>,
    status: Place,
    /// Whether the graph has run before.
    has_run: bool,
}

/// A tensor that is under way to the host, with the status.
struct Received<P> {
    number: usize,
    position: usize,
    tensor: P,
    status: P,
}

impl<D: Device> Runner<D> {
    /// The sizes of the buffers that a device needs: the parameters, the arena, and the status.
    pub fn buffer_sizes(planned: &Planned) -> Vec<usize> {
        let parameters = planned.parameters.iter().map(Initial::size);
        let sizes = parameters.chain([planned.arena, 4]);
        sizes.map(|size| size.max(4)).collect()
    }

    /// A graph on a device that has those buffers. Writes the parameters.
    pub fn new(device: D, program: GpuProgram, planned: &Planned) -> Result<Runner<D>, Error> {
        let buffer = planned.parameters.len() + 1;
        let kernels = program.kernels.iter().map(|kernel| {
            let kind = if kernel.product.is_some() {
                " (product)"
            } else {
                ""
            };
            (format!("{}{kind}", kernel.name), kernel.traffic)
        });
        let mut runner = Runner {
            device,
            kernels: kernels.collect(),
            steps: program.steps,
            status: Place { buffer, offset: 0 },
            has_run: false,
        };
        for (buffer, initial) in planned.parameters.iter().enumerate() {
            for (offset, bytes) in initial.pieces() {
                runner.device.write(Place { buffer, offset }, bytes)?;
            }
        }
        runner.device.finish()?;
        Ok(runner)
    }

    /// Runs the graph once. What is measured is kept if there is a place for it.
    fn carry_out(
        &mut self,
        host: &mut Host<'_>,
        measured: Option<&mut Measured>,
    ) -> Result<(), Error> {
        self.device.set(self.status, 0)?;
        let mut run = Run {
            device: &mut self.device,
            host,
            kernels: &self.kernels,
            status: self.status,
            received: VecDeque::new(),
            iteration: 0,
            runs_again: std::mem::replace(&mut self.has_run, true),
            measured,
        };
        run.steps(&self.steps)?;
        run.hand_over(0)?;
        let status = run.device.read(run.status, 4)?;
        run.check(status)?;
        self.device.finish()
    }
}

impl<D: Device> Executable for Runner<D> {
    fn run(&mut self, host: &mut Host<'_>) -> Result<(), Error> {
        self.carry_out(host, None)
    }

    fn timeline(&mut self, host: &mut Host<'_>) -> Result<Option<Timeline>, Error> {
        if !self.device.mark()? {
            return Ok(None);
        }
        let mut measured = Measured::default();
        let outcome = self.carry_out(host, Some(&mut measured));
        let marks = self.device.take_marks()?;
        outcome?;
        let mut spans = measured.spans;
        for (span, times) in spans.iter_mut().zip(marks.windows(2)) {
            (span.start, span.seconds) = (times[0], times[1] - times[0]);
        }
        Ok(Some(Timeline {
            device: self.device.name(),
            spans,
            left_out: measured.left_out,
        }))
    }

    fn read_parameter(&self, number: usize, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        let from = Place {
            buffer: number,
            offset,
        };
        let pending = self.device.read(from, to.len())?;
        to.copy_from_slice(&self.device.wait(pending)?[..to.len()]);
        Ok(())
    }

    fn write_parameter(&mut self, number: usize, offset: usize, from: &[u8]) -> Result<(), Error> {
        let to = Place {
            buffer: number,
            offset,
        };
        self.device.write(to, from.to_vec())?;
        self.device.finish()
    }

    fn report(&self) -> String {
        self.device.report()
    }
}

/// What is measured of a run: a mark stands before the first kernel and behind each.
#[derive(Default)]
struct Measured {
    spans: Vec<Span>,
    left_out: usize,
}

struct Run<'r, 'h, D: Device> {
    device: &'r mut D,
    host: &'r mut Host<'h>,
    kernels: &'r [(String, Traffic)],
    status: Place,
    received: VecDeque<Received<D::Pending>>,
    /// The number of the iteration of the innermost loop.
    iteration: i32,
    /// Whether the steps in hand run again and again.
    runs_again: bool,
    measured: Option<&'r mut Measured>,
}

impl<D: Device> Run<'_, '_, D> {
    fn steps(&mut self, mut steps: &[Step]) -> Result<(), Error> {
        while let Some((first, rest)) = steps.split_first() {
            if self.host.has_failed() {
                return Ok(());
            }
            // What runs again and again is worth the work of preparing a replay.
            let is_plain = |step: &&Step| matches!(step, Step::Launch { .. } | Step::Copy { .. });
            let plain = steps.iter().take_while(is_plain).count();
            if self.runs_again && plain > 1 && self.replay(&steps[..plain], 1)? {
                steps = &steps[plain..];
                continue;
            }
            self.step(first)?;
            steps = rest;
        }
        Ok(())
    }

    /// Has the device carry out steps in its own way, if it has one. What is measured is launched kernel by kernel.
    fn replay(&mut self, steps: &[Step], count: u32) -> Result<bool, Error> {
        match self.measured {
            Some(_) => Ok(false),
            None => self.device.replay(steps, self.status, count),
        }
    }

    /// Notes a run of a kernel, which is queued.
    fn ran(&mut self, name: &str, traffic: Traffic) -> Result<(), Error> {
        let Some(measured) = &mut self.measured else {
            return Ok(());
        };
        if measured.spans.len() == SPANS {
            measured.left_out += 1;
            return Ok(());
        }
        measured.spans.push(Span {
            name: name.to_owned(),
            start: 0.0,
            seconds: 0.0,
            bytes: traffic.bytes,
            operations: traffic.operations,
        });
        self.device.mark()?;
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Launch { kernel, places } => {
                let mut places = places.clone();
                places.push(self.status);
                self.device.launch(*kernel, &places)?;
                let kernels = self.kernels;
                let (name, traffic) = &kernels[*kernel];
                self.ran(name, *traffic)
            }
            &Step::Copy { to, from, bytes } => {
                self.device.copy(to, from, bytes)?;
                let traffic = Traffic {
                    bytes: 2.0 * bytes as f64,
                    operations: 0.0,
                };
                self.ran("(copy)", traffic)
            }
            &Step::Feed { number, to } => {
                let mut bytes = vec![0; self.host.bytes_of(number, 0)];
                self.host.feed(number, &mut bytes);
                self.device.write(to, bytes)
            }
            &Step::Receive {
                number,
                position,
                from,
            } => {
                let bytes = self.host.bytes_of(number, position);
                let tensor = self.device.read(from, bytes)?;
                let status = self.device.read(self.status, 4)?;
                self.received.push_back(Received {
                    number,
                    position,
                    tensor,
                    status,
                });
                self.hand_over(UNDER_WAY)
            }
            Step::Call { number, places } => self.call(*number, places),
            &Step::Count { to } => self.device.set(to, self.iteration),
            Step::For { count, body } => self.counted(*count, body),
            Step::Again { condition, body } => loop {
                self.steps(body)?;
                if self.host.has_failed() || !self.holds(*condition)? {
                    return Ok(());
                }
            },
            Step::If {
                condition,
                then,
                otherwise,
            } => match self.holds(*condition)? {
                true => self.steps(then),
                false => self.steps(otherwise),
            },
        }
    }

    /// Copies operands to the host, calls a function there, and copies results back.
    fn call(&mut self, number: usize, places: &[Place]) -> Result<(), Error> {
        let call = self.host.call_of(number);
        let sizes = call.operands.iter().map(|ty| ty.bytes());
        let (from, to) = places.split_at(call.operands.len());
        let queued = from.iter().zip(sizes);
        let queued = queued.map(|(&from, bytes)| self.device.read(from, bytes));
        let queued = queued.collect::<Result<Vec<_>, _>>()?;
        let status = self.device.read(self.status, 4)?;
        self.check(status)?;
        let operands = queued.into_iter().map(|read| self.device.wait(read));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let results = self.host.call_on_bytes(number, &operands);
        for (bytes, &to) in results.into_iter().flatten().zip(to) {
            self.device.write(to, bytes)?;
        }
        Ok(())
    }

    fn counted(&mut self, count: Place, body: &[Step]) -> Result<(), Error> {
        let number = self.decide(count, 4)?;
        let number = i32::from_le_bytes([number[0], number[1], number[2], number[3]]);
        let is_plain = |step: &Step| {
            matches!(
                step,
                Step::Launch { .. } | Step::Copy { .. } | Step::Count { .. }
            )
        };
        if number > 1 && body.iter().all(is_plain) && self.replay(body, number as u32)? {
            return Ok(());
        }
        let outer = self.iteration;
        let ran_again = std::mem::replace(&mut self.runs_again, true);
        for iteration in 0..number {
            self.iteration = iteration;
            self.steps(body)?;
        }
        self.runs_again = ran_again;
        self.iteration = outer;
        Ok(())
    }

    fn holds(&mut self, condition: Place) -> Result<bool, Error> {
        Ok(self.decide(condition, 1)?[0] != 0)
    }

    /// Waits for bytes that the host decides by.
    fn decide(&mut self, from: Place, bytes: usize) -> Result<Vec<u8>, Error> {
        let wanted = self.device.read(from, bytes)?;
        let status = self.device.read(self.status, 4)?;
        self.check(status)?;
        self.device.wait(wanted)
    }

    fn check(&mut self, status: D::Pending) -> Result<(), Error> {
        match self.device.wait(status)?[..] {
            [0, 0, 0, 0] => Ok(()),
            _ => Err(Error::Device("an index is out of range".to_owned())),
        }
    }

    /// Hands over what was received until no more than a number of tensors are under way.
    fn hand_over(&mut self, rest: usize) -> Result<(), Error> {
        while self.received.len() > rest
            && let Some(received) = self.received.pop_front()
        {
            self.check(received.status)?;
            let bytes = self.device.wait(received.tensor)?;
            self.host
                .receive(received.number, received.position, &bytes);
        }
        Ok(())
    }
}
