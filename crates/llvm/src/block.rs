//! Basic blocks.

use std::fmt;

use crate::context::{Context, Of, copy_terminated, terminated};
use crate::handle::Handle;
use crate::module::chain;
use crate::opcode::Opcode;
use crate::sys::{BlockRef, OpaqueBasicBlock, call};
use crate::value::{Value, ValueKind};

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block<'c> {
    handle: Handle<OpaqueBasicBlock>,
    context: Of<'c>,
}

impl Context {
    /// Appends a block to a function.
    pub fn append_block<'c>(&'c self, function: Value<'c>, name: &str) -> Block<'c> {
        assert_eq!(
            function.kind(),
            ValueKind::Function,
            "only functions have blocks, not {function}"
        );
        let name = terminated(name);
        Block::new(call!(LLVMAppendBasicBlockInContext(
            self.raw,
            function.raw(),
            name.as_ptr()
        )))
    }

    /// Inserts a block before another.
    pub fn insert_block_before<'c>(&'c self, before: Block<'c>, name: &str) -> Block<'c> {
        let name = terminated(name);
        Block::new(call!(LLVMInsertBasicBlockInContext(
            self.raw,
            before.raw(),
            name.as_ptr()
        )))
    }
}

impl<'c> Block<'c> {
    pub(crate) fn new(raw: BlockRef) -> Block<'c> {
        Block {
            handle: Handle::new(raw),
            context: Of::default(),
        }
    }

    /// Its address, if it is still there.
    #[track_caller]
    pub(crate) fn raw(self) -> BlockRef {
        self.handle.get()
    }

    /// A number that is the same for equal handles.
    pub fn address(self) -> usize {
        self.handle.number()
    }

    /// The block as an operand.
    pub fn as_value(self) -> Value<'c> {
        Value::new(call!(LLVMBasicBlockAsValue(self.raw())))
    }

    /// The function that holds it.
    pub fn function(self) -> Value<'c> {
        Value::new(call!(LLVMGetBasicBlockParent(self.raw())))
    }

    /// Its name; empty if it has none.
    pub fn name(self) -> String {
        copy_terminated(call!(LLVMGetBasicBlockName(self.raw())))
    }

    /// The instruction at its end. None while it is being built.
    pub fn terminator(self) -> Option<Value<'c>> {
        Value::maybe(call!(LLVMGetBasicBlockTerminator(self.raw())))
    }

    /// The blocks that control may go to from here.
    pub fn successors(self) -> Vec<Block<'c>> {
        self.terminator().map(Value::successors).unwrap_or_default()
    }

    /// The blocks that control may come from. A block comes once per edge.
    pub fn predecessors(self) -> Vec<Block<'c>> {
        self.as_value()
            .users()
            .into_iter()
            .filter(|user| user.is_terminator())
            .filter_map(Value::block)
            .collect()
    }

    /// The instructions. The current one may be erased while walking.
    pub fn instructions(self) -> impl Iterator<Item = Value<'c>> + use<'c> {
        chain(call!(LLVMGetFirstInstruction(self.raw())), |instruction| {
            call!(LLVMGetNextInstruction(instruction))
        })
    }

    /// The first instruction.
    pub fn first_instruction(self) -> Option<Value<'c>> {
        Value::maybe(call!(LLVMGetFirstInstruction(self.raw())))
    }

    /// The first instruction that is not a phi.
    pub fn first_after_phis(self) -> Option<Value<'c>> {
        self.instructions()
            .find(|instruction| instruction.opcode() != Some(Opcode::Phi))
    }

    /// Moves it behind another block of the same function.
    pub fn move_after(self, other: Block<'c>) {
        call!(LLVMMoveBasicBlockAfter(self.raw(), other.raw()));
    }
}

impl fmt::Debug for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} in {})", self.name(), self.function())
    }
}
