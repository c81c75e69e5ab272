//! Conventions of importer and exporter: how LLVM's constructs appear in the Loop IR.
//!
//! | file | convention |
//! |---|---|
//! | `signature.rs` | aggregates are lists of scalars |
//! | `allocation.rs` | which functions allocate and free, by family |
//! | `cleanup.rs` | code that runs when a callee unwinds |
//! | `stop.rs` | how a derivative stops a program with a message |

pub mod allocation;
pub mod cleanup;
pub mod signature;
pub mod stop;
