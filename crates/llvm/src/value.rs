//! Values: whatever an operand can be. Arguments, instructions, constants, globals, functions, blocks.
//!
//! One handle type serves them all, as in LLVM. Accessors that only make sense for some kinds say so; asked of another kind they panic, because that is a mistake in
//! Ferrozyme and not in the user's program. `kind` and `opcode` may be asked of any value.

use std::fmt;

use crate::block::Block;
use crate::context::{Of, copy_text, take_text, text};
use crate::handle::{Addresses, Handle};
use crate::opcode::Opcode;
use crate::sys::{OpaqueValue, ValueRef, call};
use crate::types::Type;

/// See the file's head.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value<'c> {
    handle: Handle<OpaqueValue>,
    context: Of<'c>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "LLVM's own names")]
pub enum ValueKind {
    Argument,
    Block,
    Function,
    Alias,
    IndirectFunction,
    GlobalVariable,
    BlockAddress,
    ConstantExpression,
    ConstantArray,
    ConstantStruct,
    ConstantVector,
    Undef,
    Poison,
    ConstantAggregateZero,
    ConstantDataArray,
    ConstantDataVector,
    ConstantInteger,
    ConstantFloat,
    NullPointer,
    ConstantTokenNone,
    Metadata,
    InlineAssembly,
    Instruction,
    Other,
}

impl<'c> Value<'c> {
    pub(crate) fn new(raw: ValueRef) -> Value<'c> {
        Value {
            handle: Handle::new(raw),
            context: Of::default(),
        }
    }

    /// Its address, if it is still there.
    #[track_caller]
    pub(crate) fn raw(self) -> ValueRef {
        self.handle.get()
    }

    pub(crate) fn maybe(raw: ValueRef) -> Option<Value<'c>> {
        (!raw.is_null()).then(|| Value::new(raw))
    }

    /// What it is.
    pub fn kind(self) -> ValueKind {
        match call!(LLVMGetValueKind(self.raw())) {
            0 => ValueKind::Argument,
            1 => ValueKind::Block,
            5 => ValueKind::Function,
            6 => ValueKind::Alias,
            7 => ValueKind::IndirectFunction,
            8 => ValueKind::GlobalVariable,
            9 => ValueKind::BlockAddress,
            10 => ValueKind::ConstantExpression,
            11 => ValueKind::ConstantArray,
            12 => ValueKind::ConstantStruct,
            13 => ValueKind::ConstantVector,
            14 => ValueKind::Undef,
            15 => ValueKind::ConstantAggregateZero,
            16 => ValueKind::ConstantDataArray,
            17 => ValueKind::ConstantDataVector,
            18 => ValueKind::ConstantInteger,
            19 => ValueKind::ConstantFloat,
            20 => ValueKind::NullPointer,
            21 => ValueKind::ConstantTokenNone,
            22 => ValueKind::Metadata,
            23 => ValueKind::InlineAssembly,
            24 => ValueKind::Instruction,
            25 => ValueKind::Poison,
            _ => ValueKind::Other,
        }
    }

    /// A number that is the same for equal handles, for maps and messages.
    pub fn address(self) -> usize {
        self.handle.number()
    }

    /// Its type. Of globals and functions that is `ptr`; see `value_type`.
    pub fn ty(self) -> Type<'c> {
        Type::new(call!(LLVMTypeOf(self.raw())))
    }

    /// Its name; empty if it has none.
    pub fn name(self) -> String {
        let mut length = 0;
        let start = call!(LLVMGetValueName2(self.raw(), &mut length));
        copy_text(start, length)
    }

    /// Names it. Global names that are taken get a number.
    pub fn set_name(self, name: &str) {
        call!(LLVMSetValueName2(self.raw(), text(name), name.len()));
    }

    /// Whether it is a constant; globals and functions are.
    pub fn is_constant(self) -> bool {
        call!(LLVMIsConstant(self.raw())) != 0
    }

    /// Whether it is an instruction.
    pub fn is_instruction(self) -> bool {
        self.kind() == ValueKind::Instruction
    }

    /// Whether it is a function, a variable or an alias.
    pub fn is_global(self) -> bool {
        matches!(
            self.kind(),
            ValueKind::Function
                | ValueKind::GlobalVariable
                | ValueKind::Alias
                | ValueKind::IndirectFunction
        )
    }

    /// Whether it has operands.
    fn is_user(self) -> bool {
        !matches!(
            self.kind(),
            ValueKind::Argument
                | ValueKind::Block
                | ValueKind::Metadata
                | ValueKind::InlineAssembly
        )
    }

    /// The number of operands: of instructions, constants and globals; of others, none.
    pub fn operand_count(self) -> u32 {
        if self.is_user() {
            call!(LLVMGetNumOperands(self.raw())) as u32
        } else {
            0
        }
    }

    /// An operand.
    pub fn operand(self, index: u32) -> Value<'c> {
        assert!(
            index < self.operand_count(),
            "{self} has no operand {index}"
        );
        Value::new(call!(LLVMGetOperand(self.raw(), index)))
    }

    /// All operands.
    pub fn operands(self) -> Vec<Value<'c>> {
        (0..self.operand_count())
            .map(|index| Value::new(call!(LLVMGetOperand(self.raw(), index))))
            .collect()
    }

    /// Replaces an operand.
    pub fn set_operand(self, index: u32, value: Value<'c>) {
        assert!(
            index < self.operand_count() && (self.is_instruction() || self.is_global()),
            "{self} has no operand {index} that can be set"
        );
        call!(LLVMSetOperand(self.raw(), index, value.raw()));
    }

    /// Who uses it: once per use, so a user with two uses comes twice. Users are instructions, constants and globals.
    pub fn users(self) -> Vec<Value<'c>> {
        let mut users = Vec::new();
        let mut current = call!(LLVMGetFirstUse(self.raw()));
        while !current.is_null() {
            users.push(Value::new(call!(LLVMGetUser(current))));
            current = call!(LLVMGetNextUse(current));
        }
        users
    }

    /// Whether anybody uses it.
    pub fn is_used(self) -> bool {
        !call!(LLVMGetFirstUse(self.raw())).is_null()
    }

    /// Replaces all its uses.
    pub fn replace_uses_with(self, other: Value<'c>) {
        assert!(self != other, "a value is not replaced by itself: {self}");
        let remade = match self.is_constant() {
            true => Addresses::of_constants_with(self.raw()),
            false => Addresses::default(),
        };
        call!(LLVMReplaceAllUsesWith(self.raw(), other.raw()));
        // Some are changed in place.
        let alive = match self.is_constant() {
            true => Addresses::of_constants_with(other.raw()),
            false => Addresses::default(),
        };
        remade.free_but_for(&alive);
    }

    /// The block that it is, if it is one (as an operand of a terminator).
    pub fn as_block(self) -> Option<Block<'c>> {
        (call!(LLVMValueIsBasicBlock(self.raw())) != 0)
            .then(|| Block::new(call!(LLVMValueAsBasicBlock(self.raw()))))
    }

    /// The function that has it as a parameter.
    pub fn argument_of(self) -> Option<Value<'c>> {
        (self.kind() == ValueKind::Argument)
            .then(|| Value::new(call!(LLVMGetParamParent(self.raw()))))
    }

    /// The opcode, if it is an instruction or a constant expression.
    pub fn opcode(self) -> Option<Opcode> {
        match self.kind() {
            ValueKind::Instruction => {
                Opcode::of_number(call!(LLVMGetInstructionOpcode(self.raw())))
            }
            ValueKind::ConstantExpression => {
                Opcode::of_number(call!(LLVMGetConstOpcode(self.raw())))
            }
            _ => None,
        }
    }

    /// The text of a function or variable with all that belongs to it, as it stands in its module.
    pub fn definition_text(self) -> String {
        take_text(call!(LLVMPrintValueToString(self.raw())))
    }

    /// Whether it is inline assembly as a callee.
    pub fn is_inline_assembly(self) -> bool {
        self.kind() == ValueKind::InlineAssembly
    }

    /// Template and constraints of inline assembly.
    pub fn inline_assembly(self) -> Option<(String, String)> {
        if !self.is_inline_assembly() {
            return None;
        }
        let mut length = 0;
        let template = call!(LLVMGetInlineAsmAsmString(self.raw(), &mut length));
        let template = copy_text(template, length);
        let constraints = call!(LLVMGetInlineAsmConstraintString(self.raw(), &mut length));
        Some((template, copy_text(constraints, length)))
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A function prints with its body, which no message wants.
        if self.is_global() {
            return write!(f, "@{}", self.name());
        }
        f.write_str(take_text(call!(LLVMPrintValueToString(self.raw()))).trim())
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
