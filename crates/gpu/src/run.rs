//! Carries out the schedule on a device.
//!
//! The host runs ahead of the device: launches, copies and fed tensors are queued, in order. What is received is read in order too and handed over once it has arrived. The host waits where it must know a trip count or a condition, when
//! too many tensors are under way, and at the end. The status that kernels set is read along with everything that is handed over or decided on, so nothing is made of numbers behind an error.

use crate::schedule::{Place, Step};
use ferrozyme_backend::{Error, Executable, Host, Planned};
use std::collections::VecDeque;

/// How many tensors may be under way to the host.
const UNDER_WAY: usize = 8;

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

    /// What the report says.
    fn report(&self) -> String {
        String::new()
    }
}

/// A graph on a device.
pub struct Runner<D: Device> {
    device: D,
    steps: Vec<Step>,
    /// The sizes of the parameters.
    sizes: Vec<usize>,
    status: Place,
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
        let parameters = planned.parameters.iter().map(Vec::len);
        let sizes = parameters.chain([planned.arena, 4]);
        sizes.map(|size| size.max(4)).collect()
    }

    /// A graph on a device that has those buffers. Writes the parameters.
    pub fn new(device: D, steps: Vec<Step>, planned: &Planned) -> Result<Runner<D>, Error> {
        let buffer = planned.parameters.len() + 1;
        let mut runner = Runner {
            device,
            steps,
            sizes: planned.parameters.iter().map(Vec::len).collect(),
            status: Place { buffer, offset: 0 },
        };
        for (buffer, bytes) in planned.parameters.iter().enumerate() {
            let to = Place { buffer, offset: 0 };
            runner.device.write(to, bytes.clone())?;
        }
        runner.device.finish()?;
        Ok(runner)
    }
}

impl<D: Device> Executable for Runner<D> {
    fn run(&mut self, host: &mut Host<'_>) -> Result<(), Error> {
        self.device.set(self.status, 0)?;
        let mut run = Run {
            device: &mut self.device,
            host,
            status: self.status,
            received: VecDeque::new(),
            iteration: 0,
            loops: 0,
        };
        run.steps(&self.steps)?;
        run.hand_over(0)?;
        let status = run.device.read(run.status, 4)?;
        run.check(status)?;
        self.device.finish()
    }

    fn parameter(&self, number: usize) -> Result<Vec<u8>, Error> {
        let from = Place {
            buffer: number,
            offset: 0,
        };
        let pending = self.device.read(from, self.sizes[number])?;
        self.device.wait(pending)
    }

    fn set_parameter(&mut self, number: usize, bytes: &[u8]) -> Result<(), Error> {
        let to = Place {
            buffer: number,
            offset: 0,
        };
        self.device.write(to, bytes.to_vec())?;
        self.device.finish()
    }

    fn report(&self) -> String {
        self.device.report()
    }
}

struct Run<'r, 'h, D: Device> {
    device: &'r mut D,
    host: &'r mut Host<'h>,
    status: Place,
    received: VecDeque<Received<D::Pending>>,
    /// The number of the iteration of the innermost loop.
    iteration: i32,
    /// How many loops are around the step in hand.
    loops: u32,
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
            if self.loops > 0 && plain > 1 && self.device.replay(&steps[..plain], self.status, 1)? {
                steps = &steps[plain..];
                continue;
            }
            self.step(first)?;
            steps = rest;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Launch { kernel, places } => {
                let mut places = places.clone();
                places.push(self.status);
                self.device.launch(*kernel, &places)
            }
            &Step::Copy { to, from, bytes } => self.device.copy(to, from, bytes),
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

    fn counted(&mut self, count: Place, body: &[Step]) -> Result<(), Error> {
        let number = self.decide(count, 4)?;
        let number = i32::from_le_bytes([number[0], number[1], number[2], number[3]]);
        let is_plain = |step: &Step| {
            matches!(
                step,
                Step::Launch { .. } | Step::Copy { .. } | Step::Count { .. }
            )
        };
        if number > 1
            && body.iter().all(is_plain)
            && self.device.replay(body, self.status, number as u32)?
        {
            return Ok(());
        }
        let outer = self.iteration;
        self.loops += 1;
        for iteration in 0..number {
            self.iteration = iteration;
            self.steps(body)?;
        }
        self.loops -= 1;
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
