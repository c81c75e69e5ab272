//! Timing: contestants take turns, in processor time (with several threads: in the time that passes), and the fastest time of each counts.
//!
//! Turns are short, so that a time without disturbance is likely among them, and what slows the machine down meets all contestants.

#![allow(unsafe_code, reason = "contestants are given addresses")]

use crate::cases::{Case, Matrices};
use crate::contestants::{Contestant, Multiplied};
use std::time::{Duration, Instant};

/// The speed of all contestants in one case.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What was computed.
    pub case: Case,
    /// GFLOP/s of each contestant; none if it cannot.
    pub speeds: Vec<Option<f64>>,
}

/// How long the shortest turn takes, in seconds.
const TURN: f64 = 2e-4;

/// Measures a case for about so long.
///
/// # Panics
/// If two contestants disagree.
pub fn measure<T: Multiplied>(
    case: Case,
    contestants: &[Contestant<T>],
    patience: Duration,
    threads: usize,
) -> Measurement {
    let now = || match threads {
        1 => time_of(libc::CLOCK_THREAD_CPUTIME_ID),
        _ => time_of(libc::CLOCK_MONOTONIC),
    };
    let mut matrices = Matrices::<T>::new(case);
    let views = matrices.views();
    let one = T::from_f64(1.0);
    // SAFETY: the views are of these matrices, which live until the end.
    let run = |contestant: &Contestant<T>| unsafe { contestant.run(views, case.sizes, one, false) };
    let mut expected: Option<Vec<T>> = None;
    let mut turns = Vec::new();
    let mut best = Vec::new();
    for contestant in contestants {
        let can = run(contestant);
        if can {
            let result = matrices.result();
            let expected = expected.get_or_insert_with(|| result.to_vec());
            let terms = case.sizes[2] as f64;
            let agree = |(a, b): (&T, &T)| (a.to_f64() - b.to_f64()).abs() <= terms * 1e-4;
            assert!(
                result.iter().zip(expected.iter()).all(agree),
                "{} computes {case:?} differently",
                contestant.name
            );
        }
        let start = now();
        run(contestant);
        let once = (now() - start).max(1e-9);
        turns.push(can.then_some(((TURN / once) as usize).max(1)));
        best.push(once);
    }
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed() < patience {
        rounds += 1;
        for ((contestant, turn), best) in contestants.iter().zip(&turns).zip(&mut best) {
            let Some(count) = *turn else { continue };
            // What takes longer than all of this is measured once.
            if *best > patience.as_secs_f64() {
                continue;
            }
            let start = now();
            for _ in 0..count {
                run(contestant);
            }
            *best = best.min((now() - start) / count as f64);
        }
    }
    let speed =
        |(seconds, turn): (&f64, &Option<usize>)| turn.map(|_| case.operations() / seconds * 1e-9);
    Measurement {
        case,
        speeds: best.iter().zip(&turns).map(speed).collect(),
    }
}

/// Seconds, as a clock counts them.
fn time_of(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written to memory that is there.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
