//! The tests of the library, in one program: the whole model is differentiated for every program that is linked.

mod fetch;
mod files;
mod gradients;
mod layout;
mod program;
mod training;
