//! Operations without memory, calls and control flow: integers, casts, comparisons, vectors. Float arithmetic is in `math.rs`.

use ferrozyme_ir::{self as ir, Flags, OpView, Opcode};

use super::ExportError;
use super::body::Body;
use ferrozyme_llvm::{FloatPredicate, GepFlags, IntPredicate, Opcode as Llvm, Value};

impl<'c> Body<'_, '_, 'c> {
    /// Exports an operation that holds no regions and ends none.
    pub(super) fn operation(&mut self, op: ir::Op, data: &ir::OpData) -> Result<(), ExportError> {
        match data.opcode {
            Opcode::Load
            | Opcode::Store
            | Opcode::Stack
            | Opcode::Alloc
            | Opcode::Free
            | Opcode::Copy
            | Opcode::Move
            | Opcode::Fill
            | Opcode::AtomicAdd => self.memory(data),
            Opcode::Call | Opcode::CallIndirect => self.call(data),
            Opcode::Sincos | Opcode::Modf | Opcode::Frexp => self.pair(data),
            _ => {
                let operands = self.get_all(&data.operands)?;
                let value = self.compute(op, data, &operands)?;
                self.set(data.results[0], value);
                Ok(())
            }
        }
    }

    fn compute(
        &mut self,
        op: ir::Op,
        data: &ir::OpData,
        operands: &[Value<'c>],
    ) -> Result<Value<'c>, ExportError> {
        let result = self.type_of(data.results[0]);
        let of = self.llvm_type(result);
        let builder = &self.exporter.builder;
        let context = self.exporter.context;
        let flags = data.flags;
        match data.view_with(operands) {
            OpView::Binary(opcode, a, b) if let Some(instruction) = integer_instruction(opcode) => {
                Ok(builder
                    .binary(instruction, a, b)
                    .set_no_signed_wrap(flags.contains(Flags::NSW))
                    .set_no_unsigned_wrap(flags.contains(Flags::NUW))
                    .set_exact(flags.contains(Flags::EXACT)))
            }
            OpView::Binary(Opcode::Smin, ..) => self.call_intrinsic("llvm.smin", operands),
            OpView::Binary(Opcode::Smax, ..) => self.call_intrinsic("llvm.smax", operands),
            OpView::Binary(Opcode::Umin, ..) => self.call_intrinsic("llvm.umin", operands),
            OpView::Binary(Opcode::Umax, ..) => self.call_intrinsic("llvm.umax", operands),
            OpView::Unary(Opcode::Ctpop, _) => self.call_intrinsic("llvm.ctpop", operands),
            OpView::Unary(Opcode::Ctlz, a) => {
                self.call_intrinsic("llvm.ctlz", &[a, context.boolean(false)])
            }
            OpView::Unary(Opcode::Cttz, a) => {
                self.call_intrinsic("llvm.cttz", &[a, context.boolean(false)])
            }
            OpView::Unary(Opcode::Bswap, _) => self.call_intrinsic("llvm.bswap", operands),
            OpView::Unary(Opcode::Bitreverse, _) => {
                self.call_intrinsic("llvm.bitreverse", operands)
            }
            OpView::Unary(Opcode::Freeze, a) => Ok(builder.freeze(a)),
            OpView::Icmp(predicate, a, b) => {
                Ok(builder.compare_integers(int_predicate(predicate), a, b))
            }
            OpView::Fcmp(predicate, a, b) => Ok(builder
                .compare_floats(float_predicate(predicate), a, b)
                .set_fast_math(self.fast_math(flags))),
            OpView::Cast(Opcode::FptosiSat, a) => {
                let intrinsic = self.intrinsic("llvm.fptosi.sat", &[of, a.ty()])?;
                Ok(self.exporter.builder.call_function(intrinsic, operands))
            }
            OpView::Cast(Opcode::FptouiSat, a) => {
                let intrinsic = self.intrinsic("llvm.fptoui.sat", &[of, a.ty()])?;
                Ok(self.exporter.builder.call_function(intrinsic, operands))
            }
            OpView::Cast(opcode, a) if let Some(instruction) = cast_instruction(opcode) => {
                Ok(builder.cast(instruction, a, of))
            }
            OpView::Select {
                condition,
                then,
                otherwise,
            } => Ok(builder
                .select(condition, then, otherwise)
                .set_fast_math(self.fast_math(flags))),
            OpView::Splat { .. }
            | OpView::Extract { .. }
            | OpView::Insert { .. }
            | OpView::Shuffle { .. }
            | OpView::ReduceFadd { .. } => self.of_vectors(data, operands),
            // LLVM tells pointers apart by tests of its own.
            OpView::Exclusive { pointer, .. } => Ok(pointer),
            OpView::Offset { base, index, scale } => Ok(self.offset(base, index, scale, flags)),
            _ if result.is_float() || data.opcode == Opcode::Ilogb => self.math(data, operands),
            _ => Err(self.problem(format!(
                "the exporter does not know the operation {} ({op}; a bug in Ferrozyme)",
                data.opcode
            ))),
        }
    }

    /// What makes vectors and takes them apart.
    fn of_vectors(
        &mut self,
        data: &ir::OpData,
        operands: &[Value<'c>],
    ) -> Result<Value<'c>, ExportError> {
        let result = self.type_of(data.results[0]);
        let of = self.llvm_type(result);
        let builder = &self.exporter.builder;
        let context = self.exporter.context;
        match data.view_with(operands) {
            OpView::Splat { scalar } => {
                let zero = context.integer(64).constant(0);
                let first = builder.insert_element(of.poison(), scalar, zero);
                let mask = context.vector_constant(&vec![
                    context.integer(32).constant(0);
                    usize::from(result.lanes())
                ]);
                Ok(builder.shuffle(first, of.poison(), mask))
            }
            OpView::Extract { vector, lane } => Ok(builder.extract_element(vector, lane)),
            OpView::Insert {
                vector,
                scalar,
                lane,
            } => Ok(builder.insert_element(vector, scalar, lane)),
            OpView::Shuffle { left, right, lanes } => {
                let mask: Vec<Value<'c>> = lanes
                    .iter()
                    .map(|lane| context.integer(32).constant(i128::from(*lane)))
                    .collect();
                Ok(builder.shuffle(left, right, context.vector_constant(&mask)))
            }
            OpView::ReduceFadd { vector } => {
                let intrinsic = self.intrinsic("llvm.vector.reduce.fadd", &[vector.ty()])?;
                // Minus zero is what changes no sum.
                let start = of.float_constant(-0.0);
                Ok(self
                    .exporter
                    .builder
                    .call_function(intrinsic, &[start, vector])
                    .set_fast_math(self.fast_math(data.flags)))
            }
            _ => Err(self.problem(format!("{} is no operation on vectors", data.opcode))),
        }
    }

    /// Calls an intrinsic that is overloaded by the type of its first operand only.
    pub(super) fn call_intrinsic(
        &self,
        name: &str,
        operands: &[Value<'c>],
    ) -> Result<Value<'c>, ExportError> {
        let intrinsic = self.intrinsic(name, &[operands[0].ty()])?;
        Ok(self.exporter.builder.call_function(intrinsic, operands))
    }

    fn offset(&self, base: Value<'c>, index: Value<'c>, scale: i64, flags: Flags) -> Value<'c> {
        let builder = &self.exporter.builder;
        let mut promise = GepFlags::NONE;
        if flags.contains(Flags::INBOUNDS) {
            promise = promise.with(GepFlags::INBOUNDS);
        }
        if flags.contains(Flags::NUW) && scale > 0 {
            promise = promise.with(GepFlags::NUW);
        }
        let byte = self.exporter.context.integer(8);
        match u64::try_from(scale) {
            Ok(1) => builder.gep(byte, base, &[index], promise),
            // LLVM's own front ends say the size of what is there; it forgets all but the size.
            Ok(size) if size > 0 => builder.gep(byte.array(size), base, &[index], promise),
            _ => {
                let bytes =
                    builder.binary(Llvm::Mul, index, index.ty().constant(i128::from(scale)));
                let bytes = bytes.set_no_signed_wrap(flags.contains(Flags::INBOUNDS));
                builder.gep(byte, base, &[bytes], promise)
            }
        }
    }
}

/// The instruction of an operation on two integers, if there is one.
fn integer_instruction(opcode: Opcode) -> Option<Llvm> {
    Some(match opcode {
        Opcode::Add => Llvm::Add,
        Opcode::Sub => Llvm::Sub,
        Opcode::Mul => Llvm::Mul,
        Opcode::Sdiv => Llvm::SDiv,
        Opcode::Udiv => Llvm::UDiv,
        Opcode::Srem => Llvm::SRem,
        Opcode::Urem => Llvm::URem,
        Opcode::Shl => Llvm::Shl,
        Opcode::Lshr => Llvm::LShr,
        Opcode::Ashr => Llvm::AShr,
        Opcode::And => Llvm::And,
        Opcode::Or => Llvm::Or,
        Opcode::Xor => Llvm::Xor,
        _ => return None,
    })
}

/// The instruction of a cast, if there is one.
fn cast_instruction(opcode: Opcode) -> Option<Llvm> {
    Some(match opcode {
        Opcode::TruncInt => Llvm::Trunc,
        Opcode::Zext => Llvm::ZExt,
        Opcode::Sext => Llvm::SExt,
        Opcode::Fptrunc => Llvm::FPTrunc,
        Opcode::Fpext => Llvm::FPExt,
        Opcode::Fptosi => Llvm::FPToSI,
        Opcode::Fptoui => Llvm::FPToUI,
        Opcode::Sitofp => Llvm::SIToFP,
        Opcode::Uitofp => Llvm::UIToFP,
        Opcode::Ptrtoint => Llvm::PtrToInt,
        Opcode::Inttoptr => Llvm::IntToPtr,
        Opcode::Bitcast => Llvm::BitCast,
        _ => return None,
    })
}

fn int_predicate(predicate: ir::IntPredicate) -> IntPredicate {
    match predicate {
        ir::IntPredicate::Eq => IntPredicate::Eq,
        ir::IntPredicate::Ne => IntPredicate::Ne,
        ir::IntPredicate::Slt => IntPredicate::Slt,
        ir::IntPredicate::Sle => IntPredicate::Sle,
        ir::IntPredicate::Sgt => IntPredicate::Sgt,
        ir::IntPredicate::Sge => IntPredicate::Sge,
        ir::IntPredicate::Ult => IntPredicate::Ult,
        ir::IntPredicate::Ule => IntPredicate::Ule,
        ir::IntPredicate::Ugt => IntPredicate::Ugt,
        ir::IntPredicate::Uge => IntPredicate::Uge,
    }
}

fn float_predicate(predicate: ir::FloatPredicate) -> FloatPredicate {
    match predicate {
        ir::FloatPredicate::Oeq => FloatPredicate::Oeq,
        ir::FloatPredicate::Ogt => FloatPredicate::Ogt,
        ir::FloatPredicate::Oge => FloatPredicate::Oge,
        ir::FloatPredicate::Olt => FloatPredicate::Olt,
        ir::FloatPredicate::Ole => FloatPredicate::Ole,
        ir::FloatPredicate::One => FloatPredicate::One,
        ir::FloatPredicate::Ord => FloatPredicate::Ord,
        ir::FloatPredicate::Ueq => FloatPredicate::Ueq,
        ir::FloatPredicate::Ugt => FloatPredicate::Ugt,
        ir::FloatPredicate::Uge => FloatPredicate::Uge,
        ir::FloatPredicate::Ult => FloatPredicate::Ult,
        ir::FloatPredicate::Ule => FloatPredicate::Ule,
        ir::FloatPredicate::Une => FloatPredicate::Une,
        ir::FloatPredicate::Uno => FloatPredicate::Uno,
    }
}
