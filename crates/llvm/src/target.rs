//! Targets: code generation and the layout of types.

use std::path::Path;
use std::sync::Once;

use crate::context::{take_text, terminated};
use crate::module::{LlvmError, Module, take_buffer};
use crate::selection::hide_narrow_loads;
use crate::sys::{TargetDataRef, TargetMachineRef, call};
use crate::toolchain::LoadError;
use crate::types::{Type, TypeKind};

/// Makes the code generators of the host and of NVIDIA's GPUs known to LLVM.
pub(crate) fn initialise() -> Result<(), LoadError> {
    static ONCE: Once = Once::new();
    static GPU: Once = Once::new();
    GPU.call_once(|| {
        call!(LLVMInitializeNVPTXTargetInfo());
        call!(LLVMInitializeNVPTXTarget());
        call!(LLVMInitializeNVPTXTargetMC());
        call!(LLVMInitializeNVPTXAsmPrinter());
    });
    if cfg!(target_arch = "x86_64") {
        ONCE.call_once(|| {
            call!(LLVMInitializeX86TargetInfo());
            call!(LLVMInitializeX86Target());
            call!(LLVMInitializeX86TargetMC());
            call!(LLVMInitializeX86AsmPrinter());
            call!(LLVMInitializeX86AsmParser());
        });
        Ok(())
    } else if cfg!(target_arch = "aarch64") {
        ONCE.call_once(|| {
            call!(LLVMInitializeAArch64TargetInfo());
            call!(LLVMInitializeAArch64Target());
            call!(LLVMInitializeAArch64TargetMC());
            call!(LLVMInitializeAArch64AsmPrinter());
            call!(LLVMInitializeAArch64AsmParser());
        });
        Ok(())
    } else {
        Err(LoadError::Platform(std::env::consts::ARCH))
    }
}

/// How much the code generator optimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "LLVM's own names")]
pub enum CodegenLevel {
    None = 0,
    Less = 1,
    #[default]
    Default = 2,
    Aggressive = 3,
}

/// How code refers to addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "LLVM's own names")]
pub enum RelocationModel {
    Default = 0,
    Static = 1,
    #[default]
    Pic = 2,
    DynamicNoPic = 3,
}

/// How far addresses may be apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "LLVM's own names")]
pub enum CodeModel {
    #[default]
    Default = 0,
    Tiny = 2,
    Small = 3,
    Kernel = 4,
    Medium = 5,
    Large = 6,
}

/// What code is generated for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetDescription {
    /// The triple; empty: the host's.
    pub triple: String,
    /// The processor: `generic`, `x86-64-v3`, `native`, ….
    pub cpu: String,
    /// Further features: `+avx2,+fma`.
    pub features: String,
    /// How much to optimise.
    pub level: CodegenLevel,
    /// How code refers to addresses.
    pub relocation: RelocationModel,
    /// How far addresses may be apart.
    pub code_model: CodeModel,
}

impl Default for TargetDescription {
    fn default() -> TargetDescription {
        let cpu = if cfg!(target_arch = "x86_64") {
            "x86-64"
        } else {
            "generic"
        };
        TargetDescription {
            triple: String::new(),
            cpu: cpu.to_owned(),
            features: String::new(),
            level: CodegenLevel::default(),
            relocation: RelocationModel::default(),
            code_model: CodeModel::default(),
        }
    }
}

/// A code generator.
pub struct TargetMachine {
    pub(crate) raw: TargetMachineRef,
    triple: String,
    cpu: String,
    features: String,
}

impl Drop for TargetMachine {
    fn drop(&mut self) {
        call!(LLVMDisposeTargetMachine(self.raw));
    }
}

impl TargetMachine {
    /// The code generator for this target. Needs a `Context` to exist, because that loads LLVM.
    pub fn new(description: &TargetDescription) -> Result<TargetMachine, LlvmError> {
        let triple = if description.triple.is_empty() {
            host_triple()
        } else {
            description.triple.clone()
        };
        let (mut cpu, mut features) = (description.cpu.clone(), description.features.clone());
        if cpu == "native" {
            cpu = take_text(call!(LLVMGetHostCPUName()));
            let host = take_text(call!(LLVMGetHostCPUFeatures()));
            // What the user says comes last and wins.
            features = if features.is_empty() {
                host
            } else {
                format!("{host},{features}")
            };
        }
        let failed = |reason: String| LlvmError::Target {
            target: triple.clone(),
            reason,
        };
        let (terminated_triple, terminated_cpu, terminated_features) =
            (terminated(&triple), terminated(&cpu), terminated(&features));
        let mut target = std::ptr::null_mut();
        let mut message = std::ptr::null_mut();
        if call!(LLVMGetTargetFromTriple(
            terminated_triple.as_ptr(),
            &mut target,
            &mut message
        )) != 0
        {
            return Err(failed(take_text(message)));
        }
        let raw = call!(LLVMCreateTargetMachine(
            target,
            terminated_triple.as_ptr(),
            terminated_cpu.as_ptr(),
            terminated_features.as_ptr(),
            description.level as i32,
            description.relocation as i32,
            description.code_model as i32,
        ));
        if raw.is_null() {
            return Err(failed(format!(
                "there is no machine `{cpu}` with features `{features}`"
            )));
        }
        Ok(TargetMachine {
            raw,
            triple,
            cpu,
            features,
        })
    }

    /// The triple.
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// The processor, with `native` resolved.
    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// The features, with those of `native` included.
    pub fn features(&self) -> &str {
        &self.features
    }

    /// The data layout that it expects of modules, as text.
    pub fn data_layout(&self) -> String {
        let data = call!(LLVMCreateTargetDataLayout(self.raw));
        let layout = take_text(call!(LLVMCopyStringRepOfTargetData(data)));
        call!(LLVMDisposeTargetData(data));
        layout
    }

    /// Compiles a module to an object in memory.
    pub fn emit_object(&self, module: Module<'_>) -> Result<Vec<u8>, LlvmError> {
        self.emit(module, OBJECT)
    }

    /// Compiles a module to assembly text.
    pub fn emit_assembly(&self, module: Module<'_>) -> Result<String, LlvmError> {
        Ok(String::from_utf8_lossy(&self.emit(module, ASSEMBLY)?).into_owned())
    }

    fn emit(&self, module: Module<'_>, kind: i32) -> Result<Vec<u8>, LlvmError> {
        let mut message = std::ptr::null_mut();
        let mut buffer = std::ptr::null_mut();
        hide_narrow_loads(module);
        // The code generator changes the module before it makes code of it.
        let failed = module.changing(|module| {
            call!(LLVMTargetMachineEmitToMemoryBuffer(
                self.raw,
                module,
                kind,
                &mut message,
                &mut buffer
            ))
        }) != 0;
        let reason = take_text(message);
        let errors: Vec<_> = module
            .owner
            .take_diagnostics()
            .into_iter()
            .filter(|diagnostic| diagnostic.is_error)
            .map(|diagnostic| diagnostic.text)
            .collect();
        if failed || !errors.is_empty() {
            let reason = if errors.is_empty() {
                reason
            } else {
                errors.join("; ")
            };
            return Err(LlvmError::Emit {
                name: module.name(),
                reason,
            });
        }
        Ok(take_buffer(buffer))
    }

    /// Compiles a module to an object file.
    pub fn emit_object_to(&self, module: Module<'_>, path: &Path) -> Result<(), LlvmError> {
        let object = self.emit_object(module)?;
        std::fs::write(path, object).map_err(|error| LlvmError::Emit {
            name: module.name(),
            reason: format!("{}: {error}", path.display()),
        })
    }
}

const ASSEMBLY: i32 = 0;
const OBJECT: i32 = 1;

/// The triple of this machine.
pub fn host_triple() -> String {
    take_text(call!(LLVMGetDefaultTargetTriple()))
}

/// Sizes and offsets of types under a data layout.
pub struct DataLayout {
    raw: TargetDataRef,
}

impl Drop for DataLayout {
    fn drop(&mut self) {
        call!(LLVMDisposeTargetData(self.raw));
    }
}

impl DataLayout {
    /// The layout of a module.
    pub fn of(module: Module<'_>) -> DataLayout {
        let text = terminated(&module.data_layout());
        DataLayout {
            raw: call!(LLVMCreateTargetData(text.as_ptr())),
        }
    }

    #[track_caller]
    fn expect_sized(of: Type<'_>) {
        assert!(
            of.is_sized() && of.kind() != TypeKind::ScalableVector,
            "{of} has no size"
        );
    }

    /// Bytes of a pointer.
    pub fn pointer_size(&self) -> u32 {
        call!(LLVMPointerSize(self.raw))
    }

    /// Bytes from one element of an array to the next.
    pub fn size(&self, of: Type<'_>) -> u64 {
        Self::expect_sized(of);
        call!(LLVMABISizeOfType(self.raw, of.raw))
    }

    /// Bytes that a store writes.
    pub fn store_size(&self, of: Type<'_>) -> u64 {
        Self::expect_sized(of);
        call!(LLVMStoreSizeOfType(self.raw, of.raw))
    }

    /// Bits of the value itself.
    pub fn bits(&self, of: Type<'_>) -> u64 {
        Self::expect_sized(of);
        call!(LLVMSizeOfTypeInBits(self.raw, of.raw))
    }

    /// The alignment that the ABI asks.
    pub fn alignment(&self, of: Type<'_>) -> u32 {
        Self::expect_sized(of);
        call!(LLVMABIAlignmentOfType(self.raw, of.raw))
    }

    /// The byte offset of a struct's field.
    pub fn field_offset(&self, of: Type<'_>, field: u32) -> u64 {
        assert!(
            of.kind() == TypeKind::Struct && u64::from(field) < of.length(),
            "{of} has no field {field}"
        );
        call!(LLVMOffsetOfElement(self.raw, of.raw, field))
    }
}
