//! ADBench's timing: batches that take half a second at least, of which the fastest counts.

use std::hint::black_box;
use std::time::Instant;

/// What time is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// The time that passes.
    Wall,
    /// The time that this thread spends on a processor.
    Processor,
}

/// Where Linux says how long this thread has run, in nanoseconds.
const RUN_TIME: &str = "/proc/thread-self/schedstat";

impl Clock {
    /// The processor's clock, if the system tells it.
    ///
    /// # Errors
    /// If it does not.
    pub fn processor() -> Result<Clock, String> {
        match run_time() {
            Some(_) => Ok(Clock::Processor),
            None => Err(format!("{RUN_TIME} does not say how long a thread has run")),
        }
    }

    /// Seconds that some work takes.
    fn time(self, work: impl FnOnce()) -> f64 {
        match self {
            Clock::Wall => {
                let start = Instant::now();
                work();
                start.elapsed().as_secs_f64()
            }
            Clock::Processor => {
                let start = run_time();
                work();
                let seconds = start.zip(run_time()).map(|(start, end)| end - start);
                seconds.unwrap_or(f64::NAN)
            }
        }
    }
}

fn run_time() -> Option<f64> {
    let text = std::fs::read_to_string(RUN_TIME).ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 * 1e-9)
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// A batch takes this many seconds at least.
    pub batch_seconds: f64,
    /// The maximum number of batches.
    pub batches: u32,
    /// No further batch is begun after this many seconds.
    pub total_seconds: f64,
    pub clock: Clock,
}

impl Protocol {
    /// ADBench's own.
    pub fn full(clock: Clock) -> Protocol {
        Protocol {
            batch_seconds: 0.5,
            batches: 10,
            total_seconds: 10.0,
            clock,
        }
    }

    /// For rough numbers.
    pub fn quick(clock: Clock) -> Protocol {
        Protocol {
            batch_seconds: 0.02,
            batches: 5,
            total_seconds: 2.0,
            clock,
        }
    }

    /// Seconds that one call takes. As in ADBench, all calls write their result into the same place.
    pub fn time<R>(&self, place: &mut R, mut work: impl FnMut(&mut R)) -> f64 {
        let mut batch = |repeats: u32| {
            self.clock.time(|| {
                for _ in 0..repeats {
                    work(place);
                    black_box(&mut *place);
                }
            })
        };
        let started = Instant::now();
        let mut repeats = 1;
        let mut seconds = batch(repeats);
        while seconds < self.batch_seconds {
            repeats *= 2;
            seconds = batch(repeats);
        }
        let mut fastest = seconds;
        for _ in 1..self.batches {
            if started.elapsed().as_secs_f64() > self.total_seconds {
                break;
            }
            fastest = fastest.min(batch(repeats));
        }
        fastest / f64::from(repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_work_takes_longer() {
        let protocol = Protocol {
            batch_seconds: 0.001,
            ..Protocol::quick(Clock::Wall)
        };
        let time = |count: u64| {
            let work = |sum: &mut u64| (0..count).for_each(|i| *sum = black_box(*sum ^ i));
            protocol.time(&mut 0, work)
        };
        let (short, long) = (time(100), time(100_000));
        assert!(short > 0.0 && long > 10.0 * short, "{short} and {long}");
    }
}
