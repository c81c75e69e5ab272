//! Runs tensor graphs that `ferrozyme_cpu::build` compiled in a build script. Nothing is compiled when the program runs, and no LLVM is looked for.
//!
//! A build script writes an object and a file of Rust with a type for the graph; [`include_graph!`] includes the file. Its functions, one for each `feed`, `receive` and parameter, take tensors as
//! nested arrays ([`Nested`]), so that a shape that does not fit is an error of the Rust compiler.
//!
//! ```ignore
//! // build.rs
//! fn main() -> Result<(), ferrozyme_cpu::Error> {
//!     let mut g = ferrozyme_graph::Graph::new();
//!     let x = g.feed("x", [2, 3]);
//!     let y = g.exp(x);
//!     g.receive("y", &[y]);
//!     ferrozyme_cpu::build("curve", &g)
//! }
//!
//! // main.rs
//! ferrozyme_linked::include_graph!("curve");
//!
//! fn main() -> Result<(), ferrozyme_linked::Error> {
//!     let mut curve = Curve::new();
//!     curve.feed_x(|x| *x = [[0.0; 3]; 2]);
//!     curve.receive_y(|y| assert_eq!(y[1], [1.0; 3]));
//!     curve.run()
//! }
//! ```

mod code;
mod memory;
mod nested;
mod parts;

pub use code::{Code, Run};
pub use ferrozyme_backend::Error;
pub use ferrozyme_graph::UserFunction;
pub use nested::{Entry, Nested, Tensor};
pub use parts::{Call, Exchange, Initial, Linked, Parameter, Parts, has_level};

/// Includes the file that `ferrozyme_cpu::build` wrote for the graph of this name: a type of that name in camel case.
#[macro_export]
macro_rules! include_graph {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
