//! What is known of the types of the standard library.

mod collections;
mod pointers;
#[cfg(test)]
mod tests;
mod values;
