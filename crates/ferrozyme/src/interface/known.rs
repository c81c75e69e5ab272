//! `Differentiable` for types of the standard library.

mod collections;
mod pointers;
mod queue;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use queue::empty_like;
