//! Runs LLVM's passes.

use crate::context::copy_terminated;
use crate::context::terminated;
use crate::handle::Addresses;
use crate::module::{LlvmError, Module};
use crate::sys::{ErrorRef, PassBuilderOptionsRef, call};
use crate::target::TargetMachine;
use crate::value::Value;

/// LLVM's option with which loops of few iterations are vectorised like others, with a remainder and not with masks: LLVM 22 loses the last iterations of a masked loop of constant length that looks for the
/// largest or smallest number.
pub const NO_MASKED_LOOPS: &std::ffi::CStr = c"-vectorizer-min-trip-count=0";

/// What the pipelines may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassOptions {
    /// Vectorise loops.
    pub vectorise_loops: bool,
    /// Vectorise straight code.
    pub vectorise_straight_code: bool,
    /// Work on several iterations at once.
    pub interleave: bool,
    /// Unroll loops.
    pub unroll: bool,
    /// Merge equal functions.
    pub merge_functions: bool,
    /// Verify after each pass; for tests.
    pub verify_each: bool,
    /// The inliner's threshold, if not the level's own.
    pub inliner_threshold: Option<i32>,
}

impl Default for PassOptions {
    fn default() -> PassOptions {
        PassOptions {
            vectorise_loops: true,
            vectorise_straight_code: true,
            interleave: true,
            unroll: true,
            merge_functions: false,
            verify_each: false,
            inliner_threshold: None,
        }
    }
}

impl PassOptions {
    /// No vectoriser and no unrolling: what comes before differentiation.
    pub fn before_differentiation() -> PassOptions {
        PassOptions {
            vectorise_loops: false,
            vectorise_straight_code: false,
            interleave: false,
            unroll: false,
            ..PassOptions::default()
        }
    }

    fn raw(self) -> RawOptions {
        let raw = call!(LLVMCreatePassBuilderOptions());
        call!(LLVMPassBuilderOptionsSetLoopVectorization(
            raw,
            self.vectorise_loops.into()
        ));
        call!(LLVMPassBuilderOptionsSetSLPVectorization(
            raw,
            self.vectorise_straight_code.into()
        ));
        call!(LLVMPassBuilderOptionsSetLoopInterleaving(
            raw,
            self.interleave.into()
        ));
        call!(LLVMPassBuilderOptionsSetLoopUnrolling(
            raw,
            self.unroll.into()
        ));
        call!(LLVMPassBuilderOptionsSetMergeFunctions(
            raw,
            self.merge_functions.into()
        ));
        call!(LLVMPassBuilderOptionsSetVerifyEach(
            raw,
            self.verify_each.into()
        ));
        if let Some(threshold) = self.inliner_threshold {
            call!(LLVMPassBuilderOptionsSetInlinerThreshold(raw, threshold));
        }
        RawOptions(raw)
    }
}

struct RawOptions(PassBuilderOptionsRef);

impl Drop for RawOptions {
    fn drop(&mut self) {
        call!(LLVMDisposePassBuilderOptions(self.0));
    }
}

impl<'c> Module<'c> {
    /// Runs passes on the module: a pipeline in `opt`'s syntax, for instance `default<O2>` or `function(sroa,instcombine)`.
    pub fn run_passes(
        self,
        passes: &str,
        machine: Option<&TargetMachine>,
        options: PassOptions,
    ) -> Result<(), LlvmError> {
        let (text, options) = (terminated(passes), options.raw());
        let machine = machine.map_or(std::ptr::null_mut(), |machine| machine.raw);
        check(
            self.changing(|module| call!(LLVMRunPasses(module, text.as_ptr(), machine, options.0))),
            |reason| LlvmError::Passes {
                passes: passes.to_owned(),
                reason,
            },
        )
    }
}

impl<'c> Value<'c> {
    /// Runs function passes on one function: `sroa,instcombine`.
    pub fn run_passes(
        self,
        passes: &str,
        machine: Option<&TargetMachine>,
        options: PassOptions,
    ) -> Result<(), LlvmError> {
        assert!(
            self.is_function() && !self.is_declaration(),
            "{self} is no defined function"
        );
        let (text, options) = (terminated(passes), options.raw());
        let machine = machine.map_or(std::ptr::null_mut(), |machine| machine.raw);
        let before = Addresses::of_function(self.raw());
        let error = call!(LLVMRunPassesOnFunction(
            self.raw(),
            text.as_ptr(),
            machine,
            options.0
        ));
        before.free_but_for(&Addresses::of_function(self.raw()));
        check(error, |reason| LlvmError::Passes {
            passes: passes.to_owned(),
            reason,
        })
    }
}

/// Turns LLVM's error, if there is one, into one of ours.
pub(crate) fn check(
    error: ErrorRef,
    wrap: impl FnOnce(String) -> LlvmError,
) -> Result<(), LlvmError> {
    if error.is_null() {
        return Ok(());
    }
    let message = call!(LLVMGetErrorMessage(error));
    let reason = copy_terminated(message);
    call!(LLVMDisposeErrorMessage(message));
    Err(wrap(reason))
}
