//! Operations without memory, calls and control flow: integers, casts, comparisons, vectors. Float arithmetic is in `math.rs`.

use ferrozyme_ir::{self as ir, Flags, Opcode, Payload};

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
        let integer = |opcode: Llvm| {
            builder
                .binary(opcode, operands[0], operands[1])
                .set_no_signed_wrap(flags.contains(Flags::NSW))
                .set_no_unsigned_wrap(flags.contains(Flags::NUW))
                .set_exact(flags.contains(Flags::EXACT))
        };
        let cast = |opcode: Llvm| Ok(builder.cast(opcode, operands[0], of));
        match data.opcode {
            Opcode::Add => Ok(integer(Llvm::Add)),
            Opcode::Sub => Ok(integer(Llvm::Sub)),
            Opcode::Mul => Ok(integer(Llvm::Mul)),
            Opcode::Sdiv => Ok(integer(Llvm::SDiv)),
            Opcode::Udiv => Ok(integer(Llvm::UDiv)),
            Opcode::Srem => Ok(integer(Llvm::SRem)),
            Opcode::Urem => Ok(integer(Llvm::URem)),
            Opcode::Shl => Ok(integer(Llvm::Shl)),
            Opcode::Lshr => Ok(integer(Llvm::LShr)),
            Opcode::Ashr => Ok(integer(Llvm::AShr)),
            Opcode::And => Ok(integer(Llvm::And)),
            Opcode::Or => Ok(integer(Llvm::Or)),
            Opcode::Xor => Ok(integer(Llvm::Xor)),
            Opcode::Smin => self.call_intrinsic("llvm.smin", operands),
            Opcode::Smax => self.call_intrinsic("llvm.smax", operands),
            Opcode::Umin => self.call_intrinsic("llvm.umin", operands),
            Opcode::Umax => self.call_intrinsic("llvm.umax", operands),
            Opcode::Ctpop => self.call_intrinsic("llvm.ctpop", operands),
            Opcode::Ctlz => {
                self.call_intrinsic("llvm.ctlz", &[operands[0], context.boolean(false)])
            }
            Opcode::Cttz => {
                self.call_intrinsic("llvm.cttz", &[operands[0], context.boolean(false)])
            }
            Opcode::Bswap => self.call_intrinsic("llvm.bswap", operands),
            Opcode::Bitreverse => self.call_intrinsic("llvm.bitreverse", operands),
            Opcode::Freeze => Ok(builder.freeze(operands[0])),
            Opcode::Icmp => match data.payload {
                Payload::IntPredicate(predicate) => Ok(builder.compare_integers(
                    int_predicate(predicate),
                    operands[0],
                    operands[1],
                )),
                _ => Err(self.problem("a comparison has no predicate (a bug in Ferrozyme)")),
            },
            Opcode::Fcmp => match data.payload {
                Payload::FloatPredicate(predicate) => Ok(builder
                    .compare_floats(float_predicate(predicate), operands[0], operands[1])
                    .set_fast_math(self.fast_math(flags))),
                _ => Err(self.problem("a comparison has no predicate (a bug in Ferrozyme)")),
            },
            Opcode::TruncInt => cast(Llvm::Trunc),
            Opcode::Zext => cast(Llvm::ZExt),
            Opcode::Sext => cast(Llvm::SExt),
            Opcode::Fptrunc => cast(Llvm::FPTrunc),
            Opcode::Fpext => cast(Llvm::FPExt),
            Opcode::Fptosi => cast(Llvm::FPToSI),
            Opcode::Fptoui => cast(Llvm::FPToUI),
            Opcode::Sitofp => cast(Llvm::SIToFP),
            Opcode::Uitofp => cast(Llvm::UIToFP),
            Opcode::Ptrtoint => cast(Llvm::PtrToInt),
            Opcode::Inttoptr => cast(Llvm::IntToPtr),
            Opcode::FptosiSat | Opcode::FptouiSat => {
                let name = if data.opcode == Opcode::FptosiSat {
                    "llvm.fptosi.sat"
                } else {
                    "llvm.fptoui.sat"
                };
                let intrinsic = self.intrinsic(name, &[of, operands[0].ty()])?;
                Ok(self.exporter.builder.call_function(intrinsic, operands))
            }
            Opcode::Bitcast => cast(Llvm::BitCast),
            Opcode::Select => Ok(builder
                .select(operands[0], operands[1], operands[2])
                .set_fast_math(self.fast_math(flags))),
            Opcode::Splat
            | Opcode::Extract
            | Opcode::Insert
            | Opcode::Shuffle
            | Opcode::ReduceFadd => self.of_vectors(data, operands),
            Opcode::Offset => {
                let Payload::Scale(scale) = data.payload else {
                    return Err(self.problem("an offset has no scale (a bug in Ferrozyme)"));
                };
                Ok(self.offset(operands[0], operands[1], scale, flags))
            }
            opcode if result.is_float() || opcode == Opcode::Ilogb => self.math(data, operands),
            opcode => Err(self.problem(format!(
                "the exporter does not know the operation {opcode} ({op}; a bug in Ferrozyme)"
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
        match data.opcode {
            Opcode::Splat => {
                let first = builder.insert_element(
                    of.poison(),
                    operands[0],
                    context.integer(64).constant(0),
                );
                let mask = context.vector_constant(&vec![
                    context.integer(32).constant(0);
                    usize::from(result.lanes())
                ]);
                Ok(builder.shuffle(first, of.poison(), mask))
            }
            Opcode::Extract => Ok(builder.extract_element(operands[0], operands[1])),
            Opcode::Insert => Ok(builder.insert_element(operands[0], operands[1], operands[2])),
            Opcode::Shuffle => {
                let Payload::Lanes(lanes) = &data.payload else {
                    return Err(self.problem("a shuffle has no lanes (a bug in Ferrozyme)"));
                };
                let mask: Vec<Value<'c>> = lanes
                    .iter()
                    .map(|lane| context.integer(32).constant(i128::from(*lane)))
                    .collect();
                Ok(builder.shuffle(operands[0], operands[1], context.vector_constant(&mask)))
            }
            Opcode::ReduceFadd => {
                let intrinsic = self.intrinsic("llvm.vector.reduce.fadd", &[operands[0].ty()])?;
                // Minus zero is what changes no sum.
                let start = of.float_constant(-0.0);
                Ok(self
                    .exporter
                    .builder
                    .call_function(intrinsic, &[start, operands[0]])
                    .set_fast_math(self.fast_math(data.flags)))
            }
            opcode => Err(self.problem(format!("{opcode} is no operation on vectors"))),
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
