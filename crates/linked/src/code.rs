//! Machine code of a graph: called by its address, and called back from.
//!
//! The code is a function that takes one table: the addresses of the host's functions and of its data, the number of threads, then the addresses of the parameters and of the arena. Large products of matrices run on the threads of rayon's pool. `crates/cpu` makes it.

#![allow(
    unsafe_code,
    reason = "compiled code is called by its address, and calls back"
)]

use crate::memory::Memory;
use ferrozyme_backend::{Error, Executable, Host};
use ferrozyme_graph::Scalar;
use ferrozyme_graph::user::{Slice, SliceMut};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The function that runs a graph.
pub type Run = unsafe extern "C-unwind" fn(*const *const c_void);

/// Machine code of a graph, with the memory of its parameters.
pub struct Code {
    run: Run,
    parameters: Vec<Memory>,
    arena: Memory,
}

impl Code {
    /// Of a function, with the sizes of the parameters, which are zero, and of the arena.
    ///
    /// # Safety
    /// The function was compiled by `ferrozyme-cpu` from a graph with such parameters, an arena of this size, and the exchanges and calls of the hosts that it will be run with. It stays where it is as long as the result lives.
    pub unsafe fn new(run: Run, sizes: impl IntoIterator<Item = usize>, arena: usize) -> Code {
        Code {
            run,
            parameters: sizes.into_iter().map(Memory::zeroed).collect(),
            arena: Memory::zeroed(arena),
        }
    }

    /// Gives all elements of a parameter that was not written to yet the same bytes.
    pub fn fill_parameter(&mut self, number: usize, element: &[u8]) {
        // Zeros are there, and stay pages that nobody has touched.
        if element.iter().any(|&byte| byte != 0) {
            let all = self.parameters[number].bytes_mut();
            for own in all.chunks_exact_mut(element.len()) {
                own.copy_from_slice(element);
            }
        }
    }
}

impl Executable for Code {
    fn run(&mut self, host: &mut Host<'_>) -> Result<(), Error> {
        let (feed, receive, call): (Feed, Receive, Call) = (feed, receive, call);
        let team: Team = team;
        let mut table: Vec<*const c_void> = vec![
            feed as *const c_void,
            receive as *const c_void,
            call as *const c_void,
            std::ptr::from_mut(host).cast(),
            team as *const c_void,
            std::ptr::without_provenance(threads()),
        ];
        let memories = self.parameters.iter_mut().chain([&mut self.arena]);
        table.extend(memories.map(|memory| memory.address().cast_const().cast()));
        let run = self.run;
        // SAFETY: the memory is that of the parameters and the arena, in their order and of their sizes, and the host lives until the call returns.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { run(table.as_ptr()) }));
        match outcome {
            // What stopped it is the host's problem, which it reports.
            Err(panic) if !panic.is::<Stopped>() => resume_unwind(panic),
            _ => Ok(()),
        }
    }

    fn read_parameter(&self, number: usize, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        to.copy_from_slice(&self.parameters[number].bytes()[offset..][..to.len()]);
        Ok(())
    }

    fn write_parameter(&mut self, number: usize, offset: usize, from: &[u8]) -> Result<(), Error> {
        self.parameters[number].bytes_mut()[offset..][..from.len()].copy_from_slice(from);
        Ok(())
    }
}

/// How many threads the code may use.
fn threads() -> usize {
    // Rayon panics if its pool cannot be started.
    catch_unwind(rayon::current_num_threads).unwrap_or(1)
}

/// What a team does: it gets the context and a number.
type Body = unsafe extern "C-unwind" fn(*const c_void, i64);
type Team = unsafe extern "C-unwind" fn(*mut Host<'_>, i64, Body, *const c_void);

/// An address that several threads may use.
#[derive(Clone, Copy)]
struct Shared(*const c_void);

// SAFETY: bodies of a team may run at the same time with the same context.
unsafe impl Send for Shared {}

/// Calls a body with each number below `count`, at the same time on several threads.
unsafe extern "C-unwind" fn team(_: *mut Host<'_>, count: i64, body: Body, context: *const c_void) {
    let context = Shared(context);
    // SAFETY: generated code gives a body, and a context that lives until all numbers are done.
    let run = move |number: i64| {
        let Shared(context) = { context };
        unsafe { body(context, number) };
    };
    rayon::in_place_scope(|scope| {
        for number in 1..count {
            scope.spawn(move |_| run(number));
        }
        if count > 0 {
            run(0);
        }
    });
}

type Feed = extern "C-unwind" fn(*mut Host<'_>, i64, *mut u8);
type Receive = extern "C" fn(*mut Host<'_>, i64, i64, *const u8);
type Call = extern "C-unwind" fn(*mut Host<'_>, i64, *const *mut u8);

/// What unwinds compiled code, which owns nothing, when the host has failed: the run ends where it is.
struct Stopped;

fn stop_if_failed(host: &Host<'_>) {
    if host.has_failed() {
        resume_unwind(Box::new(Stopped));
    }
}

extern "C-unwind" fn feed(host: *mut Host<'_>, number: i64, to: *mut u8) {
    // SAFETY: `run` passes the address of a host that nobody else uses meanwhile, and the code gives the buffer of the exchange of this number.
    let (host, to) = unsafe {
        let host = &mut *host;
        let bytes = host.bytes_of(number as usize, 0);
        (host, std::slice::from_raw_parts_mut(to, bytes))
    };
    host.feed(number as usize, to);
    stop_if_failed(host);
}

extern "C" fn receive(host: *mut Host<'_>, number: i64, position: i64, from: *const u8) {
    // SAFETY: as for `feed`.
    let (host, from) = unsafe {
        let host = &mut *host;
        let bytes = host.bytes_of(number as usize, position as usize);
        (host, std::slice::from_raw_parts(from, bytes))
    };
    host.receive(number as usize, position as usize, from);
}

extern "C-unwind" fn call(host: *mut Host<'_>, number: i64, addresses: *const *mut u8) {
    // SAFETY: as for `feed`: there is an address for each operand, then for each result of the call of this number. Buffers begin with a line of the cache.
    let host = unsafe { &mut *host };
    let call = host.call_of(number as usize);
    let (operands, results) = (call.operands.clone(), call.results.clone());
    let at = |position: usize| unsafe { *addresses.add(position) };
    let inputs = operands.iter().enumerate();
    let inputs: Vec<Slice<'_>> = inputs
        .map(|(position, ty)| {
            let (from, count) = (at(position).cast_const(), ty.shape.count());
            unsafe {
                match ty.element {
                    Scalar::F32 => Slice::F32(std::slice::from_raw_parts(from.cast(), count)),
                    Scalar::F64 => Slice::F64(std::slice::from_raw_parts(from.cast(), count)),
                    _ => Slice::I32(std::slice::from_raw_parts(from.cast(), count)),
                }
            }
        })
        .collect();
    let outputs = results.iter().enumerate();
    let mut outputs: Vec<SliceMut<'_>> = outputs
        .map(|(position, ty)| {
            let (to, count) = (at(operands.len() + position), ty.shape.count());
            // Results have memory that no operand has: a call computes nothing in place.
            unsafe {
                match ty.element {
                    Scalar::F32 => SliceMut::F32(std::slice::from_raw_parts_mut(to.cast(), count)),
                    Scalar::F64 => SliceMut::F64(std::slice::from_raw_parts_mut(to.cast(), count)),
                    _ => SliceMut::I32(std::slice::from_raw_parts_mut(to.cast(), count)),
                }
            }
        })
        .collect();
    host.call(number as usize, &inputs, &mut outputs);
    stop_if_failed(host);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::ptr::null_mut;
    use std::sync::{Barrier, Mutex};
    use std::thread::{ThreadId, current};

    struct Context {
        /// Two must be there at the same time.
        both: Barrier,
        numbers: Mutex<Vec<(i64, ThreadId)>>,
    }

    unsafe extern "C-unwind" fn note(context: *const c_void, number: i64) {
        // SAFETY: the test passes this context.
        let context = unsafe { &*context.cast::<Context>() };
        if number < 2 {
            context.both.wait();
        }
        let mut numbers = context.numbers.lock().unwrap();
        numbers.push((number, current().id()));
    }

    #[test]
    fn a_team_runs_each_number_once_on_several_threads() {
        let context = Context {
            both: Barrier::new(2),
            numbers: Mutex::default(),
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2);
        let address = Shared(std::ptr::from_ref(&context).cast());
        pool.build().unwrap().install(move || {
            assert_eq!(threads(), 2);
            let Shared(address) = { address };
            // SAFETY: the context lives until the team has ended.
            unsafe { team(null_mut(), 5, note, address) };
        });
        let mut numbers = context.numbers.into_inner().unwrap();
        let used: HashSet<ThreadId> = numbers.iter().map(|&(_, thread)| thread).collect();
        assert_eq!(used.len(), 2);
        numbers.sort_by_key(|&(number, _)| number);
        assert!(numbers.iter().map(|&(number, _)| number).eq(0..5));
    }
}
