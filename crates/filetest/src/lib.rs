//! Runs text files as tests.
pub mod file;
pub mod scan;
pub mod signature;
pub mod value;
