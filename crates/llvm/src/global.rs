//! Functions and global variables.

use std::collections::HashSet;

use crate::Context;
use crate::block::Block;
use crate::context::{copy_terminated, terminated};
use crate::handle::Addresses;
use crate::metadata::Metadata;
use crate::module::Module;
use crate::opcode::{Linkage, Opcode, ThreadLocalMode, UnnamedAddress, Visibility};
use crate::sys::call;
use crate::types::Type;
use crate::value::{Value, ValueKind};

impl<'c> Value<'c> {
    #[track_caller]
    fn expect_global(self) {
        assert!(self.is_global(), "{self} is no global");
    }

    #[track_caller]
    fn expect_function(self) {
        assert_eq!(self.kind(), ValueKind::Function, "{self} is no function");
    }

    #[track_caller]
    fn expect_variable(self) {
        assert_eq!(
            self.kind(),
            ValueKind::GlobalVariable,
            "{self} is no global variable"
        );
    }

    /// Whether it is a function.
    pub fn is_function(self) -> bool {
        self.kind() == ValueKind::Function
    }

    /// The type of a function, or of what a global variable holds.
    pub fn value_type(self) -> Type<'c> {
        self.expect_global();
        Type::new(call!(LLVMGlobalGetValueType(self.raw())))
    }

    /// The module of a global.
    pub fn module_of_global(self, context: &'c Context) -> Module<'c> {
        self.expect_global();
        Module::new(context, call!(LLVMGetGlobalParent(self.raw())))
    }

    /// Whether a global is only declared here.
    pub fn is_declaration(self) -> bool {
        self.expect_global();
        call!(LLVMIsDeclaration(self.raw())) != 0
    }

    /// How a global is linked.
    pub fn linkage(self) -> Linkage {
        self.expect_global();
        Linkage::of_number(call!(LLVMGetLinkage(self.raw()))).unwrap_or(Linkage::External)
    }

    /// Sets how a global is linked. Local linkages have default visibility only, so that is set, too.
    pub fn set_linkage(self, linkage: Linkage) -> Value<'c> {
        self.expect_global();
        if matches!(linkage, Linkage::Internal | Linkage::Private) {
            self.set_visibility(Visibility::Default);
        }
        call!(LLVMSetLinkage(self.raw(), linkage as i32));
        self
    }

    /// Who sees a global.
    pub fn visibility(self) -> Visibility {
        self.expect_global();
        Visibility::of_number(call!(LLVMGetVisibility(self.raw()))).unwrap_or(Visibility::Default)
    }

    /// Sets who sees a global.
    pub fn set_visibility(self, visibility: Visibility) -> Value<'c> {
        self.expect_global();
        call!(LLVMSetVisibility(self.raw(), visibility as i32));
        self
    }

    /// Whether the address of a global matters.
    pub fn unnamed_address(self) -> UnnamedAddress {
        self.expect_global();
        UnnamedAddress::of_number(call!(LLVMGetUnnamedAddress(self.raw())))
            .unwrap_or(UnnamedAddress::No)
    }

    /// Sets whether the address of a global matters.
    pub fn set_unnamed_address(self, unnamed: UnnamedAddress) -> Value<'c> {
        self.expect_global();
        call!(LLVMSetUnnamedAddress(self.raw(), unnamed as i32));
        self
    }

    /// The section of a function or variable; empty if none is given.
    pub fn section(self) -> String {
        self.expect_global();
        if self.kind() == ValueKind::Alias {
            String::new()
        } else {
            copy_terminated(call!(LLVMGetSection(self.raw())))
        }
    }

    /// Sets the section of a function or variable.
    pub fn set_section(self, section: &str) {
        self.expect_global();
        let section = terminated(section);
        call!(LLVMSetSection(self.raw(), section.as_ptr()));
    }

    /// Whether a function or variable is in a comdat.
    pub fn has_comdat(self) -> bool {
        self.expect_global();
        self.kind() != ValueKind::Alias && !call!(LLVMGetComdat(self.raw())).is_null()
    }

    /// Takes a function or variable out of its comdat.
    pub fn clear_comdat(self) {
        self.expect_global();
        call!(LLVMSetComdat(self.raw(), std::ptr::null_mut()));
    }

    /// The initialiser of a global variable.
    pub fn initialiser(self) -> Option<Value<'c>> {
        self.expect_variable();
        Value::maybe(call!(LLVMGetInitializer(self.raw())))
    }

    /// Sets or removes it; without one the variable is a declaration.
    pub fn set_initialiser(self, initialiser: Option<Value<'c>>) {
        self.expect_variable();
        call!(LLVMSetInitializer(
            self.raw(),
            initialiser.map_or(std::ptr::null_mut(), |value| value.raw())
        ));
    }

    /// Whether a global variable is never written.
    pub fn is_global_constant(self) -> bool {
        self.kind() == ValueKind::GlobalVariable && call!(LLVMIsGlobalConstant(self.raw())) != 0
    }

    /// Sets that.
    pub fn set_global_constant(self, set: bool) {
        self.expect_variable();
        call!(LLVMSetGlobalConstant(self.raw(), set.into()));
    }

    /// Whether each thread has a global variable of its own.
    pub fn is_thread_local(self) -> bool {
        self.kind() == ValueKind::GlobalVariable && call!(LLVMIsThreadLocal(self.raw())) != 0
    }

    /// How a thread-local variable is reached.
    pub fn thread_local_mode(self) -> ThreadLocalMode {
        self.expect_variable();
        ThreadLocalMode::of_number(call!(LLVMGetThreadLocalMode(self.raw())))
            .unwrap_or(ThreadLocalMode::GeneralDynamic)
    }

    /// Sets that; `No` makes it an ordinary variable.
    pub fn set_thread_local_mode(self, mode: ThreadLocalMode) {
        self.expect_variable();
        call!(LLVMSetThreadLocalMode(self.raw(), mode as i32));
    }

    /// What an alias stands for.
    pub fn aliasee(self) -> Option<Value<'c>> {
        (self.kind() == ValueKind::Alias)
            .then(|| Value::new(call!(LLVMAliasGetAliasee(self.raw()))))
    }

    /// Removes all metadata of a global; a declaration may have none of some kinds.
    pub fn clear_global_metadata(self) {
        self.expect_global();
        call!(LLVMGlobalClearMetadata(self.raw()));
    }

    /// The number of parameters of a function.
    pub fn parameter_count(self) -> u32 {
        self.expect_function();
        call!(LLVMCountParams(self.raw()))
    }

    /// A parameter of a function.
    pub fn parameter(self, index: u32) -> Value<'c> {
        assert!(
            index < self.parameter_count(),
            "{self} has no parameter {index}"
        );
        Value::new(call!(LLVMGetParam(self.raw(), index)))
    }

    /// The parameters of a function.
    pub fn parameters(self) -> Vec<Value<'c>> {
        (0..self.parameter_count())
            .map(|index| self.parameter(index))
            .collect()
    }

    /// The number of blocks of a function; none if it is a declaration or not loaded.
    pub fn block_count(self) -> u32 {
        self.expect_function();
        call!(LLVMCountBasicBlocks(self.raw()))
    }

    /// The blocks of a function, the entry first.
    pub fn blocks(self) -> Vec<Block<'c>> {
        self.expect_function();
        let mut blocks = Vec::new();
        let mut current = call!(LLVMGetFirstBasicBlock(self.raw()));
        while !current.is_null() {
            blocks.push(Block::new(current));
            current = call!(LLVMGetNextBasicBlock(current));
        }
        blocks
    }

    /// The first block of a function.
    pub fn entry_block(self) -> Option<Block<'c>> {
        self.expect_function();
        let raw = call!(LLVMGetFirstBasicBlock(self.raw()));
        (!raw.is_null()).then(|| Block::new(raw))
    }

    /// All instructions of a function.
    pub fn instructions(self) -> impl Iterator<Item = Value<'c>> + use<'c> {
        self.blocks().into_iter().flat_map(Block::instructions)
    }

    /// Deletes blocks of a function with their instructions. No block that stays may name one of them in its phis or at its end.
    pub fn erase_blocks(self, blocks: &[Block<'c>]) {
        self.expect_function();
        assert!(
            blocks.iter().all(|block| block.function() == self),
            "blocks of {self} are erased"
        );
        let gone: HashSet<Block<'c>> = blocks.iter().copied().collect();
        for block in self.blocks() {
            if gone.contains(&block) {
                continue;
            }
            let mut named = block.successors();
            let phis = block.instructions().take_while(|phi| phi.is(Opcode::Phi));
            named.extend(phis.flat_map(|phi| phi.incoming()).map(|(_, from)| from));
            assert!(
                !named.iter().any(|named| gone.contains(named)),
                "{block:?} names a block that is erased"
            );
        }
        // First all uses go, so that blocks and values may be deleted in any order.
        for instruction in blocks.iter().flat_map(|block| block.instructions()) {
            if instruction.is_used() {
                instruction.replace_uses_with(instruction.ty().poison());
            }
        }
        // Then all that names blocks.
        for block in blocks {
            let instructions: Vec<Value<'c>> = block.instructions().collect();
            instructions.into_iter().rev().for_each(Value::erase);
        }
        for block in blocks {
            let (raw, freed) = (block.raw(), Addresses::of_block(block.raw()));
            call!(LLVMDeleteBasicBlock(raw));
            freed.free();
        }
    }

    /// Makes a function a declaration: deletes its body.
    pub fn delete_body(self) {
        self.expect_function();
        self.erase_blocks(&self.blocks());
        self.set_linkage(Linkage::External);
        if self.has_comdat() {
            self.clear_comdat();
        }
        self.set_personality(None);
        self.clear_global_metadata();
    }

    /// The personality function, which decides what unwinding does.
    pub fn personality(self) -> Option<Value<'c>> {
        self.expect_function();
        if call!(LLVMHasPersonalityFn(self.raw())) == 0 {
            return None;
        }
        Value::maybe(call!(LLVMGetPersonalityFn(self.raw())))
    }

    /// Sets it.
    pub fn set_personality(self, personality: Option<Value<'c>>) {
        self.expect_function();
        call!(LLVMSetPersonalityFn(
            self.raw(),
            personality.map_or(std::ptr::null_mut(), |value| value.raw())
        ));
    }

    /// The number of the intrinsic that a function is; 0 if it is none.
    pub fn intrinsic_number(self) -> u32 {
        self.expect_function();
        call!(LLVMGetIntrinsicID(self.raw()))
    }

    /// The calling convention of a function, LLVM's number: 0 is C's.
    pub fn function_convention(self) -> u32 {
        self.expect_function();
        call!(LLVMGetFunctionCallConv(self.raw()))
    }

    /// Sets it.
    pub fn set_function_convention(self, convention: u32) {
        self.expect_function();
        call!(LLVMSetFunctionCallConv(self.raw(), convention));
    }

    /// The debug information of a function.
    pub fn subprogram(self, context: &'c Context) -> Option<Metadata<'c>> {
        self.expect_function();
        Metadata::of(context, call!(LLVMGetSubprogram(self.raw())))
    }

    /// Sets or removes it.
    pub fn set_subprogram(self, subprogram: Option<Metadata<'c>>) {
        self.expect_function();
        call!(LLVMSetSubprogram(
            self.raw(),
            subprogram.map_or(std::ptr::null_mut(), |metadata| metadata.raw())
        ));
    }
}
