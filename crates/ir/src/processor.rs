//! Levels of the x86-64 architecture, and the function that says which one the processor has.
//!
//! A function may be compiled for a level above that of the rest of the program ([`FunctionFacts::level`](crate::FunctionFacts)). Then it may only be called where the processor is known to have that
//! level: behind a test of [`PROCESSOR_LEVEL`], or from a function of the same or a higher level. So it is not inlined into a function of a lower one, where instructions could move ahead of the test.
//!
//! ```text
//! func @sum(%x: ptr, %n: i64) -> (f64) {                    func @sum.v3(%x: ptr, %n: i64) -> (f64) level(v3) { … }
//!   %level = call @__ferrozyme_processor_level()
//!   %wide = icmp sge i32 %level, 3
//!   %s = if %wide -> (f64) {
//!     %a = call @sum.v3(%x, %n)
//!     yield %a
//!   } else { … }
//! ```

use crate::facts::MemoryEffect;
use crate::function::Function;
use crate::module::{FunctionId, Module};
use crate::types::{Scalar, Type};
use std::fmt;
use std::str::FromStr;

/// A level of x86-64 above its baseline, as the psABI defines them: each has all instructions of those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProcessorLevel {
    /// SSE4.2.
    V2,
    /// AVX2 and FMA: vectors of 32 bytes.
    V3,
    /// AVX-512: vectors of 64 bytes.
    V4,
}

impl ProcessorLevel {
    /// All of them, ascending.
    pub const ALL: [ProcessorLevel; 3] =
        [ProcessorLevel::V2, ProcessorLevel::V3, ProcessorLevel::V4];

    /// Its number, which [`PROCESSOR_LEVEL`] returns.
    pub fn number(self) -> u32 {
        match self {
            ProcessorLevel::V2 => 2,
            ProcessorLevel::V3 => 3,
            ProcessorLevel::V4 => 4,
        }
    }

    /// Its name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            ProcessorLevel::V2 => "v2",
            ProcessorLevel::V3 => "v3",
            ProcessorLevel::V4 => "v4",
        }
    }
}

impl fmt::Display for ProcessorLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ProcessorLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<ProcessorLevel, String> {
        let mut all = ProcessorLevel::ALL.into_iter();
        all.find(|level| level.name() == text)
            .ok_or_else(|| format!("`{text}` is none of v2, v3, v4"))
    }
}

/// The function `() -> i32` that says which level the processor has, and the operating system supports: 2, 3, 4, or 0 for the baseline. Backends and interpreter define it; each call returns the same.
pub const PROCESSOR_LEVEL: &str = "__ferrozyme_processor_level";

/// Whether values of a type are passed to functions in registers that depend on the level: wide vectors and masks.
pub fn type_passed_by_level(ty: Type) -> bool {
    ty.is_vector() && (ty.bytes() > 16 || ty.scalar() == Scalar::Int(1))
}

impl Function {
    /// A type of its parameters or results for which the calling convention depends on the level: functions of another level cannot call it.
    pub fn type_passed_by_level(&self) -> Option<Type> {
        let params = self.params.iter().map(|param| param.ty);
        let mut passed = params.chain(self.results.iter().copied());
        passed.find(|&ty| type_passed_by_level(ty))
    }
}

impl Module {
    /// The function [`PROCESSOR_LEVEL`], which is declared where it is not yet.
    pub fn processor_level(&mut self) -> FunctionId {
        if let Some(known) = self.function_named(PROCESSOR_LEVEL) {
            return known;
        }
        let mut function = Function::declare(PROCESSOR_LEVEL, Vec::new(), vec![Type::I32]);
        function.facts.memory = MemoryEffect::None;
        function.facts.willreturn = true;
        function.facts.inactive = true;
        self.functions.push(function)
    }
}
