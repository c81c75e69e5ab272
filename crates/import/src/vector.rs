//! Vectors: lanes, shuffles, reductions.

use super::arithmetic::{PLAIN, float_flags};
use super::body::{At, Leaves};
use super::error::{Result, unknown};
use ferrozyme_ir::{self as ir, Flags, Opcode, Payload};
use ferrozyme_llvm::Value;
use smallvec::smallvec;

impl<'c> At<'_, '_, 'c, '_, '_> {
    pub(super) fn extract_element(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let vector = self.operand(instruction, 0)?;
        let index = self.operand(instruction, 1)?;
        let ty = self.result_type(instruction)?;
        let mut builder = self.builder();
        let index = super::memory::to_word(&mut builder, index);
        Ok(smallvec![builder.value(
            Opcode::Extract,
            &[vector, index],
            PLAIN,
            ty
        )])
    }

    pub(super) fn insert_element(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let vector = self.operand(instruction, 0)?;
        let element = self.operand(instruction, 1)?;
        let index = self.operand(instruction, 2)?;
        let ty = self.result_type(instruction)?;
        let mut builder = self.builder();
        let index = super::memory::to_word(&mut builder, index);
        Ok(smallvec![builder.value(
            Opcode::Insert,
            &[vector, element, index],
            PLAIN,
            ty
        )])
    }

    pub(super) fn shuffle(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        let ty = self.result_type(instruction)?;
        // A lane that may be anything may as well be the first.
        let mask = instruction.shuffle_mask().into_iter();
        let lanes: Box<[u16]> = mask.map(|lane| lane.unwrap_or(0) as u16).collect();
        let shuffled = self
            .builder()
            .value(Opcode::Shuffle, &[a, b], Payload::Lanes(lanes), ty);
        Ok(smallvec![shuffled])
    }

    /// `llvm.vector.reduce.*`.
    pub(super) fn reduce(&mut self, call: Value<'c>, kind: &str) -> Result<Leaves> {
        let opcode = match kind {
            "fadd" => Opcode::Fadd,
            "fmul" => Opcode::Fmul,
            "add" => Opcode::Add,
            "mul" => Opcode::Mul,
            "and" => Opcode::And,
            "or" => Opcode::Or,
            "xor" => Opcode::Xor,
            "smax" => Opcode::Smax,
            "smin" => Opcode::Smin,
            "umax" => Opcode::Umax,
            "umin" => Opcode::Umin,
            "fmax" => Opcode::Fmax,
            "fmin" => Opcode::Fmin,
            "fmaximum" => Opcode::Fmaximum,
            "fminimum" => Opcode::Fminimum,
            _ => return Err(unknown(format!("the reduction {kind}"))),
        };
        let flags = float_flags(call);
        let arguments = call.arguments();
        // Sums and products of floats take the value to start from as their first argument.
        let (mut result, vector) = match arguments[..] {
            [start, vector] => (Some(self.value(start)?), self.value(vector)?),
            _ => (None, self.value(arguments[0])?),
        };
        if opcode == Opcode::Fadd && flags.contains(Flags::REASSOC) {
            let lane = self.writer.function.ty(vector).lane_type();
            let sum = self
                .builder()
                .value(Opcode::ReduceFadd, &[vector], PLAIN, lane);
            self.add_flags(sum, flags);
            if let Some(start) = result {
                let sum = self.builder().binary(Opcode::Fadd, start, sum);
                self.add_flags(sum, flags);
                return Ok(smallvec![sum]);
            }
            return Ok(smallvec![sum]);
        }
        for lane in 0..i64::from(self.writer.function.ty(vector).lanes()) {
            let value = self.lane(vector, lane);
            result = Some(match result {
                None => value,
                Some(before) => {
                    let combined = self.builder().binary(opcode, before, value);
                    self.add_flags(combined, flags);
                    combined
                }
            });
        }
        let result = result.ok_or_else(|| unknown("a reduction of no lanes"))?;
        Ok(smallvec![result])
    }

    /// One lane of a vector.
    pub(super) fn lane(&mut self, vector: ir::Value, lane: i64) -> ir::Value {
        let ty = self.writer.function.ty(vector).lane_type();
        let mut builder = self.builder();
        let lane = builder.i64(lane);
        builder.value(Opcode::Extract, &[vector, lane], PLAIN, ty)
    }
}
