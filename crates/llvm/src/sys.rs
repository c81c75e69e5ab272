//! The raw binding: one table of the LLVM-C functions in use, resolved at run time from rustc's own libLLVM.
//!
//! Each row is a prototype of LLVM 22's C headers. The table becomes a struct of function pointers ([`Api`]); [`load`] resolves every one of them or names the
//! one that is missing. Nothing outside this crate sees these names: the safe types of the other files do.
//!
//! *Assumes* that the library found in the sysroot is the LLVM that its name says; the version is checked besides (`LLVMGetVersion`).
//! *Guarantees* that whoever holds a `Context` may call any function of the table.

#![allow(
    unsafe_code,
    reason = "calling foreign functions is this file's purpose"
)]
#![allow(
    non_snake_case,
    reason = "the fields bear the names that LLVM's manual uses"
)]
#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    reason = "documented by LLVM's own headers"
)]

use std::ffi::{c_char, c_double, c_int, c_longlong, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use crate::toolchain::{LoadError, Toolchain, Version};

macro_rules! opaque {
    ($($name:ident $reference:ident;)*) => {$(
        #[repr(C)]
        pub(crate) struct $name { _private: [u8; 0] }
        pub(crate) type $reference = *mut $name;
    )*};
}

opaque! {
    OpaqueContext ContextRef;
    OpaqueModule ModuleRef;
    OpaqueType TypeRef;
    OpaqueValue ValueRef;
    OpaqueBasicBlock BlockRef;
    OpaqueBuilder BuilderRef;
    OpaqueMetadata MetadataRef;
    OpaqueAttribute AttributeRef;
    OpaqueMemoryBuffer MemoryBufferRef;
    OpaqueUse UseRef;
    OpaqueComdat ComdatRef;
    OpaqueTarget TargetRef;
    OpaqueTargetMachine TargetMachineRef;
    OpaqueTargetData TargetDataRef;
    OpaquePassBuilderOptions PassBuilderOptionsRef;
    OpaqueError ErrorRef;
    OpaqueDiagnosticInfo DiagnosticInfoRef;
    OpaqueOperandBundle OperandBundleRef;
    OpaqueMetadataEntry MetadataEntries;
    OpaqueModuleFlagEntry ModuleFlagEntries;
    OpaqueLljit LljitRef;
    OpaqueLljitBuilder LljitBuilderRef;
    OpaqueDylib DylibRef;
    OpaqueDefinitionGenerator DefinitionGeneratorRef;
    OpaqueSymbolName SymbolNameRef;
    OpaqueMaterializationUnit MaterializationUnitRef;
}

/// `LLVMOrcCSymbolMapPair`: a symbol's name, address, and flags (`LLVMJITSymbolGenericFlags`, and those of the target).
#[repr(C)]
pub(crate) struct SymbolAtAddress {
    pub(crate) name: SymbolNameRef,
    pub(crate) address: u64,
    pub(crate) flags: [u8; 2],
}

pub(crate) type Bool = c_int;
pub(crate) type Text = *const c_char;
pub(crate) type OwnedText = *mut c_char;
pub(crate) type FatalErrorHandler = Option<unsafe extern "C" fn(Text)>;
pub(crate) type DiagnosticHandler = Option<unsafe extern "C" fn(DiagnosticInfoRef, *mut c_void)>;

macro_rules! table {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Every function of LLVM's C interface that Ferrozyme uses.
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Kept so that the functions stay loaded.
            _library: libloading::Library,
            pub(crate) toolchain: Toolchain,
            pub(crate) version: Version,
            /// Whether the binding was written for this release; the next one is examined before it is used.
            pub(crate) is_known: bool,
        }

        impl Api {
            fn resolve(library: libloading::Library, toolchain: Toolchain, version: Version, is_known: bool) -> Result<Api, LoadError> {
                $(
                    // SAFETY: the type is the prototype of LLVM 22's headers, and the library is LLVM 22 or the next release (checked by the caller); functions of LLVM's C interface are
                    // removed, not changed.
                    let $name = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                        .map(|symbol| *symbol)
                        .map_err(|_| match is_known {
                            true => LoadError::MissingSymbol {
                                toolchain: toolchain.describe(),
                                library: toolchain.library.clone(),
                                symbol: stringify!($name),
                            },
                            false => version.too_new(&toolchain, Some(concat!("no ", stringify!($name)).to_owned())),
                        })?;
                )*
                Ok(Api { $($name,)* _library: library, toolchain, version, is_known })
            }
        }
    };
}

table! {
    // Library, messages, memory.
    fn LLVMDisposeMessage(OwnedText);
    fn LLVMCreateMemoryBufferWithMemoryRangeCopy(Text, usize, Text) -> MemoryBufferRef;
    fn LLVMGetBufferStart(MemoryBufferRef) -> Text;
    fn LLVMGetBufferSize(MemoryBufferRef) -> usize;
    fn LLVMDisposeMemoryBuffer(MemoryBufferRef);
    fn LLVMGetErrorMessage(ErrorRef) -> OwnedText;
    fn LLVMDisposeErrorMessage(OwnedText);
    fn LLVMInstallFatalErrorHandler(FatalErrorHandler);
    fn LLVMLoadLibraryPermanently(Text) -> Bool;
    fn LLVMParseCommandLineOptions(c_int, *const Text, Text);

    // Contexts.
    fn LLVMContextCreate() -> ContextRef;
    fn LLVMContextDispose(ContextRef);
    fn LLVMContextSetDiagnosticHandler(ContextRef, DiagnosticHandler, *mut c_void);
    fn LLVMGetDiagInfoDescription(DiagnosticInfoRef) -> OwnedText;
    fn LLVMGetDiagInfoSeverity(DiagnosticInfoRef) -> c_int;
    fn LLVMGetMDKindIDInContext(ContextRef, Text, c_uint) -> c_uint;
    fn LLVMGetEnumAttributeKindForName(Text, usize) -> c_uint;
    fn LLVMGetTypeByName2(ContextRef, Text) -> TypeRef;

    // Modules.
    fn LLVMModuleCreateWithNameInContext(Text, ContextRef) -> ModuleRef;
    fn LLVMDisposeModule(ModuleRef);
    fn LLVMCloneModule(ModuleRef) -> ModuleRef;
    fn LLVMParseBitcodeInContext2(ContextRef, MemoryBufferRef, *mut ModuleRef) -> Bool;
    fn LLVMGetBitcodeModuleInContext2(ContextRef, MemoryBufferRef, *mut ModuleRef) -> Bool;
    fn LLVMParseIRInContext(ContextRef, MemoryBufferRef, *mut ModuleRef, *mut OwnedText) -> Bool;
    fn LLVMWriteBitcodeToMemoryBuffer(ModuleRef) -> MemoryBufferRef;
    fn LLVMPrintModuleToString(ModuleRef) -> OwnedText;
    fn LLVMLinkModules2(ModuleRef, ModuleRef) -> Bool;
    fn LLVMVerifyModule(ModuleRef, c_int, *mut OwnedText) -> Bool;
    fn LLVMGetModuleIdentifier(ModuleRef, *mut usize) -> Text;
    fn LLVMSetModuleIdentifier(ModuleRef, Text, usize);
    fn LLVMGetSourceFileName(ModuleRef, *mut usize) -> Text;
    fn LLVMGetDataLayoutStr(ModuleRef) -> Text;
    fn LLVMSetDataLayout(ModuleRef, Text);
    fn LLVMGetTarget(ModuleRef) -> Text;
    fn LLVMSetTarget(ModuleRef, Text);
    fn LLVMGetModuleInlineAsm(ModuleRef, *mut usize) -> Text;
    fn LLVMSetModuleInlineAsm2(ModuleRef, Text, usize);
    fn LLVMGetModuleFlag(ModuleRef, Text, usize) -> MetadataRef;
    fn LLVMAddModuleFlag(ModuleRef, c_uint, Text, usize, MetadataRef);
    fn LLVMCopyModuleFlagsMetadata(ModuleRef, *mut usize) -> ModuleFlagEntries;
    fn LLVMDisposeModuleFlagsMetadata(ModuleFlagEntries);
    fn LLVMModuleFlagEntriesGetFlagBehavior(ModuleFlagEntries, c_uint) -> c_uint;
    fn LLVMModuleFlagEntriesGetKey(ModuleFlagEntries, c_uint, *mut usize) -> Text;
    fn LLVMModuleFlagEntriesGetMetadata(ModuleFlagEntries, c_uint) -> MetadataRef;
    fn LLVMStripModuleDebugInfo(ModuleRef) -> Bool;
    fn LLVMGetFirstFunction(ModuleRef) -> ValueRef;
    fn LLVMGetNextFunction(ValueRef) -> ValueRef;
    fn LLVMGetFirstGlobal(ModuleRef) -> ValueRef;
    fn LLVMGetNextGlobal(ValueRef) -> ValueRef;
    fn LLVMGetFirstGlobalAlias(ModuleRef) -> ValueRef;
    fn LLVMGetNextGlobalAlias(ValueRef) -> ValueRef;
    fn LLVMGetFirstGlobalIFunc(ModuleRef) -> ValueRef;
    fn LLVMGetNextGlobalIFunc(ValueRef) -> ValueRef;
    fn LLVMGetNamedFunctionWithLength(ModuleRef, Text, usize) -> ValueRef;
    fn LLVMGetNamedGlobalWithLength(ModuleRef, Text, usize) -> ValueRef;
    fn LLVMGetNamedGlobalAlias(ModuleRef, Text, usize) -> ValueRef;
    fn LLVMAddFunction(ModuleRef, Text, TypeRef) -> ValueRef;
    fn LLVMAddGlobal(ModuleRef, TypeRef, Text) -> ValueRef;
    fn LLVMGetNamedMetadataNumOperands(ModuleRef, Text) -> c_uint;
    fn LLVMGetNamedMetadataOperands(ModuleRef, Text, *mut ValueRef);

    // Types.
    fn LLVMGetTypeKind(TypeRef) -> c_int;
    fn LLVMTypeIsSized(TypeRef) -> Bool;
    fn LLVMIntTypeInContext(ContextRef, c_uint) -> TypeRef;
    fn LLVMHalfTypeInContext(ContextRef) -> TypeRef;
    fn LLVMBFloatTypeInContext(ContextRef) -> TypeRef;
    fn LLVMFloatTypeInContext(ContextRef) -> TypeRef;
    fn LLVMDoubleTypeInContext(ContextRef) -> TypeRef;
    fn LLVMVoidTypeInContext(ContextRef) -> TypeRef;
    fn LLVMPointerTypeInContext(ContextRef, c_uint) -> TypeRef;
    fn LLVMFunctionType(TypeRef, *mut TypeRef, c_uint, Bool) -> TypeRef;
    fn LLVMStructTypeInContext(ContextRef, *mut TypeRef, c_uint, Bool) -> TypeRef;
    fn LLVMArrayType2(TypeRef, u64) -> TypeRef;
    fn LLVMVectorType(TypeRef, c_uint) -> TypeRef;
    fn LLVMGetIntTypeWidth(TypeRef) -> c_uint;
    fn LLVMIsFunctionVarArg(TypeRef) -> Bool;
    fn LLVMGetReturnType(TypeRef) -> TypeRef;
    fn LLVMCountParamTypes(TypeRef) -> c_uint;
    fn LLVMGetParamTypes(TypeRef, *mut TypeRef);
    fn LLVMCountStructElementTypes(TypeRef) -> c_uint;
    fn LLVMGetStructElementTypes(TypeRef, *mut TypeRef);
    fn LLVMGetStructName(TypeRef) -> Text;
    fn LLVMIsPackedStruct(TypeRef) -> Bool;
    fn LLVMGetElementType(TypeRef) -> TypeRef;
    fn LLVMGetArrayLength2(TypeRef) -> u64;
    fn LLVMGetVectorSize(TypeRef) -> c_uint;
    fn LLVMGetPointerAddressSpace(TypeRef) -> c_uint;
    fn LLVMPrintTypeToString(TypeRef) -> OwnedText;

    // Values.
    fn LLVMTypeOf(ValueRef) -> TypeRef;
    fn LLVMGetValueKind(ValueRef) -> c_int;
    fn LLVMGetValueName2(ValueRef, *mut usize) -> Text;
    fn LLVMSetValueName2(ValueRef, Text, usize);
    fn LLVMPrintValueToString(ValueRef) -> OwnedText;
    fn LLVMReplaceAllUsesWith(ValueRef, ValueRef);
    fn LLVMIsConstant(ValueRef) -> Bool;
    fn LLVMIsNull(ValueRef) -> Bool;
    fn LLVMGetFirstUse(ValueRef) -> UseRef;
    fn LLVMGetNextUse(UseRef) -> UseRef;
    fn LLVMGetUser(UseRef) -> ValueRef;
    fn LLVMGetOperand(ValueRef, c_uint) -> ValueRef;
    fn LLVMSetOperand(ValueRef, c_uint, ValueRef);
    fn LLVMGetNumOperands(ValueRef) -> c_int;
    fn LLVMIsATerminatorInst(ValueRef) -> ValueRef;
    fn LLVMIsAFunction(ValueRef) -> ValueRef;
    fn LLVMIsAGlobalValue(ValueRef) -> ValueRef;
    fn LLVMValueIsBasicBlock(ValueRef) -> Bool;
    fn LLVMValueAsBasicBlock(ValueRef) -> BlockRef;
    fn LLVMGetParamParent(ValueRef) -> ValueRef;

    // Constants.
    fn LLVMConstNull(TypeRef) -> ValueRef;
    fn LLVMGetUndef(TypeRef) -> ValueRef;
    fn LLVMGetPoison(TypeRef) -> ValueRef;
    fn LLVMConstInt(TypeRef, c_ulonglong, Bool) -> ValueRef;
    fn LLVMConstIntOfArbitraryPrecision(TypeRef, c_uint, *const u64) -> ValueRef;
    fn LLVMConstIntGetZExtValue(ValueRef) -> c_ulonglong;
    fn LLVMConstIntGetSExtValue(ValueRef) -> c_longlong;
    fn LLVMConstFPFromBits(TypeRef, *const u64) -> ValueRef;
    fn LLVMConstReal(TypeRef, c_double) -> ValueRef;
    fn LLVMConstRealGetDouble(ValueRef, *mut Bool) -> c_double;
    fn LLVMConstStringInContext2(ContextRef, Text, usize, Bool) -> ValueRef;
    fn LLVMGetRawDataValues(ValueRef, *mut usize) -> Text;
    fn LLVMGetAggregateElement(ValueRef, c_uint) -> ValueRef;
    fn LLVMConstStructInContext(ContextRef, *mut ValueRef, c_uint, Bool) -> ValueRef;
    fn LLVMConstNamedStruct(TypeRef, *mut ValueRef, c_uint) -> ValueRef;
    fn LLVMConstArray2(TypeRef, *mut ValueRef, u64) -> ValueRef;
    fn LLVMConstVector(*mut ValueRef, c_uint) -> ValueRef;
    fn LLVMGetConstOpcode(ValueRef) -> c_int;
    fn LLVMConstPtrToInt(ValueRef, TypeRef) -> ValueRef;
    fn LLVMConstIntToPtr(ValueRef, TypeRef) -> ValueRef;
    fn LLVMConstGEPWithNoWrapFlags(TypeRef, ValueRef, *mut ValueRef, c_uint, c_uint) -> ValueRef;

    // Global values.
    fn LLVMIsDeclaration(ValueRef) -> Bool;
    fn LLVMGetLinkage(ValueRef) -> c_int;
    fn LLVMSetLinkage(ValueRef, c_int);
    fn LLVMGetSection(ValueRef) -> Text;
    fn LLVMSetSection(ValueRef, Text);
    fn LLVMGetVisibility(ValueRef) -> c_int;
    fn LLVMSetVisibility(ValueRef, c_int);
    fn LLVMGetUnnamedAddress(ValueRef) -> c_int;
    fn LLVMSetUnnamedAddress(ValueRef, c_int);
    fn LLVMGlobalGetValueType(ValueRef) -> TypeRef;
    fn LLVMGetGlobalParent(ValueRef) -> ModuleRef;
    fn LLVMGetAlignment(ValueRef) -> c_uint;
    fn LLVMSetAlignment(ValueRef, c_uint);
    fn LLVMGetComdat(ValueRef) -> ComdatRef;
    fn LLVMSetComdat(ValueRef, ComdatRef);
    fn LLVMGetInitializer(ValueRef) -> ValueRef;
    fn LLVMSetInitializer(ValueRef, ValueRef);
    fn LLVMIsThreadLocal(ValueRef) -> Bool;
    fn LLVMGetThreadLocalMode(ValueRef) -> c_int;
    fn LLVMSetThreadLocalMode(ValueRef, c_int);
    fn LLVMIsGlobalConstant(ValueRef) -> Bool;
    fn LLVMSetGlobalConstant(ValueRef, Bool);
    fn LLVMAliasGetAliasee(ValueRef) -> ValueRef;
    fn LLVMDeleteGlobal(ValueRef);
    fn LLVMGlobalClearMetadata(ValueRef);
    fn LLVMGlobalCopyAllMetadata(ValueRef, *mut usize) -> MetadataEntries;
    fn LLVMDisposeValueMetadataEntries(MetadataEntries);
    fn LLVMValueMetadataEntriesGetKind(MetadataEntries, c_uint) -> c_uint;
    fn LLVMValueMetadataEntriesGetMetadata(MetadataEntries, c_uint) -> MetadataRef;

    // Functions.
    fn LLVMDeleteFunction(ValueRef);
    fn LLVMHasPersonalityFn(ValueRef) -> Bool;
    fn LLVMGetPersonalityFn(ValueRef) -> ValueRef;
    fn LLVMSetPersonalityFn(ValueRef, ValueRef);
    fn LLVMGetIntrinsicID(ValueRef) -> c_uint;
    fn LLVMLookupIntrinsicID(Text, usize) -> c_uint;
    fn LLVMGetIntrinsicDeclaration(ModuleRef, c_uint, *mut TypeRef, usize) -> ValueRef;
    fn LLVMGetFunctionCallConv(ValueRef) -> c_uint;
    fn LLVMSetFunctionCallConv(ValueRef, c_uint);
    fn LLVMCountParams(ValueRef) -> c_uint;
    fn LLVMGetParam(ValueRef, c_uint) -> ValueRef;
    fn LLVMCountBasicBlocks(ValueRef) -> c_uint;
    fn LLVMGetFirstBasicBlock(ValueRef) -> BlockRef;
    fn LLVMGetNextBasicBlock(BlockRef) -> BlockRef;
    fn LLVMGetSubprogram(ValueRef) -> MetadataRef;
    fn LLVMSetSubprogram(ValueRef, MetadataRef);

    // Attributes.
    fn LLVMCreateEnumAttribute(ContextRef, c_uint, u64) -> AttributeRef;
    fn LLVMCreateStringAttribute(ContextRef, Text, c_uint, Text, c_uint) -> AttributeRef;
    fn LLVMCreateTypeAttribute(ContextRef, c_uint, TypeRef) -> AttributeRef;
    fn LLVMGetEnumAttributeKind(AttributeRef) -> c_uint;
    fn LLVMGetEnumAttributeValue(AttributeRef) -> u64;
    fn LLVMGetTypeAttributeValue(AttributeRef) -> TypeRef;
    fn LLVMGetStringAttributeKind(AttributeRef, *mut c_uint) -> Text;
    fn LLVMGetStringAttributeValue(AttributeRef, *mut c_uint) -> Text;
    fn LLVMIsEnumAttribute(AttributeRef) -> Bool;
    fn LLVMIsStringAttribute(AttributeRef) -> Bool;
    fn LLVMIsTypeAttribute(AttributeRef) -> Bool;
    fn LLVMAddAttributeAtIndex(ValueRef, c_uint, AttributeRef);
    fn LLVMGetAttributeCountAtIndex(ValueRef, c_uint) -> c_uint;
    fn LLVMGetAttributesAtIndex(ValueRef, c_uint, *mut AttributeRef);
    fn LLVMGetEnumAttributeAtIndex(ValueRef, c_uint, c_uint) -> AttributeRef;
    fn LLVMGetStringAttributeAtIndex(ValueRef, c_uint, Text, c_uint) -> AttributeRef;
    fn LLVMRemoveEnumAttributeAtIndex(ValueRef, c_uint, c_uint);
    fn LLVMRemoveStringAttributeAtIndex(ValueRef, c_uint, Text, c_uint);
    fn LLVMAddCallSiteAttribute(ValueRef, c_uint, AttributeRef);
    fn LLVMGetCallSiteAttributeCount(ValueRef, c_uint) -> c_uint;
    fn LLVMGetCallSiteAttributes(ValueRef, c_uint, *mut AttributeRef);
    fn LLVMGetCallSiteEnumAttribute(ValueRef, c_uint, c_uint) -> AttributeRef;
    fn LLVMGetCallSiteStringAttribute(ValueRef, c_uint, Text, c_uint) -> AttributeRef;
    fn LLVMRemoveCallSiteEnumAttribute(ValueRef, c_uint, c_uint);
    fn LLVMRemoveCallSiteStringAttribute(ValueRef, c_uint, Text, c_uint);

    // Basic blocks.
    fn LLVMAppendBasicBlockInContext(ContextRef, ValueRef, Text) -> BlockRef;
    fn LLVMInsertBasicBlockInContext(ContextRef, BlockRef, Text) -> BlockRef;
    fn LLVMDeleteBasicBlock(BlockRef);
    fn LLVMMoveBasicBlockAfter(BlockRef, BlockRef);
    fn LLVMBasicBlockAsValue(BlockRef) -> ValueRef;
    fn LLVMGetBasicBlockParent(BlockRef) -> ValueRef;
    fn LLVMGetBasicBlockTerminator(BlockRef) -> ValueRef;
    fn LLVMGetBasicBlockName(BlockRef) -> Text;
    fn LLVMGetFirstInstruction(BlockRef) -> ValueRef;
    fn LLVMGetNextInstruction(ValueRef) -> ValueRef;
    fn LLVMGetPreviousInstruction(ValueRef) -> ValueRef;

    // Instructions.
    fn LLVMGetInstructionParent(ValueRef) -> BlockRef;
    fn LLVMGetInstructionOpcode(ValueRef) -> c_int;
    fn LLVMInstructionClone(ValueRef) -> ValueRef;
    fn LLVMInstructionRemoveFromParent(ValueRef);
    fn LLVMInstructionEraseFromParent(ValueRef);
    fn LLVMGetICmpPredicate(ValueRef) -> c_int;
    fn LLVMGetICmpSameSign(ValueRef) -> Bool;
    fn LLVMGetFCmpPredicate(ValueRef) -> c_int;
    fn LLVMGetNSW(ValueRef) -> Bool;
    fn LLVMSetNSW(ValueRef, Bool);
    fn LLVMGetNUW(ValueRef) -> Bool;
    fn LLVMSetNUW(ValueRef, Bool);
    fn LLVMGetExact(ValueRef) -> Bool;
    fn LLVMSetExact(ValueRef, Bool);
    fn LLVMGetNNeg(ValueRef) -> Bool;
    fn LLVMGetIsDisjoint(ValueRef) -> Bool;
    fn LLVMGetFastMathFlags(ValueRef) -> c_uint;
    fn LLVMSetFastMathFlags(ValueRef, c_uint);
    fn LLVMCanValueUseFastMathFlags(ValueRef) -> Bool;
    fn LLVMGEPGetNoWrapFlags(ValueRef) -> c_uint;
    fn LLVMGEPSetNoWrapFlags(ValueRef, c_uint);
    fn LLVMGetGEPSourceElementType(ValueRef) -> TypeRef;
    fn LLVMGetVolatile(ValueRef) -> Bool;
    fn LLVMGetOrdering(ValueRef) -> c_int;
    fn LLVMGetAtomicRMWBinOp(ValueRef) -> c_int;
    fn LLVMGetCmpXchgSuccessOrdering(ValueRef) -> c_int;
    fn LLVMGetAllocatedType(ValueRef) -> TypeRef;
    fn LLVMGetNumSuccessors(ValueRef) -> c_uint;
    fn LLVMGetSuccessor(ValueRef, c_uint) -> BlockRef;
    fn LLVMSetSuccessor(ValueRef, c_uint, BlockRef);
    fn LLVMIsConditional(ValueRef) -> Bool;
    fn LLVMGetCondition(ValueRef) -> ValueRef;
    fn LLVMGetSwitchDefaultDest(ValueRef) -> BlockRef;
    fn LLVMGetSwitchCaseValue(ValueRef, c_uint) -> ValueRef;
    fn LLVMCountIncoming(ValueRef) -> c_uint;
    fn LLVMGetIncomingValue(ValueRef, c_uint) -> ValueRef;
    fn LLVMGetIncomingBlock(ValueRef, c_uint) -> BlockRef;
    fn LLVMAddIncoming(ValueRef, *mut ValueRef, *mut BlockRef, c_uint);
    fn LLVMGetNumIndices(ValueRef) -> c_uint;
    fn LLVMGetIndices(ValueRef) -> *const c_uint;
    fn LLVMGetNumMaskElements(ValueRef) -> c_uint;
    fn LLVMGetMaskValue(ValueRef, c_uint) -> c_int;
    fn LLVMGetNumArgOperands(ValueRef) -> c_uint;
    fn LLVMGetCalledFunctionType(ValueRef) -> TypeRef;
    fn LLVMGetCalledValue(ValueRef) -> ValueRef;
    fn LLVMGetInstructionCallConv(ValueRef) -> c_uint;
    fn LLVMSetInstructionCallConv(ValueRef, c_uint);
    fn LLVMGetTailCallKind(ValueRef) -> c_int;
    fn LLVMGetNumOperandBundles(ValueRef) -> c_uint;
    fn LLVMGetOperandBundleAtIndex(ValueRef, c_uint) -> OperandBundleRef;
    fn LLVMGetOperandBundleTag(OperandBundleRef, *mut usize) -> Text;
    fn LLVMGetNumOperandBundleArgs(OperandBundleRef) -> c_uint;
    fn LLVMGetOperandBundleArgAtIndex(OperandBundleRef, c_uint) -> ValueRef;
    fn LLVMCreateOperandBundle(Text, usize, *mut ValueRef, c_uint) -> OperandBundleRef;
    fn LLVMDisposeOperandBundle(OperandBundleRef);
    fn LLVMGetNormalDest(ValueRef) -> BlockRef;
    fn LLVMGetUnwindDest(ValueRef) -> BlockRef;
    fn LLVMIsCleanup(ValueRef) -> Bool;
    fn LLVMSetCleanup(ValueRef, Bool);
    fn LLVMGetNumClauses(ValueRef) -> c_uint;
    fn LLVMGetClause(ValueRef, c_uint) -> ValueRef;
    fn LLVMAddClause(ValueRef, ValueRef);
    fn LLVMGetInlineAsmAsmString(ValueRef, *mut usize) -> Text;
    fn LLVMGetInlineAsmConstraintString(ValueRef, *mut usize) -> Text;

    // Metadata and debug information.
    fn LLVMMDStringInContext2(ContextRef, Text, usize) -> MetadataRef;
    fn LLVMMDNodeInContext2(ContextRef, *mut MetadataRef, usize) -> MetadataRef;
    fn LLVMMetadataAsValue(ContextRef, MetadataRef) -> ValueRef;
    fn LLVMValueAsMetadata(ValueRef) -> MetadataRef;
    fn LLVMIsAMDNode(ValueRef) -> ValueRef;
    fn LLVMGetMDString(ValueRef, *mut c_uint) -> Text;
    fn LLVMGetMDNodeNumOperands(ValueRef) -> c_uint;
    fn LLVMGetMDNodeOperands(ValueRef, *mut ValueRef);
    fn LLVMGetMetadataKind(MetadataRef) -> c_uint;
    fn LLVMHasMetadata(ValueRef) -> c_int;
    fn LLVMGetMetadata(ValueRef, c_uint) -> ValueRef;
    fn LLVMSetMetadata(ValueRef, c_uint, ValueRef);
    fn LLVMInstructionGetAllMetadataOtherThanDebugLoc(ValueRef, *mut usize) -> MetadataEntries;
    fn LLVMInstructionGetDebugLoc(ValueRef) -> MetadataRef;
    fn LLVMInstructionSetDebugLoc(ValueRef, MetadataRef);
    fn LLVMDILocationGetLine(MetadataRef) -> c_uint;
    fn LLVMDILocationGetColumn(MetadataRef) -> c_uint;
    fn LLVMDILocationGetScope(MetadataRef) -> MetadataRef;
    fn LLVMDILocationGetInlinedAt(MetadataRef) -> MetadataRef;
    fn LLVMDIScopeGetFile(MetadataRef) -> MetadataRef;
    fn LLVMDIFileGetDirectory(MetadataRef, *mut c_uint) -> Text;
    fn LLVMDIFileGetFilename(MetadataRef, *mut c_uint) -> Text;
    fn LLVMDISubprogramGetLine(MetadataRef) -> c_uint;
    fn LLVMDIGlobalVariableExpressionGetVariable(MetadataRef) -> MetadataRef;
    fn LLVMDIVariableGetFile(MetadataRef) -> MetadataRef;
    fn LLVMDIVariableGetLine(MetadataRef) -> c_uint;
    fn LLVMGetDINodeTag(MetadataRef) -> u16;
    fn LLVMDITypeGetName(MetadataRef, *mut usize) -> Text;
    fn LLVMDITypeGetSizeInBits(MetadataRef) -> u64;
    fn LLVMDITypeGetOffsetInBits(MetadataRef) -> u64;
    fn LLVMDITypeGetAlignInBits(MetadataRef) -> u32;
    fn LLVMDIBuilderCreateDebugLocation(ContextRef, c_uint, c_uint, MetadataRef, MetadataRef) -> MetadataRef;
    fn LLVMTemporaryMDNode(ContextRef, *mut MetadataRef, usize) -> MetadataRef;
    fn LLVMMetadataReplaceAllUsesWith(MetadataRef, MetadataRef);

    // Building.
    fn LLVMCreateBuilderInContext(ContextRef) -> BuilderRef;
    fn LLVMDisposeBuilder(BuilderRef);
    fn LLVMPositionBuilderAtEnd(BuilderRef, BlockRef);
    fn LLVMPositionBuilderBefore(BuilderRef, ValueRef);
    fn LLVMPositionBuilderBeforeInstrAndDbgRecords(BuilderRef, ValueRef);
    fn LLVMGetInsertBlock(BuilderRef) -> BlockRef;
    fn LLVMInsertIntoBuilderWithName(BuilderRef, ValueRef, Text);
    fn LLVMSetCurrentDebugLocation2(BuilderRef, MetadataRef);
    fn LLVMBuildRetVoid(BuilderRef) -> ValueRef;
    fn LLVMBuildRet(BuilderRef, ValueRef) -> ValueRef;
    fn LLVMBuildBr(BuilderRef, BlockRef) -> ValueRef;
    fn LLVMBuildCondBr(BuilderRef, ValueRef, BlockRef, BlockRef) -> ValueRef;
    fn LLVMBuildSwitch(BuilderRef, ValueRef, BlockRef, c_uint) -> ValueRef;
    fn LLVMAddCase(ValueRef, ValueRef, BlockRef);
    fn LLVMBuildUnreachable(BuilderRef) -> ValueRef;
    fn LLVMBuildInvoke2(BuilderRef, TypeRef, ValueRef, *mut ValueRef, c_uint, BlockRef, BlockRef, Text) -> ValueRef;
    fn LLVMBuildLandingPad(BuilderRef, TypeRef, ValueRef, c_uint, Text) -> ValueRef;
    fn LLVMBuildResume(BuilderRef, ValueRef) -> ValueRef;
    fn LLVMBuildBinOp(BuilderRef, c_int, ValueRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildCast(BuilderRef, c_int, ValueRef, TypeRef, Text) -> ValueRef;
    fn LLVMBuildFNeg(BuilderRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildNeg(BuilderRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildNot(BuilderRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildICmp(BuilderRef, c_int, ValueRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildFCmp(BuilderRef, c_int, ValueRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildPhi(BuilderRef, TypeRef, Text) -> ValueRef;
    fn LLVMBuildSelect(BuilderRef, ValueRef, ValueRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildCall2(BuilderRef, TypeRef, ValueRef, *mut ValueRef, c_uint, Text) -> ValueRef;
    fn LLVMBuildCallWithOperandBundles(BuilderRef, TypeRef, ValueRef, *mut ValueRef, c_uint, *mut OperandBundleRef, c_uint, Text) -> ValueRef;
    fn LLVMBuildFreeze(BuilderRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildAlloca(BuilderRef, TypeRef, Text) -> ValueRef;
    fn LLVMBuildArrayAlloca(BuilderRef, TypeRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildLoad2(BuilderRef, TypeRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildStore(BuilderRef, ValueRef, ValueRef) -> ValueRef;
    fn LLVMBuildGEPWithNoWrapFlags(BuilderRef, TypeRef, ValueRef, *mut ValueRef, c_uint, Text, c_uint) -> ValueRef;
    fn LLVMBuildMemSet(BuilderRef, ValueRef, ValueRef, ValueRef, c_uint) -> ValueRef;
    fn LLVMBuildMemCpy(BuilderRef, ValueRef, c_uint, ValueRef, c_uint, ValueRef) -> ValueRef;
    fn LLVMBuildMemMove(BuilderRef, ValueRef, c_uint, ValueRef, c_uint, ValueRef) -> ValueRef;
    fn LLVMBuildExtractElement(BuilderRef, ValueRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildInsertElement(BuilderRef, ValueRef, ValueRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildShuffleVector(BuilderRef, ValueRef, ValueRef, ValueRef, Text) -> ValueRef;
    fn LLVMBuildExtractValue(BuilderRef, ValueRef, c_uint, Text) -> ValueRef;
    fn LLVMBuildInsertValue(BuilderRef, ValueRef, ValueRef, c_uint, Text) -> ValueRef;
    fn LLVMBuildFence(BuilderRef, c_int, Bool, Text) -> ValueRef;
    fn LLVMBuildAtomicRMW(BuilderRef, c_int, ValueRef, ValueRef, c_int, Bool) -> ValueRef;

    // Passes.
    fn LLVMCreatePassBuilderOptions() -> PassBuilderOptionsRef;
    fn LLVMDisposePassBuilderOptions(PassBuilderOptionsRef);
    fn LLVMPassBuilderOptionsSetVerifyEach(PassBuilderOptionsRef, Bool);
    fn LLVMPassBuilderOptionsSetLoopInterleaving(PassBuilderOptionsRef, Bool);
    fn LLVMPassBuilderOptionsSetLoopVectorization(PassBuilderOptionsRef, Bool);
    fn LLVMPassBuilderOptionsSetSLPVectorization(PassBuilderOptionsRef, Bool);
    fn LLVMPassBuilderOptionsSetLoopUnrolling(PassBuilderOptionsRef, Bool);
    fn LLVMPassBuilderOptionsSetMergeFunctions(PassBuilderOptionsRef, Bool);
    fn LLVMPassBuilderOptionsSetInlinerThreshold(PassBuilderOptionsRef, c_int);
    fn LLVMRunPasses(ModuleRef, Text, TargetMachineRef, PassBuilderOptionsRef) -> ErrorRef;
    fn LLVMRunPassesOnFunction(ValueRef, Text, TargetMachineRef, PassBuilderOptionsRef) -> ErrorRef;

    // Targets.
    fn LLVMInitializeX86TargetInfo();
    fn LLVMInitializeX86Target();
    fn LLVMInitializeX86TargetMC();
    fn LLVMInitializeX86AsmPrinter();
    fn LLVMInitializeX86AsmParser();
    fn LLVMInitializeAArch64TargetInfo();
    fn LLVMInitializeAArch64Target();
    fn LLVMInitializeAArch64TargetMC();
    fn LLVMInitializeAArch64AsmPrinter();
    fn LLVMInitializeAArch64AsmParser();
    fn LLVMInitializeNVPTXTargetInfo();
    fn LLVMInitializeNVPTXTarget();
    fn LLVMInitializeNVPTXTargetMC();
    fn LLVMInitializeNVPTXAsmPrinter();
    fn LLVMGetDefaultTargetTriple() -> OwnedText;
    fn LLVMGetHostCPUName() -> OwnedText;
    fn LLVMGetHostCPUFeatures() -> OwnedText;
    fn LLVMGetTargetFromTriple(Text, *mut TargetRef, *mut OwnedText) -> Bool;
    fn LLVMCreateTargetMachine(TargetRef, Text, Text, Text, c_int, c_int, c_int) -> TargetMachineRef;
    fn LLVMDisposeTargetMachine(TargetMachineRef);
    fn LLVMCreateTargetDataLayout(TargetMachineRef) -> TargetDataRef;
    fn LLVMTargetMachineEmitToMemoryBuffer(TargetMachineRef, ModuleRef, c_int, *mut OwnedText, *mut MemoryBufferRef) -> Bool;
    fn LLVMCreateTargetData(Text) -> TargetDataRef;
    fn LLVMDisposeTargetData(TargetDataRef);
    fn LLVMCopyStringRepOfTargetData(TargetDataRef) -> OwnedText;
    fn LLVMPointerSize(TargetDataRef) -> c_uint;
    fn LLVMSizeOfTypeInBits(TargetDataRef, TypeRef) -> c_ulonglong;
    fn LLVMStoreSizeOfType(TargetDataRef, TypeRef) -> c_ulonglong;
    fn LLVMABISizeOfType(TargetDataRef, TypeRef) -> c_ulonglong;
    fn LLVMABIAlignmentOfType(TargetDataRef, TypeRef) -> c_uint;
    fn LLVMOffsetOfElement(TargetDataRef, TypeRef, c_uint) -> c_ulonglong;

    // Compilation in process.
    fn LLVMOrcCreateLLJITBuilder() -> LljitBuilderRef;
    fn LLVMOrcCreateLLJIT(*mut LljitRef, LljitBuilderRef) -> ErrorRef;
    fn LLVMOrcDisposeLLJIT(LljitRef) -> ErrorRef;
    fn LLVMOrcLLJITGetMainJITDylib(LljitRef) -> DylibRef;
    fn LLVMOrcLLJITGetGlobalPrefix(LljitRef) -> c_char;
    fn LLVMOrcLLJITAddObjectFile(LljitRef, DylibRef, MemoryBufferRef) -> ErrorRef;
    fn LLVMOrcLLJITLookup(LljitRef, *mut u64, Text) -> ErrorRef;
    fn LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(*mut DefinitionGeneratorRef, c_char, *const c_void, *mut c_void) -> ErrorRef;
    fn LLVMOrcJITDylibAddGenerator(DylibRef, DefinitionGeneratorRef);
    fn LLVMOrcLLJITMangleAndIntern(LljitRef, Text) -> SymbolNameRef;
    fn LLVMOrcAbsoluteSymbols(*mut SymbolAtAddress, usize) -> MaterializationUnitRef;
    fn LLVMOrcJITDylibDefine(DylibRef, MaterializationUnitRef) -> ErrorRef;
}

static API: OnceLock<Api> = OnceLock::new();

/// Loads LLVM from a toolchain. The first success holds for the process; later calls find it loaded.
pub(crate) fn load(toolchain: Toolchain) -> Result<&'static Api, LoadError> {
    if let Some(api) = API.get() {
        return Ok(api);
    }
    // SAFETY: loading a library runs its initialisers; those of LLVM only register passes and options.
    let library = unsafe { libloading::Library::new(&toolchain.library) }.map_err(|error| {
        LoadError::CannotOpen {
            toolchain: toolchain.describe(),
            library: toolchain.library.clone(),
            reason: error.to_string(),
        }
    })?;
    let version = version_of(&library, &toolchain)?;
    let is_known = version.check(&toolchain)?;
    let api = Api::resolve(library, toolchain, version, is_known)?;
    Ok(API.get_or_init(|| {
        // LLVM's own handler prints a stack trace and asks to report a bug to LLVM's authors.
        // SAFETY: the handler is a function of this program, which outlives the library.
        unsafe { (api.LLVMInstallFatalErrorHandler)(Some(fatal_error)) };
        set_options(&api);
        api
    }))
}

/// Options of LLVM that are reached in no other way, and hold for the process.
///
/// LLVM asks at run time whether two pointers overlap before it enters a vectorised loop, and likes to ask once for a whole nest of loops. For gradients of matrices whose rows lie between each
/// other (queries, keys and values of attention) that question has the answer "yes" when each single loop's has "no".
const OPTIONS: &[&std::ffi::CStr] = &[
    c"ferrozyme",
    c"-hoist-runtime-checks=false",
    crate::passes::NO_MASKED_LOOPS,
];

fn set_options(api: &Api) {
    let options: Vec<Text> = OPTIONS.iter().map(|option| option.as_ptr()).collect();
    // An LLVM that does not know an option ignores it silently.
    // SAFETY: the strings end in zero, and LLVM copies what it keeps.
    unsafe {
        (api.LLVMParseCommandLineOptions)(
            options.len() as c_int,
            options.as_ptr(),
            std::ptr::null(),
        )
    };
}

/// The table, if the library is loaded.
pub(crate) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// The table. Whoever has a `Context` may ask for it: there is none before the library is loaded.
pub(crate) fn api() -> &'static Api {
    API.get()
        .expect("LLVM is loaded before the first context is made")
}

fn version_of(library: &libloading::Library, toolchain: &Toolchain) -> Result<Version, LoadError> {
    let missing = |_| LoadError::MissingSymbol {
        toolchain: toolchain.describe(),
        library: toolchain.library.clone(),
        symbol: "LLVMGetVersion",
    };
    // SAFETY: this prototype has been the same since LLVM 16.
    let get_version: libloading::Symbol<
        '_,
        unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint),
    > = unsafe { library.get(b"LLVMGetVersion\0") }.map_err(missing)?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the three pointers are to integers of the right type.
    unsafe { get_version(&mut major, &mut minor, &mut patch) };
    Ok(Version {
        major,
        minor,
        patch,
    })
}

unsafe extern "C" fn fatal_error(reason: Text) {
    // SAFETY: LLVM passes a string that ends in zero.
    let reason = unsafe { std::ffi::CStr::from_ptr(reason) }.to_string_lossy();
    eprintln!("error: LLVM cannot go on: {reason}");
    std::process::exit(70);
}

/// Calls a function of the table: `call!(LLVMGetOperand(value, 0))`.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        let api = $crate::sys::api();
        #[allow(clippy::macro_metavars_in_unsafe, unsafe_code, reason = "the safe types uphold what LLVM asks: live handles, and kinds checked by the caller")]
        unsafe { (api.$name)($($argument),*) }
    }};
}
pub(crate) use call;
