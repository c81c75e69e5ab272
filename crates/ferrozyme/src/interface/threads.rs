//! Threads for derivatives: bodies of a team run on rayon's pool, the one in which the caller runs.
//!
//! The calling thread takes part, and waits only for bodies that other threads have begun. In particular it does not take other work of the pool meanwhile, as rayon's own functions do while they wait: that
//! could be another derivative, which would begin on this thread in the middle of this one, and derivatives keep shadows of statics per thread. Nothing waits for a body that is not running, so nothing can
//! wait forever.
//!
//! Without threads (a pool that cannot be started) the caller does everything. A panic in a body is passed on to the caller, once all bodies have ended.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A body of a team: generated code.
type Body = unsafe extern "C-unwind" fn(*const c_void, i64);

thread_local! {
    /// Whether this thread runs a body of a team.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// How often the caller looks whether the last bodies have ended before it sleeps: some microseconds, about what it takes to be woken.
const LOOKS: u32 = 2000;

/// How many threads generated code may use here.
#[unsafe(no_mangle)]
extern "C" fn __ferrozyme_threads() -> i64 {
    if BUSY.get() {
        return 1;
    }
    // Rayon panics if its pool cannot be started.
    let threads = catch_unwind(rayon_core::current_num_threads);
    threads.map_or(1, |threads| i64::try_from(threads).unwrap_or(1))
}

/// Calls a body with each number below `count`, on as many threads as there are.
///
/// # Safety
/// The body may be called with the context and these numbers, at the same time on several threads.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __ferrozyme_team(count: i64, body: Body, context: *const c_void) {
    let helpers = (__ferrozyme_threads() - 1).min(count - 1);
    if helpers <= 0 {
        for number in 0..count {
            // SAFETY: as the caller promises.
            unsafe { body(context, number) };
        }
        return;
    }
    let team = Arc::new(Team {
        body,
        context,
        count,
        next: AtomicI64::new(0),
        left: AtomicI64::new(count),
        panic: Mutex::new(None),
        ended: Condvar::new(),
    });
    for _ in 0..helpers {
        let team = Arc::clone(&team);
        // What cannot be started is done by the others.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            rayon_core::spawn(move || team.take_part());
        }));
    }
    team.take_part();
    team.wait();
    let panic = team.panic().take();
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}

/// Bodies that are run together.
struct Team {
    body: Body,
    context: *const c_void,
    count: i64,
    /// The number of the next body.
    next: AtomicI64,
    /// How many bodies have not ended.
    left: AtomicI64,
    /// The first panic of a body.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Is told when all have ended.
    ended: Condvar,
}

// SAFETY: the context is only passed on to bodies, which may run on any thread while the caller of the team waits.
unsafe impl Send for Team {}
// SAFETY: the same.
unsafe impl Sync for Team {}

impl Team {
    /// Runs bodies until all have been begun. One who comes too late finds none: the context may be gone by then.
    fn take_part(&self) {
        let was_busy = BUSY.replace(true);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            // SAFETY: nobody else has this number, and the caller of the team waits until `left` is zero.
            let run = || unsafe { (self.body)(self.context, number) };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
                self.panic().get_or_insert(payload);
            }
            // What the body wrote is visible to the one who sees this.
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                // With the lock, so that it does not happen between a look and the sleep after it.
                let _lock = self.panic();
                self.ended.notify_all();
            }
        }
        BUSY.set(was_busy);
    }

    /// Waits until all bodies have ended.
    fn wait(&self) {
        for _ in 0..LOOKS {
            if self.has_ended() {
                return;
            }
            spin_loop();
        }
        let mut lock = self.panic();
        while !self.has_ended() {
            lock = self
                .ended
                .wait(lock)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn has_ended(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    fn panic(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon_core::{ThreadPool, ThreadPoolBuilder};

    /// What the bodies of a test share.
    struct Shared {
        calls: Vec<AtomicI64>,
        threads_inside: AtomicI64,
        fails: Option<i64>,
    }

    unsafe extern "C-unwind" fn count_call(context: *const c_void, number: i64) {
        // SAFETY: `run` passes it.
        let shared = unsafe { &*context.cast::<Shared>() };
        shared.calls[number as usize].fetch_add(1, Ordering::Relaxed);
        let threads = __ferrozyme_threads();
        shared.threads_inside.fetch_max(threads, Ordering::Relaxed);
        if shared.fails == Some(number) {
            panic!("body {number}");
        }
    }

    /// Runs a team here, and checks that each body was called once.
    fn run(count: usize, fails: Option<i64>) {
        let shared = Shared {
            calls: (0..count).map(|_| AtomicI64::new(0)).collect(),
            threads_inside: AtomicI64::new(0),
            fails,
        };
        let several = __ferrozyme_threads() > 1 && count > 1;
        let context: *const Shared = &shared;
        // SAFETY: the body takes what is shared, which outlives the team.
        let team = || unsafe { __ferrozyme_team(count as i64, count_call, context.cast()) };
        let ended = catch_unwind(AssertUnwindSafe(team));
        assert_eq!(ended.is_err(), fails.is_some());
        for calls in &shared.calls {
            assert_eq!(calls.load(Ordering::Relaxed), 1);
        }
        if several {
            assert_eq!(shared.threads_inside.load(Ordering::Relaxed), 1);
        }
    }

    fn pool(threads: usize) -> ThreadPool {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a pool can be made")
    }

    #[test]
    fn each_body_is_called_once() {
        for threads in [1, 2, 3, 8] {
            pool(threads).install(|| {
                assert_eq!(__ferrozyme_threads(), threads as i64);
                for count in [0, 1, 2, 3, 7, 100] {
                    run(count, None);
                }
            });
        }
        // From a thread that is in no pool.
        run(20, None);
    }

    #[test]
    fn a_panic_is_passed_on_when_all_have_ended() {
        pool(3).install(|| run(20, Some(4)));
    }

    #[test]
    fn teams_in_all_threads_of_a_pool_do_not_wait_for_each_other() {
        pool(2).scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|_| run(5, None));
            }
        });
    }
}
