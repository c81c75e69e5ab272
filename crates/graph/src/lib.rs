//! The Graph IR: tensor programs, which are built in Rust, and differentiated, optimised and lowered to the Loop IR ahead of time.
//!
//! Operations stand in one table ([`Opcode`]). Tensors never change; parameters have a state that `update` changes. A Rust function can be an operation, too ([`UserFunction`]).
//!
//! ```text
//! parameter @w : f32[3, 4] = 0.5
//!
//! graph {
//!   %n = constant 1000 : i32[]
//!   for %n (%step: i32[]) {
//!     %x = feed "x" : f32[2, 3]
//!     %w = parameter @w : f32[3, 4]
//!     %y = contract %x, %w (ab, bc -> ac) : f32[2, 4]
//!     %z = tanh %y : f32[2, 4]
//!     receive "z" %z
//!   }
//! }
//! ```
//!
//! Everything here is built with shapes checked ([`Graph`]), prints ([`print`](mod@print), [`tree`]), parses back ([`parse`](fn@parse)), verifies ([`verify`](fn@verify)) runs ([`interpret`]), has derivatives ([`Graph::backward`]), is simplified ([`opt`]), and is lowered to the Loop IR ([`lower`](mod@lower)).

mod backward;
mod builder;
pub mod fuse;
mod graph;
mod infer;
pub mod interpret;
pub mod lower;
pub mod memory;
mod opcode;
pub mod opt;
mod parse;
mod payload;
pub mod print;
pub mod tree;
mod types;
pub mod user;
mod verify;

pub use backward::{BackwardError, Contributions, Gradients, Vjp};
pub use ferrozyme_ir::{FloatPredicate, IntPredicate, ParseError, Scalar};
pub use graph::{
    Def, Graph, Op, OpData, Parameter, ParameterData, Region, RegionData, Tensor, TensorData,
};
pub use opcode::{Effect, Evaluate, Opcode, PayloadKind, Row, Types};
pub use parse::parse;
pub use payload::{Function, Indices, Literal, Padding, Payload, Reduction, Stretch};
pub use types::{CONDITION, INDEX, Shape, TensorType, element_from_name, is_element};
pub use user::UserFunction;
pub use verify::{VerifyError, verify};
