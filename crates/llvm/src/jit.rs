//! Runs compiled code in this process: LLVM's ORC just-in-time linker, fed with objects.
//!
//! Symbols that an object does not define are looked for in this process, and in the libraries that compiled code may call without being told: C's mathematical functions and the helpers
//! of code generators (`__powidf2`), which a program that does not use them itself need not have loaded.

use crate::context::terminated;
use crate::module::{LlvmError, copy_into_buffer};
use crate::passes::check;
use crate::sys::{LljitRef, SymbolAtAddress, call};

/// Code in this process. It is unloaded when this is dropped.
pub struct Jit {
    raw: LljitRef,
}

/// `LLVMJITSymbolGenericFlagsExported` and `LLVMJITSymbolGenericFlagsCallable`.
const EXPORTED: u8 = 1;
const CALLABLE: u8 = 4;

/// See the file's head.
const SILENTLY_NEEDED: &[&std::ffi::CStr] = &[c"libm.so.6", c"libgcc_s.so.1"];

/// What processors without an instruction for it call to round a float to a `bf16`, to the nearest and among equals to the even one. GCC's library has it from release 13 on.
/// The result is in the lower half of the register that a float is returned in.
extern "C" fn narrow_to_bf16(wide: f32) -> f32 {
    let bits = wide.to_bits();
    let rounded = match wide.is_nan() {
        true => bits | 1 << 22,
        false => bits + 0x7fff + (bits >> 16 & 1),
    };
    f32::from_bits(rounded >> 16)
}

fn failed(reason: String) -> LlvmError {
    LlvmError::Jit { reason }
}

impl Jit {
    /// Without code. Needs a `Context` to exist, because that loads LLVM.
    pub fn new() -> Result<Jit, LlvmError> {
        for library in SILENTLY_NEEDED {
            // Where a system has no such library, its functions are elsewhere.
            call!(LLVMLoadLibraryPermanently(library.as_ptr()));
        }
        let mut raw = std::ptr::null_mut();
        let builder = call!(LLVMOrcCreateLLJITBuilder());
        check(call!(LLVMOrcCreateLLJIT(&mut raw, builder)), failed)?;
        let jit = Jit { raw };
        let prefix = call!(LLVMOrcLLJITGetGlobalPrefix(raw));
        let mut generator = std::ptr::null_mut();
        let made = call!(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
            &mut generator,
            prefix,
            std::ptr::null(),
            std::ptr::null_mut()
        ));
        check(made, failed)?;
        let library = call!(LLVMOrcLLJITGetMainJITDylib(raw));
        call!(LLVMOrcJITDylibAddGenerator(library, generator));
        let narrow: extern "C" fn(f32) -> f32 = narrow_to_bf16;
        let mut helpers = [SymbolAtAddress {
            name: call!(LLVMOrcLLJITMangleAndIntern(raw, c"__truncsfbf2".as_ptr())),
            address: narrow as usize as u64,
            flags: [EXPORTED | CALLABLE, 0],
        }];
        let unit = call!(LLVMOrcAbsoluteSymbols(helpers.as_mut_ptr(), helpers.len()));
        check(call!(LLVMOrcJITDylibDefine(library, unit)), failed)?;
        Ok(jit)
    }

    /// Adds an object.
    pub fn add_object(&self, object: &[u8]) -> Result<(), LlvmError> {
        let buffer = copy_into_buffer("object", object);
        let library = call!(LLVMOrcLLJITGetMainJITDylib(self.raw));
        check(
            call!(LLVMOrcLLJITAddObjectFile(self.raw, library, buffer)),
            failed,
        )
    }

    /// The address of a symbol. What is there is for the caller to know; it stays until this is dropped.
    pub fn address(&self, name: &str) -> Result<u64, LlvmError> {
        let name = terminated(name);
        let mut address = 0;
        check(
            call!(LLVMOrcLLJITLookup(self.raw, &mut address, name.as_ptr())),
            failed,
        )?;
        Ok(address)
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // Nothing can be done about code that cannot be unloaded.
        let _ = check(call!(LLVMOrcDisposeLLJIT(self.raw)), failed);
    }
}
