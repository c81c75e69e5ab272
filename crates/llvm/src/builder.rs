//! Builds instructions.
//!
//! LLVM folds operations on constants while building, so what comes back need not be an instruction; the setters of flags do nothing then.

use std::cell::Cell;

use crate::OperandBundle;
use crate::block::Block;
use crate::context::{Context, text};
use crate::metadata::Metadata;
use crate::opcode::{AtomicOperation, FloatPredicate, GepFlags, IntPredicate, Opcode, Ordering};
use crate::sys::{BuilderRef, Text, ValueRef, call};
use crate::types::Type;
use crate::value::Value;

/// Where instructions are built.
pub struct Builder<'c> {
    raw: BuilderRef,
    context: &'c Context,
    place: Cell<Option<Place<'c>>>,
}

/// Where a builder goes on.
#[derive(Clone, Copy)]
enum Place<'c> {
    End(Block<'c>),
    Before(Value<'c>),
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        call!(LLVMDisposeBuilder(self.raw));
    }
}

const UNNAMED: Text = c"".as_ptr();

impl Context {
    /// A builder without a place.
    pub fn builder(&self) -> Builder<'_> {
        Builder {
            raw: call!(LLVMCreateBuilderInContext(self.raw)),
            context: self,
            place: Cell::default(),
        }
    }
}

fn raw_of(values: &[Value<'_>]) -> Vec<ValueRef> {
    values.iter().map(|value| value.raw()).collect()
}

impl<'c> Builder<'c> {
    /// The context.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// Its address, if the place where it goes on is still there.
    #[track_caller]
    fn raw(&self) -> BuilderRef {
        match self.place.get() {
            Some(Place::End(block)) => drop(block.raw()),
            Some(Place::Before(instruction)) => drop(instruction.raw()),
            None => {}
        }
        self.raw
    }

    /// Goes on at the end of a block.
    pub fn at_end(&self, block: Block<'c>) {
        call!(LLVMPositionBuilderAtEnd(self.raw, block.raw()));
        self.place.set(Some(Place::End(block)));
    }

    /// Goes on before an instruction.
    pub fn before(&self, instruction: Value<'c>) {
        assert!(
            instruction.is_instruction(),
            "{instruction} is no instruction"
        );
        // What takes the place of a terminator takes over its debug records: there can be none behind the end of a block.
        match instruction.is_terminator() {
            true => call!(LLVMPositionBuilderBefore(self.raw, instruction.raw())),
            false => call!(LLVMPositionBuilderBeforeInstrAndDbgRecords(
                self.raw,
                instruction.raw()
            )),
        }
        self.place.set(Some(Place::Before(instruction)));
    }

    /// The block that is being built.
    pub fn block(&self) -> Block<'c> {
        Block::new(call!(LLVMGetInsertBlock(self.raw())))
    }

    /// The debug location of what is built from now on.
    pub fn set_location(&self, location: Option<Metadata<'c>>) {
        call!(LLVMSetCurrentDebugLocation2(
            self.raw(),
            location.map_or(std::ptr::null_mut(), |metadata| metadata.raw())
        ));
    }

    /// Inserts an instruction that has no place.
    pub fn insert(&self, instruction: Value<'c>) -> Value<'c> {
        call!(LLVMInsertIntoBuilderWithName(
            self.raw(),
            instruction.raw(),
            UNNAMED
        ));
        instruction
    }

    /// `ret void`.
    pub fn return_nothing(&self) -> Value<'c> {
        Value::new(call!(LLVMBuildRetVoid(self.raw())))
    }

    /// `ret`.
    pub fn return_value(&self, value: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildRet(self.raw(), value.raw())))
    }

    /// `br`.
    pub fn branch(&self, to: Block<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildBr(self.raw(), to.raw())))
    }

    /// `br` on a condition.
    pub fn branch_if(
        &self,
        condition: Value<'c>,
        then: Block<'c>,
        otherwise: Block<'c>,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildCondBr(
            self.raw(),
            condition.raw(),
            then.raw(),
            otherwise.raw()
        )))
    }

    /// `switch`.
    pub fn switch(
        &self,
        on: Value<'c>,
        default: Block<'c>,
        cases: &[(Value<'c>, Block<'c>)],
    ) -> Value<'c> {
        let switch = Value::new(call!(LLVMBuildSwitch(
            self.raw(),
            on.raw(),
            default.raw(),
            cases.len() as u32
        )));
        for (constant, block) in cases {
            call!(LLVMAddCase(switch.raw(), constant.raw(), block.raw()));
        }
        switch
    }

    /// `unreachable`.
    pub fn unreachable(&self) -> Value<'c> {
        Value::new(call!(LLVMBuildUnreachable(self.raw())))
    }

    /// `resume`.
    pub fn resume(&self, value: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildResume(self.raw(), value.raw())))
    }

    /// `landingpad`, without clauses.
    pub fn landing_pad(&self, of: Type<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildLandingPad(
            self.raw(),
            of.raw,
            std::ptr::null_mut(),
            0,
            UNNAMED
        )))
    }

    /// `call`.
    pub fn call(
        &self,
        function_type: Type<'c>,
        called: Value<'c>,
        arguments: &[Value<'c>],
    ) -> Value<'c> {
        let mut raw = raw_of(arguments);
        Value::new(call!(LLVMBuildCall2(
            self.raw(),
            function_type.raw,
            called.raw(),
            raw.as_mut_ptr(),
            raw.len() as u32,
            UNNAMED
        )))
    }

    /// `call` of a function with its own type.
    pub fn call_function(&self, function: Value<'c>, arguments: &[Value<'c>]) -> Value<'c> {
        self.call(function.value_type(), function, arguments)
    }

    /// `call` with operand bundles.
    pub fn call_with_bundles(
        &self,
        function_type: Type<'c>,
        called: Value<'c>,
        arguments: &[Value<'c>],
        bundles: &[OperandBundle<'c>],
    ) -> Value<'c> {
        let mut raw = raw_of(arguments);
        let mut raw_bundles: Vec<_> = bundles
            .iter()
            .map(|bundle| {
                let mut operands = raw_of(&bundle.operands);
                call!(LLVMCreateOperandBundle(
                    text(&bundle.tag),
                    bundle.tag.len(),
                    operands.as_mut_ptr(),
                    operands.len() as u32
                ))
            })
            .collect();
        let built = call!(LLVMBuildCallWithOperandBundles(
            self.raw(),
            function_type.raw,
            called.raw(),
            raw.as_mut_ptr(),
            raw.len() as u32,
            raw_bundles.as_mut_ptr(),
            raw_bundles.len() as u32,
            UNNAMED
        ));
        for bundle in raw_bundles {
            call!(LLVMDisposeOperandBundle(bundle));
        }
        Value::new(built)
    }

    /// `invoke`.
    pub fn invoke(
        &self,
        function_type: Type<'c>,
        called: Value<'c>,
        arguments: &[Value<'c>],
        normal: Block<'c>,
        unwind: Block<'c>,
    ) -> Value<'c> {
        let mut raw = raw_of(arguments);
        Value::new(call!(LLVMBuildInvoke2(
            self.raw(),
            function_type.raw,
            called.raw(),
            raw.as_mut_ptr(),
            raw.len() as u32,
            normal.raw(),
            unwind.raw(),
            UNNAMED
        )))
    }

    /// An operation with two operands: `Opcode::Add`, `Opcode::FMul`, ….
    pub fn binary(&self, opcode: Opcode, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildBinOp(
            self.raw(),
            opcode as i32,
            left.raw(),
            right.raw(),
            UNNAMED
        )))
    }

    /// `fneg`.
    pub fn negate_float(&self, value: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildFNeg(self.raw(), value.raw(), UNNAMED)))
    }

    /// `sub 0, value`.
    pub fn negate(&self, value: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildNeg(self.raw(), value.raw(), UNNAMED)))
    }

    /// `xor value, -1`.
    pub fn not(&self, value: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildNot(self.raw(), value.raw(), UNNAMED)))
    }

    /// A conversion: `Opcode::ZExt`, `Opcode::FPTrunc`, `Opcode::BitCast`, ….
    pub fn cast(&self, opcode: Opcode, value: Value<'c>, to: Type<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildCast(
            self.raw(),
            opcode as i32,
            value.raw(),
            to.raw,
            UNNAMED
        )))
    }

    /// `icmp`.
    pub fn compare_integers(
        &self,
        predicate: IntPredicate,
        left: Value<'c>,
        right: Value<'c>,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildICmp(
            self.raw(),
            predicate as i32,
            left.raw(),
            right.raw(),
            UNNAMED
        )))
    }

    /// `fcmp`.
    pub fn compare_floats(
        &self,
        predicate: FloatPredicate,
        left: Value<'c>,
        right: Value<'c>,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildFCmp(
            self.raw(),
            predicate as i32,
            left.raw(),
            right.raw(),
            UNNAMED
        )))
    }

    /// `phi`, without incoming values.
    pub fn phi(&self, of: Type<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildPhi(self.raw(), of.raw, UNNAMED)))
    }

    /// `select`.
    pub fn select(&self, condition: Value<'c>, then: Value<'c>, otherwise: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildSelect(
            self.raw(),
            condition.raw(),
            then.raw(),
            otherwise.raw(),
            UNNAMED
        )))
    }

    /// `freeze`.
    pub fn freeze(&self, value: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildFreeze(self.raw(), value.raw(), UNNAMED)))
    }

    /// `alloca`.
    pub fn alloca(&self, of: Type<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildAlloca(self.raw(), of.raw, UNNAMED)))
    }

    /// `alloca` of several.
    pub fn alloca_array(&self, of: Type<'c>, count: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildArrayAlloca(
            self.raw(),
            of.raw,
            count.raw(),
            UNNAMED
        )))
    }

    /// `load`, with the alignment of the type.
    pub fn load(&self, of: Type<'c>, from: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildLoad2(
            self.raw(),
            of.raw,
            from.raw(),
            UNNAMED
        )))
    }

    /// `store`, with the alignment of the type.
    pub fn store(&self, value: Value<'c>, to: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildStore(self.raw(), value.raw(), to.raw())))
    }

    /// `getelementptr`.
    pub fn gep(
        &self,
        source: Type<'c>,
        base: Value<'c>,
        indices: &[Value<'c>],
        flags: GepFlags,
    ) -> Value<'c> {
        let mut raw = raw_of(indices);
        Value::new(call!(LLVMBuildGEPWithNoWrapFlags(
            self.raw(),
            source.raw,
            base.raw(),
            raw.as_mut_ptr(),
            raw.len() as u32,
            UNNAMED,
            flags.0
        )))
    }

    /// `getelementptr i8`: an offset in bytes.
    pub fn offset(&self, base: Value<'c>, bytes: Value<'c>, flags: GepFlags) -> Value<'c> {
        self.gep(self.context.integer(8), base, &[bytes], flags)
    }

    /// `llvm.memset`; alignment 0 means unknown.
    pub fn fill(
        &self,
        to: Value<'c>,
        byte: Value<'c>,
        length: Value<'c>,
        alignment: u32,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildMemSet(
            self.raw(),
            to.raw(),
            byte.raw(),
            length.raw(),
            alignment
        )))
    }

    /// `llvm.memcpy`; alignment 0 means unknown.
    pub fn copy(
        &self,
        to: Value<'c>,
        to_alignment: u32,
        from: Value<'c>,
        from_alignment: u32,
        length: Value<'c>,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildMemCpy(
            self.raw(),
            to.raw(),
            to_alignment,
            from.raw(),
            from_alignment,
            length.raw()
        )))
    }

    /// `llvm.memmove`; alignment 0 means unknown.
    pub fn copy_overlapping(
        &self,
        to: Value<'c>,
        to_alignment: u32,
        from: Value<'c>,
        from_alignment: u32,
        length: Value<'c>,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildMemMove(
            self.raw(),
            to.raw(),
            to_alignment,
            from.raw(),
            from_alignment,
            length.raw()
        )))
    }

    /// `extractelement`.
    pub fn extract_element(&self, vector: Value<'c>, index: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildExtractElement(
            self.raw(),
            vector.raw(),
            index.raw(),
            UNNAMED
        )))
    }

    /// `insertelement`.
    pub fn insert_element(
        &self,
        vector: Value<'c>,
        element: Value<'c>,
        index: Value<'c>,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildInsertElement(
            self.raw(),
            vector.raw(),
            element.raw(),
            index.raw(),
            UNNAMED
        )))
    }

    /// `shufflevector`; the mask is a constant vector of `i32`.
    pub fn shuffle(&self, left: Value<'c>, right: Value<'c>, mask: Value<'c>) -> Value<'c> {
        Value::new(call!(LLVMBuildShuffleVector(
            self.raw(),
            left.raw(),
            right.raw(),
            mask.raw(),
            UNNAMED
        )))
    }

    /// `extractvalue`.
    pub fn extract_value(&self, aggregate: Value<'c>, index: u32) -> Value<'c> {
        Value::new(call!(LLVMBuildExtractValue(
            self.raw(),
            aggregate.raw(),
            index,
            UNNAMED
        )))
    }

    /// `insertvalue`.
    pub fn insert_value(&self, aggregate: Value<'c>, element: Value<'c>, index: u32) -> Value<'c> {
        Value::new(call!(LLVMBuildInsertValue(
            self.raw(),
            aggregate.raw(),
            element.raw(),
            index,
            UNNAMED
        )))
    }

    /// `fence`.
    pub fn fence(&self, ordering: Ordering) -> Value<'c> {
        Value::new(call!(LLVMBuildFence(
            self.raw(),
            ordering as i32,
            0,
            UNNAMED
        )))
    }

    /// `atomicrmw`.
    pub fn atomic(
        &self,
        operation: AtomicOperation,
        to: Value<'c>,
        value: Value<'c>,
        ordering: Ordering,
    ) -> Value<'c> {
        Value::new(call!(LLVMBuildAtomicRMW(
            self.raw(),
            operation as i32,
            to.raw(),
            value.raw(),
            ordering as i32,
            0
        )))
    }
}
