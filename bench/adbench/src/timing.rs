//! ADBench's timing: batches that take half a second at least, of which the fastest counts.

use std::hint::black_box;
use std::time::Instant;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// A batch takes this many seconds at least.
    pub batch_seconds: f64,
    /// At most so many batches.
    pub batches: u32,
    /// No further batch is begun after this many seconds.
    pub total_seconds: f64,
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol {
            batch_seconds: 0.5,
            batches: 10,
            total_seconds: 10.0,
        }
    }
}

impl Protocol {
    /// Seconds that one call takes.
    pub fn time<R>(&self, mut work: impl FnMut() -> R) -> f64 {
        let mut batch = |repeats: u32| {
            let start = Instant::now();
            for _ in 0..repeats {
                black_box(work());
            }
            start.elapsed().as_secs_f64()
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
