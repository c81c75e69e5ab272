//! Kernels as machine code in this process.

#![allow(unsafe_code, reason = "compiled code is called by its address")]

use anyhow::{Result, anyhow};
use ferrozyme_export::{ExportOptions, Team, export};
use ferrozyme_ir::{FunctionId, Module, Scalar};
use ferrozyme_llvm::compile::{OptimisationLevel, optimise};
use ferrozyme_llvm::jit::Jit;
use ferrozyme_llvm::{CodegenLevel, Context, Linkage, TargetDescription, TargetMachine};
use std::marker::PhantomData;

/// A type of elements.
pub trait Element: Copy + Default + PartialEq + 'static {
    /// What the Loop IR calls it.
    const SCALAR: Scalar;
    /// Rounds.
    fn from_f64(value: f64) -> Self;
    /// Exactly.
    fn to_f64(self) -> f64;
}

impl Element for f32 {
    const SCALAR: Scalar = Scalar::F32;
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    const SCALAR: Scalar = Scalar::F64;
    fn from_f64(value: f64) -> f64 {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// A matrix in memory: the address of its first element and two strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct View<T> {
    /// Of element (0, 0).
    pub data: *mut T,
    /// From row to row and from column to column.
    pub strides: [isize; 2],
}

/// Machine code of functions that take what `__ferrozyme_contract_f32` takes.
pub struct Native<T> {
    jit: Jit,
    /// The assembly, for people.
    pub assembly: String,
    element: PhantomData<T>,
}

/// What the machine code takes: C, A and B with their strides in bytes, sizes, factor, whether to add.
type Contract<T> = unsafe extern "C" fn(
    *mut T,
    i64,
    i64,
    *const T,
    i64,
    i64,
    *const T,
    i64,
    i64,
    i64,
    i64,
    i64,
    T,
    bool,
);

/// One of the functions.
#[derive(Clone, Copy)]
pub struct Function<T> {
    address: Contract<T>,
}

impl<T: Element> Native<T> {
    /// Compiles functions of a module for a processor, as LLVM names it. Functions that ask for the processor's level hear at most the given one; those that ask for threads get them from `team`.
    ///
    /// # Errors
    /// If LLVM is not there or refuses.
    pub fn new(
        module: &Module,
        functions: &[FunctionId],
        processor: &str,
        highest_level: Option<u32>,
        team: Team,
    ) -> Result<Native<T>> {
        let context = Context::new()?;
        let into = context.create_module("kernels");
        let options = ExportOptions {
            highest_level,
            team,
            ..ExportOptions::default()
        };
        let exported = export(module, functions, into, &options)?;
        for function in exported {
            function.set_linkage(Linkage::External);
        }
        let description = TargetDescription {
            cpu: processor.to_owned(),
            level: CodegenLevel::Aggressive,
            ..TargetDescription::default()
        };
        let machine = TargetMachine::new(&description)?;
        into.set_triple(machine.triple());
        into.set_data_layout(&machine.data_layout());
        into.verify()?;
        let optimised = optimise(into, OptimisationLevel::O3, &machine)?;
        let assembly = machine.emit_assembly(optimised.duplicate())?;
        let object = machine.emit_object(optimised)?;
        let jit = Jit::new()?;
        jit.add_object(&object)?;
        Ok(Native {
            jit,
            assembly,
            element: PhantomData,
        })
    }

    /// The function of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn function(&self, name: &str) -> Result<Function<T>> {
        let address = self.jit.address(name).map_err(|error| anyhow!("{error}"))?;
        // SAFETY: all functions here have this type; `ExportOptions` leaves them C's calling convention.
        let address = unsafe { std::mem::transmute::<usize, Contract<T>>(address as usize) };
        Ok(Function { address })
    }
}

impl<T: Element> Function<T> {
    /// Computes `C = alpha·A·B`, or adds it.
    ///
    /// # Safety
    /// The views are of memory for matrices of these sizes, C's overlaps no other, and the [`Native`] that this is from lives.
    pub unsafe fn call(self, [c, a, b]: [View<T>; 3], [m, n, k]: [usize; 3], alpha: T, add: bool) {
        let bytes = |stride: isize| (stride * size_of::<T>() as isize) as i64;
        let strides = |view: View<T>| view.strides.map(bytes);
        let ([c_m, c_n], [a_m, a_k], [b_k, b_n]) = (strides(c), strides(a), strides(b));
        // SAFETY: as the caller promises.
        unsafe {
            (self.address)(
                c.data, c_m, c_n, a.data, a_m, a_k, b.data, b_k, b_n, m as i64, n as i64, k as i64,
                alpha, add,
            );
        }
    }
}
