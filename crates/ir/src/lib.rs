//! The Loop IR: what Ferrozyme analyses, differentiates and optimises.
//!
//! It is SSA with regions in place of a control-flow graph: counted `for`, general `loop`, `if` and `switch` hold
//! regions, which are lists of operations. Operations stand in one table ([`Opcode`]). Memory is bytes behind
//! pointers; loads and stores carry types.
//!
//! ```text
//! func @dot(%x: ptr noalias readonly, %y: ptr noalias readonly, %n: i64) -> (f64) {
//!   %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
//!     %px = offset %x, %i * 8
//!     %a = load f64 %px align 8
//!     %py = offset %y, %i * 8
//!     %b = load f64 %py align 8
//!     %ab = fmul f64 %a, %b
//!     %next = fadd f64 %acc, %ab
//!     yield %next
//!   }
//!   return %sum
//! }
//! ```
//!
//! Everything here prints ([`print`](mod@print)), parses back ([`parse`](mod@parse)), verifies ([`verify`](mod@verify)) and runs ([`interpret`](mod@interpret)).

mod builder;
mod contraction;
mod cursor;
mod facts;
pub mod formula;
mod function;
pub mod interpret;
pub mod lexer;
pub mod literal;
mod mathematics;
mod module;
mod opcode;
pub mod parse;
pub mod print;
mod processor;
mod structure;
mod threads;
mod types;
pub mod verify;
mod view;

pub use builder::Builder;
pub use contraction::{Contraction, ContractionIndex, IndexClass, sum_type};
pub use cranelift_entity as entity;
pub use cursor::Cursor;
pub use facts::{Alignment, Field, Flags, FunctionFacts, Layout, MemoryEffect, ParamFacts, Range};
pub use function::{
    Constant, Function, Op, OpData, Param, Payload, Region, RegionData, Value, ValueData, ValueDef,
    float_from_bits, float_to_bits, ones, sign_extend,
};
pub use mathematics::{Derivative, Interval, MathCost, MathFunction, MathValue, Slope};
pub use module::{FunctionId, Global, GlobalId, Location, LocationData, Module, Rule, Symbol};
pub use opcode::{Effect, FloatPredicate, Form, IntPredicate, Opcode};
pub use parse::{ParseError, parse_module};
pub use print::{Names, print_function, print_module, print_op, print_op_with, print_value};
pub use processor::{PROCESSOR_LEVEL, ProcessorLevel, type_passed_by_level};
pub use structure::{Structure, all_ops, for_each_op, returning_ops};
pub use threads::{TEAM, TEAM_BODY, THREADS};
pub use types::{Scalar, Type};
pub use verify::{VerifyError, verify_function, verify_module};
pub use view::{OpView, OpViewMut};
