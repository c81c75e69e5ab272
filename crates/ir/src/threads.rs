//! The two functions through which generated code runs on several threads.
//!
//! ```text
//! declare @__ferrozyme_threads() -> (i64)
//! declare @__ferrozyme_team(i64, ptr, ptr)
//!
//!   %t = call @__ferrozyme_threads()              how many threads may be used here
//!   call @__ferrozyme_team(%t, @body, %context)   calls @body(%context, i) for each i from 0 to %t
//! ```
//!
//! - The number of threads is the program's own (OpenMP's, or that of rayon's pool). It is 1 in a body of a team, in a parallel region of the program, and where the program has no threads to offer. It is a good number of
//!   bodies and nothing else: a team may have any number of them.
//! - A team calls its body exactly once for each number, possibly at the same time, on as many threads as it gets, and returns when all calls have returned. What was written before the team is visible in the bodies, and what they
//!   wrote is visible after it.
//! - A body is a function `(ptr, i64)` without results. Bodies of one team must not write to memory that another one accesses, but by atomic operations. Thread-local globals are those of whichever thread
//!   runs the body.
//!
//! Backends and the interpreter define both functions; the interpreter calls the bodies one after the other.

use crate::facts::MemoryEffect;
use crate::function::Function;
use crate::module::{FunctionId, Module};
use crate::types::Type;

/// The function `() -> i64` that says on how many threads bodies of a team may run.
pub const THREADS: &str = "__ferrozyme_threads";

/// The function `(i64, ptr, ptr)` that calls the function behind its first pointer with the second one, once for each number below the first argument.
pub const TEAM: &str = "__ferrozyme_team";

/// The types of the parameters of a team's body.
pub const TEAM_BODY: [Type; 2] = [Type::PTR, Type::I64];

impl Module {
    /// The function [`THREADS`], which is declared where it is not yet.
    pub fn threads(&mut self) -> FunctionId {
        if let Some(known) = self.function_named(THREADS) {
            return known;
        }
        let mut function = Function::declare(THREADS, Vec::new(), vec![Type::I64]);
        // The answer depends on where it is asked, so that it is not a constant.
        function.facts.memory = MemoryEffect::Read;
        function.facts.willreturn = true;
        function.facts.inactive = true;
        self.functions.push(function)
    }

    /// The function [`TEAM`], which is declared where it is not yet.
    pub fn team(&mut self) -> FunctionId {
        if let Some(known) = self.function_named(TEAM) {
            return known;
        }
        let params = [Type::I64, Type::PTR, Type::PTR].map(Into::into).to_vec();
        // A body may do anything, and a panic in it goes through the team: no facts.
        self.functions
            .push(Function::declare(TEAM, params, Vec::new()))
    }
}
