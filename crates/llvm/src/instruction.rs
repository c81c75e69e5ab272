//! What can be asked of instructions, and changed in them.

use crate::block::Block;
use crate::context::copy_text;
use crate::handle::Addresses;
use crate::opcode::{
    AtomicOperation, FastMath, FloatPredicate, GepFlags, IntPredicate, Opcode, Ordering,
};
use crate::sys::call;
use crate::types::Type;
use crate::value::{Value, ValueKind};

/// An operand bundle of a call, for instance `"align"(ptr %p, i64 8)` of `llvm.assume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandBundle<'c> {
    /// Its tag.
    pub tag: String,
    /// Its operands.
    pub operands: Vec<Value<'c>>,
}

impl<'c> Value<'c> {
    #[track_caller]
    fn expect(self, allowed: &[Opcode]) {
        assert!(
            self.opcode()
                .is_some_and(|opcode| allowed.contains(&opcode)),
            "{self} is none of {allowed:?}"
        );
    }

    /// Whether it is an instruction with this opcode (or such a constant expression).
    pub fn is(self, opcode: Opcode) -> bool {
        self.opcode() == Some(opcode)
    }

    /// Whether it ends a block.
    pub fn is_terminator(self) -> bool {
        self.is_instruction() && !call!(LLVMIsATerminatorInst(self.raw())).is_null()
    }

    /// The block of an instruction.
    pub fn block(self) -> Option<Block<'c>> {
        if !self.is_instruction() {
            return None;
        }
        let raw = call!(LLVMGetInstructionParent(self.raw()));
        (!raw.is_null()).then(|| Block::new(raw))
    }

    /// The next instruction of the block.
    pub fn next_instruction(self) -> Option<Value<'c>> {
        assert!(self.is_instruction(), "{self} is no instruction");
        Value::maybe(call!(LLVMGetNextInstruction(self.raw())))
    }

    /// The instruction before this one in the block.
    pub fn previous_instruction(self) -> Option<Value<'c>> {
        assert!(self.is_instruction(), "{self} is no instruction");
        Value::maybe(call!(LLVMGetPreviousInstruction(self.raw())))
    }

    /// A copy without a place and without a name; `Builder::insert` gives it one.
    pub fn duplicate_instruction(self) -> Value<'c> {
        assert!(self.is_instruction(), "{self} is no instruction");
        Value::new(call!(LLVMInstructionClone(self.raw())))
    }

    /// Takes the instruction out of its block, alive; `Builder::insert` puts it elsewhere.
    pub fn remove_from_block(self) {
        assert!(self.is_instruction(), "{self} is no instruction");
        call!(LLVMInstructionRemoveFromParent(self.raw()));
    }

    /// Deletes an instruction, a function or a global variable that nobody uses.
    pub fn erase(self) {
        assert!(!self.is_used(), "{self} is erased while it is used");
        let raw = self.raw();
        match self.kind() {
            ValueKind::Instruction => {
                call!(LLVMInstructionEraseFromParent(raw));
                Addresses::of_value(raw).free();
            }
            ValueKind::Function => {
                let freed = Addresses::of_function(raw);
                call!(LLVMDeleteFunction(raw));
                freed.free();
            }
            ValueKind::GlobalVariable => {
                call!(LLVMDeleteGlobal(raw));
                Addresses::of_value(raw).free();
            }
            _ => panic!("{self} cannot be erased"),
        }
    }

    /// The predicate of `icmp`.
    pub fn int_predicate(self) -> IntPredicate {
        self.expect(&[Opcode::ICmp]);
        IntPredicate::of_number(call!(LLVMGetICmpPredicate(self.raw())))
            .expect("LLVM has ten integer predicates")
    }

    /// Whether `icmp` promises that both sides have the same sign.
    pub fn same_sign(self) -> bool {
        self.expect(&[Opcode::ICmp]);
        call!(LLVMGetICmpSameSign(self.raw())) != 0
    }

    /// The predicate of `fcmp`.
    pub fn float_predicate(self) -> FloatPredicate {
        self.expect(&[Opcode::FCmp]);
        FloatPredicate::of_number(call!(LLVMGetFCmpPredicate(self.raw())))
            .expect("LLVM has sixteen float predicates")
    }

    fn may_wrap_flagged(self) -> bool {
        self.is_instruction()
            && matches!(
                self.opcode(),
                Some(Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Shl)
            )
    }

    fn may_be_exact(self) -> bool {
        self.is_instruction()
            && matches!(
                self.opcode(),
                Some(Opcode::UDiv | Opcode::SDiv | Opcode::LShr | Opcode::AShr)
            )
    }

    /// `nsw` of add, sub, mul, shl. False for anything else (also for `trunc`, which this interface does not tell).
    pub fn no_signed_wrap(self) -> bool {
        self.may_wrap_flagged() && call!(LLVMGetNSW(self.raw())) != 0
    }

    /// `nuw` of add, sub, mul, shl. False for anything else.
    pub fn no_unsigned_wrap(self) -> bool {
        self.may_wrap_flagged() && call!(LLVMGetNUW(self.raw())) != 0
    }

    /// Sets `nsw` if this is an instruction that can carry it (the builder folds constants, so it may be none).
    pub fn set_no_signed_wrap(self, set: bool) -> Value<'c> {
        if self.may_wrap_flagged() {
            call!(LLVMSetNSW(self.raw(), set.into()));
        }
        self
    }

    /// Sets `nuw` if this is an instruction that can carry it.
    pub fn set_no_unsigned_wrap(self, set: bool) -> Value<'c> {
        if self.may_wrap_flagged() {
            call!(LLVMSetNUW(self.raw(), set.into()));
        }
        self
    }

    /// `exact` of divisions and right shifts.
    pub fn is_exact(self) -> bool {
        self.may_be_exact() && call!(LLVMGetExact(self.raw())) != 0
    }

    /// Sets `exact` if this is an instruction that can carry it.
    pub fn set_exact(self, set: bool) -> Value<'c> {
        if self.may_be_exact() {
            call!(LLVMSetExact(self.raw(), set.into()));
        }
        self
    }

    /// `nneg` of `zext` and `uitofp`.
    pub fn is_non_negative(self) -> bool {
        self.is_instruction()
            && matches!(self.opcode(), Some(Opcode::ZExt | Opcode::UIToFP))
            && call!(LLVMGetNNeg(self.raw())) != 0
    }

    /// `disjoint` of `or`.
    pub fn is_disjoint(self) -> bool {
        self.is_instruction() && self.is(Opcode::Or) && call!(LLVMGetIsDisjoint(self.raw())) != 0
    }

    /// Whether it is an instruction that can carry fast-math flags.
    pub fn can_be_fast(self) -> bool {
        self.is_instruction() && call!(LLVMCanValueUseFastMathFlags(self.raw())) != 0
    }

    /// The fast-math flags; none if it cannot carry any.
    pub fn fast_math(self) -> FastMath {
        if self.can_be_fast() {
            FastMath(call!(LLVMGetFastMathFlags(self.raw())))
        } else {
            FastMath::default()
        }
    }

    /// Sets the fast-math flags if this is an instruction that can carry them.
    pub fn set_fast_math(self, flags: FastMath) -> Value<'c> {
        if self.can_be_fast() {
            call!(LLVMSetFastMathFlags(self.raw(), flags.0));
        }
        self
    }

    /// The promises of `getelementptr`, also of a constant one.
    pub fn gep_flags(self) -> GepFlags {
        self.expect(&[Opcode::GetElementPtr]);
        GepFlags(call!(LLVMGEPGetNoWrapFlags(self.raw())))
    }

    /// Sets the promises of `getelementptr`.
    pub fn set_gep_flags(self, flags: GepFlags) {
        self.expect(&[Opcode::GetElementPtr]);
        call!(LLVMGEPSetNoWrapFlags(self.raw(), flags.0));
    }

    /// The type that the indices of `getelementptr` walk through.
    pub fn gep_source_type(self) -> Type<'c> {
        self.expect(&[Opcode::GetElementPtr]);
        Type::new(call!(LLVMGetGEPSourceElementType(self.raw())))
    }

    /// The alignment of a load, store, alloca, atomic access or global; 0 if none is given (globals only).
    pub fn alignment(self) -> u32 {
        if !self.is_global() {
            self.expect(&[
                Opcode::Load,
                Opcode::Store,
                Opcode::Alloca,
                Opcode::AtomicRMW,
                Opcode::AtomicCmpXchg,
            ]);
        }
        call!(LLVMGetAlignment(self.raw()))
    }

    /// Sets that alignment.
    pub fn set_alignment(self, alignment: u32) -> Value<'c> {
        if !self.is_global() {
            self.expect(&[
                Opcode::Load,
                Opcode::Store,
                Opcode::Alloca,
                Opcode::AtomicRMW,
                Opcode::AtomicCmpXchg,
            ]);
        }
        call!(LLVMSetAlignment(self.raw(), alignment));
        self
    }

    /// Whether a memory access is volatile.
    pub fn is_volatile(self) -> bool {
        matches!(
            self.opcode(),
            Some(Opcode::Load | Opcode::Store | Opcode::AtomicRMW | Opcode::AtomicCmpXchg)
        ) && call!(LLVMGetVolatile(self.raw())) != 0
    }

    /// The ordering of a load, store, fence or `atomicrmw`; the successful one of `cmpxchg`; `NotAtomic` for anything else.
    pub fn ordering(self) -> Ordering {
        let number = match self.opcode() {
            Some(Opcode::Load | Opcode::Store | Opcode::Fence | Opcode::AtomicRMW) => {
                call!(LLVMGetOrdering(self.raw()))
            }
            Some(Opcode::AtomicCmpXchg) => call!(LLVMGetCmpXchgSuccessOrdering(self.raw())),
            _ => 0,
        };
        Ordering::of_number(number).expect("LLVM has seven orderings")
    }

    /// What `atomicrmw` does.
    pub fn atomic_operation(self) -> Option<AtomicOperation> {
        self.expect(&[Opcode::AtomicRMW]);
        AtomicOperation::of_number(call!(LLVMGetAtomicRMWBinOp(self.raw())))
    }

    /// The type that an alloca makes room for. The number of elements is operand 0.
    pub fn allocated_type(self) -> Type<'c> {
        self.expect(&[Opcode::Alloca]);
        Type::new(call!(LLVMGetAllocatedType(self.raw())))
    }

    /// The blocks that a terminator may go to. Of `br` with a condition: then, else. Of `switch`: default, then the cases. Of `invoke`: normal, unwind.
    pub fn successors(self) -> Vec<Block<'c>> {
        if !self.is_terminator() {
            return Vec::new();
        }
        (0..call!(LLVMGetNumSuccessors(self.raw())))
            .map(|index| Block::new(call!(LLVMGetSuccessor(self.raw(), index))))
            .collect()
    }

    /// Redirects a terminator.
    pub fn set_successor(self, index: u32, block: Block<'c>) {
        assert!(
            self.is_terminator() && index < call!(LLVMGetNumSuccessors(self.raw())),
            "{self} has no successor {index}"
        );
        call!(LLVMSetSuccessor(self.raw(), index, block.raw()));
    }

    /// The condition of a `br`, if it has one; the operand of a `switch`.
    pub fn condition(self) -> Option<Value<'c>> {
        match self.opcode() {
            Some(Opcode::Br) if call!(LLVMIsConditional(self.raw())) != 0 => {
                Some(Value::new(call!(LLVMGetCondition(self.raw()))))
            }
            Some(Opcode::Switch) => Some(self.operand(0)),
            _ => None,
        }
    }

    /// The cases of a `switch` without the default: constant, block.
    pub fn switch_cases(self) -> Vec<(Value<'c>, Block<'c>)> {
        self.expect(&[Opcode::Switch]);
        (1..call!(LLVMGetNumSuccessors(self.raw())))
            .map(|index| {
                (
                    Value::new(call!(LLVMGetSwitchCaseValue(self.raw(), index))),
                    Block::new(call!(LLVMGetSuccessor(self.raw(), index))),
                )
            })
            .collect()
    }

    /// The default of a `switch`.
    pub fn switch_default(self) -> Block<'c> {
        self.expect(&[Opcode::Switch]);
        Block::new(call!(LLVMGetSwitchDefaultDest(self.raw())))
    }

    /// What a phi takes from which predecessor.
    pub fn incoming(self) -> Vec<(Value<'c>, Block<'c>)> {
        self.expect(&[Opcode::Phi]);
        (0..call!(LLVMCountIncoming(self.raw())))
            .map(|index| {
                (
                    Value::new(call!(LLVMGetIncomingValue(self.raw(), index))),
                    Block::new(call!(LLVMGetIncomingBlock(self.raw(), index))),
                )
            })
            .collect()
    }

    /// Adds to a phi.
    pub fn add_incoming(self, value: Value<'c>, from: Block<'c>) {
        self.expect(&[Opcode::Phi]);
        call!(LLVMAddIncoming(
            self.raw(),
            &mut { value.raw() },
            &mut { from.raw() },
            1
        ));
    }

    /// The indices of `extractvalue` and `insertvalue`.
    pub fn indices(self) -> Vec<u32> {
        self.expect(&[Opcode::ExtractValue, Opcode::InsertValue]);
        let count = call!(LLVMGetNumIndices(self.raw())) as usize;
        let start = call!(LLVMGetIndices(self.raw()));
        // SAFETY: LLVM says that there are so many indices at this address.
        unsafe { std::slice::from_raw_parts(start, count) }.to_vec()
    }

    /// The mask of `shufflevector`; `None` for a lane that may be anything.
    pub fn shuffle_mask(self) -> Vec<Option<u32>> {
        self.expect(&[Opcode::ShuffleVector]);
        (0..call!(LLVMGetNumMaskElements(self.raw())))
            .map(|index| u32::try_from(call!(LLVMGetMaskValue(self.raw(), index))).ok())
            .collect()
    }

    /// Whether this is an address in a variable of the function that computes it.
    pub fn is_in_variable(self) -> bool {
        let mut address = self;
        while address.is_instruction() && address.is(Opcode::GetElementPtr) {
            address = address.operand(0);
        }
        address.is_instruction() && address.is(Opcode::Alloca)
    }

    /// Whether it is a call or an invoke.
    pub fn is_call(self) -> bool {
        self.is_instruction() && matches!(self.opcode(), Some(Opcode::Call | Opcode::Invoke))
    }

    /// The arguments of a call or invoke.
    pub fn arguments(self) -> Vec<Value<'c>> {
        self.expect(&[Opcode::Call, Opcode::Invoke]);
        (0..call!(LLVMGetNumArgOperands(self.raw())))
            .map(|index| Value::new(call!(LLVMGetOperand(self.raw(), index))))
            .collect()
    }

    /// What a call or invoke calls: a function, a pointer, inline assembly.
    pub fn called(self) -> Value<'c> {
        self.expect(&[Opcode::Call, Opcode::Invoke, Opcode::CallBr]);
        Value::new(call!(LLVMGetCalledValue(self.raw())))
    }

    /// The function that a call or invoke calls, if it is known and has the type of the call.
    pub fn called_function(self) -> Option<Value<'c>> {
        let called = self.called();
        (called.kind() == ValueKind::Function && called.value_type() == self.called_type())
            .then_some(called)
    }

    /// The function type of a call or invoke.
    pub fn called_type(self) -> Type<'c> {
        self.expect(&[Opcode::Call, Opcode::Invoke, Opcode::CallBr]);
        Type::new(call!(LLVMGetCalledFunctionType(self.raw())))
    }

    /// The name of the intrinsic that a call calls, with its types: `llvm.fma.f64`.
    pub fn called_intrinsic(self) -> Option<String> {
        let called = self.is_call().then(|| self.called())?;
        (called.kind() == ValueKind::Function && call!(LLVMGetIntrinsicID(called.raw())) != 0)
            .then(|| called.name())
    }

    /// The calling convention of a call or invoke, LLVM's number.
    pub fn call_convention(self) -> u32 {
        self.expect(&[Opcode::Call, Opcode::Invoke]);
        call!(LLVMGetInstructionCallConv(self.raw()))
    }

    /// Sets it.
    pub fn set_call_convention(self, convention: u32) {
        self.expect(&[Opcode::Call, Opcode::Invoke]);
        call!(LLVMSetInstructionCallConv(self.raw(), convention));
    }

    /// Whether a call is `musttail`, which must stay directly before its `ret`.
    pub fn is_must_tail(self) -> bool {
        self.is_instruction()
            && self.is(Opcode::Call)
            && call!(LLVMGetTailCallKind(self.raw())) == 2
    }

    /// The operand bundles of a call or invoke.
    pub fn operand_bundles(self) -> Vec<OperandBundle<'c>> {
        self.expect(&[Opcode::Call, Opcode::Invoke]);
        (0..call!(LLVMGetNumOperandBundles(self.raw())))
            .map(|index| {
                let bundle = call!(LLVMGetOperandBundleAtIndex(self.raw(), index));
                let mut length = 0;
                let tag = call!(LLVMGetOperandBundleTag(bundle, &mut length));
                let tag = copy_text(tag, length);
                let count = call!(LLVMGetNumOperandBundleArgs(bundle));
                let operands = (0..count)
                    .map(|index| Value::new(call!(LLVMGetOperandBundleArgAtIndex(bundle, index))))
                    .collect();
                call!(LLVMDisposeOperandBundle(bundle));
                OperandBundle { tag, operands }
            })
            .collect()
    }

    /// Where an invoke goes on if the callee returns.
    pub fn normal_destination(self) -> Block<'c> {
        self.expect(&[Opcode::Invoke]);
        Block::new(call!(LLVMGetNormalDest(self.raw())))
    }

    /// Where an invoke goes on if the callee unwinds.
    pub fn unwind_destination(self) -> Block<'c> {
        self.expect(&[Opcode::Invoke]);
        Block::new(call!(LLVMGetUnwindDest(self.raw())))
    }

    /// Whether a landing pad only cleans up.
    pub fn is_cleanup(self) -> bool {
        self.expect(&[Opcode::LandingPad]);
        call!(LLVMIsCleanup(self.raw())) != 0
    }

    /// Makes a landing pad a cleanup.
    pub fn set_cleanup(self, set: bool) -> Value<'c> {
        self.expect(&[Opcode::LandingPad]);
        call!(LLVMSetCleanup(self.raw(), set.into()));
        self
    }

    /// The clauses of a landing pad.
    pub fn clauses(self) -> Vec<Value<'c>> {
        self.expect(&[Opcode::LandingPad]);
        (0..call!(LLVMGetNumClauses(self.raw())))
            .map(|index| Value::new(call!(LLVMGetClause(self.raw(), index))))
            .collect()
    }

    /// Adds a clause to a landing pad.
    pub fn add_clause(self, clause: Value<'c>) {
        self.expect(&[Opcode::LandingPad]);
        call!(LLVMAddClause(self.raw(), clause.raw()));
    }
}
