//! What importer and exporter agree on, so that what one brings into the Loop IR the other finds again in LLVM.
//!
//! | file | what is agreed on |
//! |---|---|
//! | `signature.rs` | aggregates are lists of scalars |
//! | `allocation.rs` | which functions allocate and release, by family |
//! | `cleanup.rs` | what is done when a callee unwinds |
//! | `stop.rs` | how a derivative stops a program with a message |

pub mod allocation;
pub mod cleanup;
pub mod signature;
pub mod stop;
