//! The import of LLVM functions: texts with what is expected of them, and programs that must compute the same in the Loop IR.

#[allow(
    unreachable_pub,
    reason = "it is compiled as a crate of its own as well"
)]
mod programs;
mod rust;
mod text;
