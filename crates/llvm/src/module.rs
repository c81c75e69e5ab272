//! Modules: reading, writing, linking, and what they hold.

use std::fmt;

use thiserror::Error;

use crate::context::{
    Context, copy_bytes, copy_terminated, copy_text, take_text, terminated, text,
};
use crate::handle::{Addresses, Handle};
use crate::metadata::Metadata;
use crate::passes::PassOptions;
use crate::sys::{MemoryBufferRef, ModuleRef, OpaqueModule, ValueRef, call};
use crate::types::Type;
use crate::value::Value;

/// A module. The context owns it; see there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Module<'c> {
    handle: Handle<OpaqueModule>,
    pub(crate) owner: &'c Context,
}

impl PartialEq for Context {
    fn eq(&self, other: &Context) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Context {}

impl std::hash::Hash for Context {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

/// Why LLVM could not do what was asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what each case is")]
pub enum LlvmError {
    #[error("LLVM cannot read {name}: {reason}")]
    Read { name: String, reason: String },
    #[error("LLVM cannot link {source_name} into {into}: {reason}")]
    Link {
        source_name: String,
        into: String,
        reason: String,
    },
    #[error("LLVM finds {name} malformed: {reason}")]
    Malformed { name: String, reason: String },
    #[error("LLVM cannot run the passes `{passes}`: {reason}")]
    Passes { passes: String, reason: String },
    #[error("LLVM has no code generator for {target}: {reason}")]
    Target { target: String, reason: String },
    #[error("LLVM cannot generate code for {name}: {reason}")]
    Emit { name: String, reason: String },
    #[error("LLVM cannot compile in process: {reason}")]
    Jit { reason: String },
}

impl Context {
    /// An empty module.
    pub fn create_module(&self, name: &str) -> Module<'_> {
        let terminated_name = terminated(name);
        self.adopt(call!(LLVMModuleCreateWithNameInContext(
            terminated_name.as_ptr(),
            self.raw
        )))
    }

    /// Reads a whole module from bitcode.
    pub fn parse_bitcode(&self, name: &str, bitcode: &[u8]) -> Result<Module<'_>, LlvmError> {
        let buffer = copy_into_buffer(name, bitcode);
        let mut module = std::ptr::null_mut();
        let failed = call!(LLVMParseBitcodeInContext2(self.raw, buffer, &mut module)) != 0;
        call!(LLVMDisposeMemoryBuffer(buffer));
        if failed || module.is_null() {
            return Err(LlvmError::Read {
                name: name.to_owned(),
                reason: self.take_errors(),
            });
        }
        Ok(self.adopt(module).named(name))
    }

    /// Reads a module from bitcode, the bodies of its functions only when they are linked. Until then functions look like definitions without blocks;
    /// such a module is good for looking at globals and declarations and for being linked into another.
    pub fn parse_bitcode_lazily(
        &self,
        name: &str,
        bitcode: &[u8],
    ) -> Result<Module<'_>, LlvmError> {
        let buffer = copy_into_buffer(name, bitcode);
        let mut module = std::ptr::null_mut();
        // The module takes over the buffer, also if this fails.
        if call!(LLVMGetBitcodeModuleInContext2(
            self.raw,
            buffer,
            &mut module
        )) != 0
            || module.is_null()
        {
            return Err(LlvmError::Read {
                name: name.to_owned(),
                reason: self.take_errors(),
            });
        }
        Ok(self.adopt(module).named(name))
    }

    /// Reads a module from LLVM's text form.
    pub fn parse_text(&self, name: &str, source: &str) -> Result<Module<'_>, LlvmError> {
        let buffer = copy_into_buffer(name, source.as_bytes());
        let mut module = std::ptr::null_mut();
        let mut message = std::ptr::null_mut();
        // LLVM takes over the buffer.
        if call!(LLVMParseIRInContext(
            self.raw,
            buffer,
            &mut module,
            &mut message
        )) != 0
            || module.is_null()
        {
            return Err(LlvmError::Read {
                name: name.to_owned(),
                reason: take_text(message),
            });
        }
        Ok(self.adopt(module))
    }

    fn adopt(&self, module: ModuleRef) -> Module<'_> {
        self.modules.borrow_mut().push(module);
        Module::new(self, module)
    }

    fn forget(&self, module: ModuleRef) {
        self.modules.borrow_mut().retain(|known| *known != module);
    }
}

pub(crate) fn copy_into_buffer(name: &str, bytes: &[u8]) -> MemoryBufferRef {
    let name = terminated(name);
    call!(LLVMCreateMemoryBufferWithMemoryRangeCopy(
        bytes.as_ptr().cast(),
        bytes.len(),
        name.as_ptr()
    ))
}

pub(crate) fn take_buffer(buffer: MemoryBufferRef) -> Vec<u8> {
    let bytes = copy_bytes(
        call!(LLVMGetBufferStart(buffer)),
        call!(LLVMGetBufferSize(buffer)),
    )
    .to_vec();
    call!(LLVMDisposeMemoryBuffer(buffer));
    bytes
}

impl<'c> Module<'c> {
    pub(crate) fn new(owner: &'c Context, raw: ModuleRef) -> Module<'c> {
        Module {
            handle: Handle::new(raw),
            owner,
        }
    }

    /// Its address, if it is still there.
    #[track_caller]
    pub(crate) fn raw(self) -> ModuleRef {
        self.handle.get()
    }

    /// Does something to it that may delete what is in it.
    pub(crate) fn changing<R>(self, change: impl FnOnce(ModuleRef) -> R) -> R {
        let before = Addresses::of_module(self.raw());
        let result = change(self.raw());
        before.free_but_for(&Addresses::of_module(self.raw()));
        result
    }

    /// The context that owns it.
    pub fn context(self) -> &'c Context {
        self.owner
    }

    /// Its name.
    pub fn name(self) -> String {
        let mut length = 0;
        let start = call!(LLVMGetModuleIdentifier(self.raw(), &mut length));
        copy_text(start, length)
    }

    /// The source file that it was compiled from.
    pub fn source_file(self) -> String {
        let mut length = 0;
        let start = call!(LLVMGetSourceFileName(self.raw(), &mut length));
        copy_text(start, length)
    }

    fn named(self, name: &str) -> Module<'c> {
        call!(LLVMSetModuleIdentifier(self.raw(), text(name), name.len()));
        self
    }

    /// Frees it, with all that is in it.
    pub fn dispose(self) {
        let (raw, freed) = (self.raw(), Addresses::of_module(self.raw()));
        self.owner.forget(raw);
        call!(LLVMDisposeModule(raw));
        freed.free();
    }

    /// A copy in the same context. LLVM's `CloneModule`: names and everything else are the same.
    pub fn duplicate(self) -> Module<'c> {
        self.owner.adopt(call!(LLVMCloneModule(self.raw())))
    }

    /// Links `source` into this module. The source is gone afterwards, also if this fails.
    /// What is `available_externally` or `linkonce` in the source comes along only if it is referenced.
    pub fn link(self, source: Module<'c>) -> Result<(), LlvmError> {
        assert!(self != source, "a module is not linked into itself");
        let source_name = source.name();
        let (raw, freed) = (source.raw(), Addresses::of_module(source.raw()));
        // What both declare or define is one afterwards: one of the two, or a third.
        let globals = source.functions().chain(source.globals());
        let names: Vec<String> = globals.chain(source.aliases()).map(Value::name).collect();
        let shared = || {
            let symbols = names.iter().filter_map(|name| self.symbol(name));
            Addresses::of_globals(symbols.map(Value::raw))
        };
        let before = shared();
        self.owner.forget(raw);
        let failed = call!(LLVMLinkModules2(self.raw(), raw)) != 0;
        before.free_but_for(&shared());
        freed.free();
        if failed {
            return Err(LlvmError::Link {
                source_name,
                into: self.name(),
                reason: self.owner.take_errors(),
            });
        }
        Ok(())
    }

    /// Its bitcode.
    pub fn to_bitcode(self) -> Vec<u8> {
        take_buffer(call!(LLVMWriteBitcodeToMemoryBuffer(self.raw())))
    }

    /// Its bitcode with a summary for ThinLTO, so that a linker optimises it together with other modules that have one: functions are inlined from one into the other.
    ///
    /// LLVM's C interface writes none, but a pass that puts a copy of a module into itself does.
    pub fn to_bitcode_with_summary(self) -> Result<Vec<u8>, LlvmError> {
        const PASSES: &str = "name-anon-globals,embed-bitcode<thinlto;emit-summary>";
        let copy = self.duplicate();
        let ran = copy.run_passes(PASSES, None, PassOptions::default());
        let embedded = copy.global("llvm.embedded.object");
        let bytes = embedded
            .and_then(|global| global.initialiser()?.raw_bytes())
            .map(<[u8]>::to_vec);
        copy.dispose();
        ran?;
        bytes.ok_or_else(|| LlvmError::Passes {
            passes: PASSES.to_owned(),
            reason: "no bitcode is embedded".to_owned(),
        })
    }

    /// Whether it is well-formed.
    pub fn verify(self) -> Result<(), LlvmError> {
        const RETURN_STATUS: i32 = 2;
        let mut message = std::ptr::null_mut();
        let broken = call!(LLVMVerifyModule(self.raw(), RETURN_STATUS, &mut message)) != 0;
        let reason = take_text(message);
        if broken {
            Err(LlvmError::Malformed {
                name: self.name(),
                reason,
            })
        } else {
            Ok(())
        }
    }

    /// The data layout, as text.
    pub fn data_layout(self) -> String {
        copy_terminated(call!(LLVMGetDataLayoutStr(self.raw())))
    }

    /// Sets the data layout.
    pub fn set_data_layout(self, layout: &str) {
        let layout = terminated(layout);
        call!(LLVMSetDataLayout(self.raw(), layout.as_ptr()));
    }

    /// The target triple.
    pub fn triple(self) -> String {
        copy_terminated(call!(LLVMGetTarget(self.raw())))
    }

    /// Sets the target triple.
    pub fn set_triple(self, triple: &str) {
        let triple = terminated(triple);
        call!(LLVMSetTarget(self.raw(), triple.as_ptr()));
    }

    /// The inline assembly at file level.
    pub fn inline_assembly(self) -> String {
        let mut length = 0;
        let start = call!(LLVMGetModuleInlineAsm(self.raw(), &mut length));
        copy_text(start, length)
    }

    /// Sets the inline assembly at file level.
    pub fn set_inline_assembly(self, source: &str) {
        call!(LLVMSetModuleInlineAsm2(
            self.raw(),
            text(source),
            source.len()
        ));
    }

    /// A module flag, for instance `PIC Level`.
    pub fn flag(self, key: &str) -> Option<Metadata<'c>> {
        let raw = call!(LLVMGetModuleFlag(self.raw(), text(key), key.len()));
        Metadata::of(self.owner, raw)
    }

    /// An integer module flag.
    pub fn integer_flag(self, key: &str) -> Option<u64> {
        self.flag(key)?.as_value()?.as_unsigned()
    }

    /// Adds a module flag with an integer of 32 bits.
    pub fn add_integer_flag(self, behaviour: FlagBehaviour, key: &str, value: u32) {
        let constant = self.owner.integer(32).constant(value.into());
        let metadata = call!(LLVMValueAsMetadata(constant.raw()));
        call!(LLVMAddModuleFlag(
            self.raw(),
            behaviour as u32,
            text(key),
            key.len(),
            metadata
        ));
    }

    /// All module flags: behaviour (LLVM's number), key, value.
    pub fn flags(self) -> Vec<(u32, String, Metadata<'c>)> {
        let mut count = 0;
        let entries = call!(LLVMCopyModuleFlagsMetadata(self.raw(), &mut count));
        let flags = (0..count as u32)
            .filter_map(|index| {
                let mut length = 0;
                let key = call!(LLVMModuleFlagEntriesGetKey(entries, index, &mut length));
                let value = Metadata::of(
                    self.owner,
                    call!(LLVMModuleFlagEntriesGetMetadata(entries, index)),
                )?;
                Some((
                    call!(LLVMModuleFlagEntriesGetFlagBehavior(entries, index)),
                    copy_text(key, length),
                    value,
                ))
            })
            .collect();
        call!(LLVMDisposeModuleFlagsMetadata(entries));
        flags
    }

    /// Removes all debug information.
    pub fn strip_debug_information(self) {
        self.changing(|module| call!(LLVMStripModuleDebugInfo(module)));
    }

    /// The operands of named metadata, for instance `llvm.dbg.cu`.
    pub fn named_metadata(self, name: &str) -> Vec<Metadata<'c>> {
        let name = terminated(name);
        let count = call!(LLVMGetNamedMetadataNumOperands(self.raw(), name.as_ptr())) as usize;
        let mut raw = vec![std::ptr::null_mut(); count];
        call!(LLVMGetNamedMetadataOperands(
            self.raw(),
            name.as_ptr(),
            raw.as_mut_ptr()
        ));
        raw.into_iter()
            .filter_map(|value| Metadata::of_value(self.owner, value))
            .collect()
    }

    /// The functions, declared and defined.
    pub fn functions(self) -> impl Iterator<Item = Value<'c>> + use<'c> {
        chain(call!(LLVMGetFirstFunction(self.raw())), |function| {
            call!(LLVMGetNextFunction(function))
        })
    }

    /// The global variables, declared and defined.
    pub fn globals(self) -> impl Iterator<Item = Value<'c>> + use<'c> {
        chain(call!(LLVMGetFirstGlobal(self.raw())), |global| {
            call!(LLVMGetNextGlobal(global))
        })
    }

    /// The aliases.
    pub fn aliases(self) -> impl Iterator<Item = Value<'c>> + use<'c> {
        chain(call!(LLVMGetFirstGlobalAlias(self.raw())), |alias| {
            call!(LLVMGetNextGlobalAlias(alias))
        })
    }

    /// The function of this name.
    pub fn function(self, name: &str) -> Option<Value<'c>> {
        Value::maybe(call!(LLVMGetNamedFunctionWithLength(
            self.raw(),
            text(name),
            name.len()
        )))
    }

    /// The global variable of this name.
    pub fn global(self, name: &str) -> Option<Value<'c>> {
        Value::maybe(call!(LLVMGetNamedGlobalWithLength(
            self.raw(),
            text(name),
            name.len()
        )))
    }

    /// The alias of this name.
    pub fn alias(self, name: &str) -> Option<Value<'c>> {
        Value::maybe(call!(LLVMGetNamedGlobalAlias(
            self.raw(),
            text(name),
            name.len()
        )))
    }

    /// The function, variable or alias of this name.
    pub fn symbol(self, name: &str) -> Option<Value<'c>> {
        self.function(name)
            .or_else(|| self.global(name))
            .or_else(|| self.alias(name))
    }

    /// Adds a function. If the name is taken it gets another one; see [`Module::declare`].
    pub fn add_function(self, name: &str, function_type: Type<'c>) -> Value<'c> {
        let name = terminated(name);
        Value::new(call!(LLVMAddFunction(
            self.raw(),
            name.as_ptr(),
            function_type.raw
        )))
    }

    /// The symbol of this name, or a new declaration of a function with it.
    pub fn declare(self, name: &str, function_type: Type<'c>) -> Value<'c> {
        self.symbol(name)
            .unwrap_or_else(|| self.add_function(name, function_type))
    }

    /// Adds a global variable without an initialiser.
    pub fn add_global(self, name: &str, value_type: Type<'c>) -> Value<'c> {
        let name = terminated(name);
        Value::new(call!(LLVMAddGlobal(
            self.raw(),
            value_type.raw,
            name.as_ptr()
        )))
    }

    /// The declaration of an intrinsic, for instance `("llvm.fma", &[double])`; the types are those that its name would carry.
    pub fn intrinsic(self, name: &str, types: &[Type<'c>]) -> Option<Value<'c>> {
        let number = call!(LLVMLookupIntrinsicID(text(name), name.len()));
        if number == 0 {
            return None;
        }
        let mut raw: Vec<_> = types.iter().map(|of| of.raw).collect();
        Value::maybe(call!(LLVMGetIntrinsicDeclaration(
            self.raw(),
            number,
            raw.as_mut_ptr(),
            raw.len()
        )))
    }
}

/// What the linker does when two modules have the same flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "LLVM's own names")]
pub enum FlagBehaviour {
    Error = 0,
    Warning = 1,
    Require = 2,
    Override = 3,
    Append = 4,
    AppendUnique = 5,
    Max = 6,
    Min = 7,
}

/// Walks a list of values. The next one is asked for before the current one is given out, so that the caller may erase it.
pub(crate) fn chain<'c>(
    first: ValueRef,
    next: impl Fn(ValueRef) -> ValueRef,
) -> impl Iterator<Item = Value<'c>> {
    let mut current = Value::maybe(first);
    std::iter::from_fn(move || {
        let value = current?;
        current = Value::maybe(next(value.raw()));
        Some(value)
    })
}

impl fmt::Display for Module<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&take_text(call!(LLVMPrintModuleToString(self.raw()))))
    }
}

impl fmt::Debug for Module<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({})", self.name())
    }
}
