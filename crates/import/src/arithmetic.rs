//! Instructions that compute: arithmetic, comparisons, casts, choices, aggregates.

use super::body::{At, Leaves};
use super::constant::unknown_type;
use super::error::{Result, unknown};
use ferrozyme_convention::signature::{leaves, loop_type};
use ferrozyme_ir::{
    self as ir, Flags, FloatPredicate, IntPredicate, Opcode, Payload, Scalar, Type,
};
use ferrozyme_llvm::{
    FastMath, FloatPredicate as LlvmFloat, IntPredicate as LlvmInt, Opcode as Llvm,
    Type as LlvmType, TypeKind, Value,
};
use smallvec::smallvec;

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What an instruction, or a constant expression, gives.
    pub(super) fn instruction(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let Some(opcode) = instruction.opcode() else {
            return Err(unknown("an unknown instruction"));
        };
        if let Some(binary) = binary_opcode(opcode) {
            return self.binary(instruction, binary);
        }
        if let Some(cast) = cast_opcode(opcode) {
            let value = self.operand(instruction, 0)?;
            return self.cast(instruction, cast, value);
        }
        match opcode {
            Llvm::FNeg => {
                let value = self.operand(instruction, 0)?;
                let flags = float_flags(instruction);
                let result = self.builder().unary(Opcode::Fneg, value);
                self.add_flags(result, flags);
                Ok(smallvec![result])
            }
            Llvm::ICmp => {
                let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
                let predicate = int_predicate(instruction.int_predicate());
                Ok(smallvec![self.builder().icmp(predicate, a, b)])
            }
            Llvm::FCmp => self.compare_floats(instruction),
            Llvm::Select => self.select(instruction),
            Llvm::Freeze => self.freeze(instruction),
            Llvm::ExtractValue => self.extract_value(instruction),
            Llvm::InsertValue => self.insert_value(instruction),
            Llvm::BitCast => self.bitcast(instruction),
            Llvm::PtrToAddr => {
                let value = self.operand(instruction, 0)?;
                let ty = self.result_type(instruction)?;
                self.pointer_to_integer(value, ty)
            }
            Llvm::PtrToInt => {
                let value = self.operand(instruction, 0)?;
                let ty = self.result_type(instruction)?;
                self.pointer_to_integer(value, ty)
            }
            Llvm::Load => self.load(instruction),
            Llvm::Store => self.store(instruction),
            Llvm::Alloca => self.alloca(instruction),
            Llvm::GetElementPtr => self.address(instruction),
            Llvm::ExtractElement => self.extract_element(instruction),
            Llvm::InsertElement => self.insert_element(instruction),
            Llvm::ShuffleVector => self.shuffle(instruction),
            Llvm::Call => self.call(instruction),
            Llvm::Invoke => self.invoke(instruction),
            _ => Err(unknown(format!("the instruction {opcode:?}"))),
        }
    }

    /// The type of an instruction's result.
    pub(super) fn result_type(&self, instruction: Value<'c>) -> Result<Type> {
        let of = instruction.ty();
        loop_type(of).ok_or_else(|| unknown_type(of))
    }

    /// Adds promises to the operation that gives a value.
    pub(super) fn add_flags(&mut self, value: ir::Value, flags: Flags) {
        let function = &mut *self.writer.function;
        if let Some((op, _)) = function.def_op(value) {
            let own = &mut function.ops[op].flags;
            *own = own.union(flags);
        }
    }

    fn binary(&mut self, instruction: Value<'c>, opcode: Opcode) -> Result<Leaves> {
        let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        // Without common bits, `or` is a sum, which the analysis of addresses understands.
        let disjoint =
            opcode == Opcode::Or && instruction.is_instruction() && instruction.is_disjoint();
        if disjoint {
            let result = self.builder().binary(Opcode::Add, a, b);
            self.add_flags(result, Flags::NSW.union(Flags::NUW));
            return Ok(smallvec![result]);
        }
        let result = self.builder().binary(opcode, a, b);
        let mut flags = float_flags(instruction);
        if instruction.is_instruction() {
            if instruction.no_signed_wrap() {
                flags = flags.union(Flags::NSW);
            }
            if instruction.no_unsigned_wrap() {
                flags = flags.union(Flags::NUW);
            }
            if instruction.is_exact() && opcode != Opcode::Or {
                flags = flags.union(Flags::EXACT);
            }
        }
        self.add_flags(result, flags);
        Ok(smallvec![result])
    }

    fn cast(&mut self, instruction: Value<'c>, opcode: Opcode, value: ir::Value) -> Result<Leaves> {
        let ty = self.result_type(instruction)?;
        let non_negative = instruction.is_instruction()
            && matches!(opcode, Opcode::Zext | Opcode::Uitofp)
            && instruction.is_non_negative();
        // Of numbers that are not negative, the signed cast is the same and better understood.
        let opcode = match opcode {
            Opcode::Zext if non_negative => Opcode::Sext,
            Opcode::Uitofp if non_negative => Opcode::Sitofp,
            other => other,
        };
        let result = self.builder().cast(opcode, value, ty);
        Ok(smallvec![result])
    }

    /// An address as an integer of any width.
    fn pointer_to_integer(&mut self, value: ir::Value, ty: Type) -> Result<Leaves> {
        let mut builder = self.builder();
        let word = ty.with_scalar(Scalar::Int(64));
        let address = builder.cast(Opcode::Ptrtoint, value, word);
        Ok(smallvec![match ty.scalar().bits() {
            64 => address,
            bits if bits < 64 => builder.cast(Opcode::TruncInt, address, ty),
            _ => builder.cast(Opcode::Zext, address, ty),
        }])
    }

    fn bitcast(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let value = self.operand(instruction, 0)?;
        let ty = self.result_type(instruction)?;
        if self.writer.function.ty(value) == ty {
            return Ok(smallvec![value]);
        }
        Ok(smallvec![self.builder().cast(Opcode::Bitcast, value, ty)])
    }

    fn compare_floats(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        let ty = self.result_type(instruction)?;
        let Some(predicate) = float_predicate(instruction.float_predicate()) else {
            let truth = instruction.float_predicate() == LlvmFloat::True;
            return Ok(smallvec![self.writer.function.int(ty, i128::from(truth))]);
        };
        let flags = float_flags(instruction);
        let result = self.builder().fcmp(predicate, a, b);
        self.add_flags(result, flags);
        Ok(smallvec![result])
    }

    fn select(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let condition = self.operand(instruction, 0)?;
        let then = self.leaves(instruction.operand(1))?;
        let otherwise = self.leaves(instruction.operand(2))?;
        let mut results = Leaves::new();
        for (a, b) in then.into_iter().zip(otherwise) {
            results.push(self.builder().select(condition, a, b));
        }
        Ok(results)
    }

    /// What is frozen may be anything but is the same everywhere: for nothing in particular, zero.
    fn freeze(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let mut values = self.leaves(instruction.operand(0))?;
        for value in &mut values {
            if self.writer.function.constant_of(*value) == Some(&ir::Constant::Undef) {
                let ty = self.writer.function.ty(*value);
                *value = self.writer.function.zero(ty);
            }
        }
        Ok(values)
    }

    fn extract_value(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let aggregate = instruction.operand(0);
        let (first, count) = run_of(aggregate.ty(), &instruction.indices())?;
        let values = self.leaves(aggregate)?;
        Ok(values[first..first + count].iter().copied().collect())
    }

    fn insert_value(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let aggregate = instruction.operand(0);
        let (first, count) = run_of(aggregate.ty(), &instruction.indices())?;
        let mut values = self.leaves(aggregate)?;
        let inserted = self.leaves(instruction.operand(1))?;
        values[first..first + count].copy_from_slice(&inserted);
        Ok(values)
    }
}

/// Which leaves of an aggregate a path of indices leads to.
fn run_of(of: LlvmType<'_>, indices: &[u32]) -> Result<(usize, usize)> {
    let count = |of: LlvmType<'_>| {
        leaves(of)
            .map(|leaves| leaves.len())
            .ok_or_else(|| unknown_type(of))
    };
    let mut first = 0;
    let mut of = of;
    for &index in indices {
        if of.kind() == TypeKind::Struct {
            let fields = of.fields();
            for &field in &fields[..index as usize] {
                first += count(field)?;
            }
            of = fields[index as usize];
        } else {
            of = of.element();
            first += index as usize * count(of)?;
        }
    }
    Ok((first, count(of)?))
}

/// The floating-point flags of an instruction.
pub(super) fn float_flags(instruction: Value<'_>) -> Flags {
    if !instruction.is_instruction() {
        return Flags::NONE;
    }
    let given = instruction.fast_math();
    let pairs = [
        (FastMath::NO_NAN, Flags::NNAN),
        (FastMath::NO_INFINITY, Flags::NINF),
        (FastMath::NO_SIGNED_ZERO, Flags::NSZ),
        (FastMath::RECIPROCAL, Flags::ARCP),
        (FastMath::CONTRACT, Flags::CONTRACT),
        (FastMath::APPROXIMATE, Flags::AFN),
        (FastMath::REASSOCIATE, Flags::REASSOC),
    ];
    let set = pairs.iter().filter(|(flag, _)| given.contains(*flag));
    set.fold(Flags::NONE, |flags, (_, flag)| flags.union(*flag))
}

fn binary_opcode(opcode: Llvm) -> Option<Opcode> {
    Some(match opcode {
        Llvm::Add => Opcode::Add,
        Llvm::FAdd => Opcode::Fadd,
        Llvm::Sub => Opcode::Sub,
        Llvm::FSub => Opcode::Fsub,
        Llvm::Mul => Opcode::Mul,
        Llvm::FMul => Opcode::Fmul,
        Llvm::UDiv => Opcode::Udiv,
        Llvm::SDiv => Opcode::Sdiv,
        Llvm::FDiv => Opcode::Fdiv,
        Llvm::URem => Opcode::Urem,
        Llvm::SRem => Opcode::Srem,
        Llvm::FRem => Opcode::Frem,
        Llvm::Shl => Opcode::Shl,
        Llvm::LShr => Opcode::Lshr,
        Llvm::AShr => Opcode::Ashr,
        Llvm::And => Opcode::And,
        Llvm::Or => Opcode::Or,
        Llvm::Xor => Opcode::Xor,
        _ => return None,
    })
}

fn cast_opcode(opcode: Llvm) -> Option<Opcode> {
    Some(match opcode {
        Llvm::Trunc => Opcode::TruncInt,
        Llvm::ZExt => Opcode::Zext,
        Llvm::SExt => Opcode::Sext,
        Llvm::FPToUI => Opcode::Fptoui,
        Llvm::FPToSI => Opcode::Fptosi,
        Llvm::UIToFP => Opcode::Uitofp,
        Llvm::SIToFP => Opcode::Sitofp,
        Llvm::FPTrunc => Opcode::Fptrunc,
        Llvm::FPExt => Opcode::Fpext,
        Llvm::IntToPtr => Opcode::Inttoptr,
        _ => return None,
    })
}

pub(super) fn int_predicate(predicate: LlvmInt) -> IntPredicate {
    match predicate {
        LlvmInt::Eq => IntPredicate::Eq,
        LlvmInt::Ne => IntPredicate::Ne,
        LlvmInt::Ugt => IntPredicate::Ugt,
        LlvmInt::Uge => IntPredicate::Uge,
        LlvmInt::Ult => IntPredicate::Ult,
        LlvmInt::Ule => IntPredicate::Ule,
        LlvmInt::Sgt => IntPredicate::Sgt,
        LlvmInt::Sge => IntPredicate::Sge,
        LlvmInt::Slt => IntPredicate::Slt,
        LlvmInt::Sle => IntPredicate::Sle,
    }
}

fn float_predicate(predicate: LlvmFloat) -> Option<FloatPredicate> {
    Some(match predicate {
        LlvmFloat::Oeq => FloatPredicate::Oeq,
        LlvmFloat::Ogt => FloatPredicate::Ogt,
        LlvmFloat::Oge => FloatPredicate::Oge,
        LlvmFloat::Olt => FloatPredicate::Olt,
        LlvmFloat::Ole => FloatPredicate::Ole,
        LlvmFloat::One => FloatPredicate::One,
        LlvmFloat::Ord => FloatPredicate::Ord,
        LlvmFloat::Uno => FloatPredicate::Uno,
        LlvmFloat::Ueq => FloatPredicate::Ueq,
        LlvmFloat::Ugt => FloatPredicate::Ugt,
        LlvmFloat::Uge => FloatPredicate::Uge,
        LlvmFloat::Ult => FloatPredicate::Ult,
        LlvmFloat::Ule => FloatPredicate::Ule,
        LlvmFloat::Une => FloatPredicate::Une,
        LlvmFloat::False | LlvmFloat::True => return None,
    })
}

/// The payload of operations that have none.
pub(super) const PLAIN: Payload = Payload::None;
