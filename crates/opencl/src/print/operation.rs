//! Integers, casts, comparisons and choices.

use super::body::{Body, signed_name};
use super::type_name;
use ferrozyme_backend::Error;
use ferrozyme_ir::{FloatPredicate, IntPredicate, Op, OpView, Opcode, Scalar, Type, Value};

impl Body<'_> {
    /// An operation that computes its results from its operands.
    pub(super) fn computation(&mut self, op: Op) -> Result<(), Error> {
        let function = self.function;
        let data = &function.ops[op];
        let &[result] = &data.results[..] else {
            return self.several_results(op);
        };
        let ty = function.ty(result);
        let expression = match function.view(op) {
            OpView::Icmp(predicate, a, b) => self.compare_integers(predicate, a, b)?,
            OpView::Fcmp(predicate, a, b) => {
                compare_floats(predicate, &self.get(a)?, &self.get(b)?)
            }
            OpView::Cast(opcode, a) => self.cast(opcode, a, ty)?,
            OpView::Select {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.get(condition)?;
                let (then, otherwise) = (self.get(then)?, self.get(otherwise)?);
                format!("{condition} ? {then} : {otherwise}")
            }
            OpView::Binary(opcode, a, b) if ty.is_int() && function.ty(a) == ty => {
                self.integers(opcode, a, b, ty)?
            }
            OpView::Unary(opcode, a) if ty.is_int() && function.ty(a) == ty => {
                let a = self.get(a)?;
                let name = type_name(ty)?;
                match opcode {
                    Opcode::Freeze => a,
                    Opcode::Ctpop => format!("popcount({a})"),
                    Opcode::Ctlz => format!("clz({a})"),
                    // The bits below the lowest one.
                    Opcode::Cttz => format!("popcount(({name})(({a} & -{a}) - 1))"),
                    _ => return Err(self.unknown()),
                }
            }
            _ => {
                let value = self.mathematics(op)?;
                self.rounded(value, ty)
            }
        };
        self.define(result, &expression)
    }

    /// A result in single precision, as one of the type.
    pub(super) fn rounded(&self, value: String, ty: Type) -> String {
        match ty.scalar() {
            Scalar::F16 => format!("round_f16({value})"),
            Scalar::Bf16 => format!("round_bf16({value})"),
            _ => value,
        }
    }

    fn integers(&self, opcode: Opcode, a: Value, b: Value, ty: Type) -> Result<String, Error> {
        let (a, b) = (self.get(a)?, self.get(b)?);
        let name = type_name(ty)?;
        let unsigned = |sign: &str| format!("({name})({a} {sign} {b})");
        if ty == Type::I1 {
            // One bit, computed with more of them.
            return Ok(match opcode {
                Opcode::And | Opcode::Umin | Opcode::Smax | Opcode::Mul => format!("{a} && {b}"),
                Opcode::Or | Opcode::Umax | Opcode::Smin => format!("{a} || {b}"),
                Opcode::Xor | Opcode::Add | Opcode::Sub => format!("{a} != {b}"),
                _ => return Err(self.unknown()),
            });
        }
        let signed_type = signed_name(ty).ok_or_else(|| self.unknown())?;
        let signed = |sign: &str| format!("({name})(({signed_type}){a} {sign} ({signed_type}){b})");
        let function = |call: &str, of: &str| format!("({name}){call}(({of}){a}, ({of}){b})");
        Ok(match opcode {
            Opcode::Add => unsigned("+"),
            Opcode::Sub => unsigned("-"),
            Opcode::Mul => unsigned("*"),
            Opcode::Udiv => unsigned("/"),
            Opcode::Urem => unsigned("%"),
            Opcode::Sdiv => signed("/"),
            Opcode::Srem => signed("%"),
            Opcode::And => unsigned("&"),
            Opcode::Or => unsigned("|"),
            Opcode::Xor => unsigned("^"),
            Opcode::Shl => unsigned("<<"),
            Opcode::Lshr => unsigned(">>"),
            Opcode::Ashr => format!("({name})(({signed_type}){a} >> {b})"),
            Opcode::Smin => function("min", signed_type),
            Opcode::Smax => function("max", signed_type),
            Opcode::Umin => function("min", name),
            Opcode::Umax => function("max", name),
            _ => return Err(self.unknown()),
        })
    }

    fn compare_integers(
        &self,
        predicate: IntPredicate,
        a: Value,
        b: Value,
    ) -> Result<String, Error> {
        let ty = self.function.ty(a);
        let (mut a, mut b) = (self.get(a)?, self.get(b)?);
        let (sign, is_signed) = match predicate {
            IntPredicate::Eq => ("==", false),
            IntPredicate::Ne => ("!=", false),
            IntPredicate::Slt => ("<", true),
            IntPredicate::Sle => ("<=", true),
            IntPredicate::Sgt => (">", true),
            IntPredicate::Sge => (">=", true),
            IntPredicate::Ult => ("<", false),
            IntPredicate::Ule => ("<=", false),
            IntPredicate::Ugt => (">", false),
            IntPredicate::Uge => (">=", false),
        };
        if is_signed {
            match signed_name(ty) {
                Some(signed) => (a, b) = (format!("({signed}){a}"), format!("({signed}){b}")),
                // A single bit that is set is -1.
                None if ty == Type::I1 => (a, b) = (b, a),
                None => return Err(self.unknown()),
            }
        }
        Ok(format!("{a} {sign} {b}"))
    }

    fn cast(&self, opcode: Opcode, value: Value, to: Type) -> Result<String, Error> {
        let from = self.function.ty(value);
        let a = self.get(value)?;
        let name = type_name(to)?;
        let signed = |ty: Type| signed_name(ty).ok_or_else(|| self.unknown());
        Ok(match opcode {
            Opcode::TruncInt if to == Type::I1 => format!("({a} & 1u) != 0"),
            Opcode::TruncInt | Opcode::Zext | Opcode::Fpext => format!("({name}){a}"),
            Opcode::Sext if from == Type::I1 => format!("({name})-({}){a}", signed(to)?),
            Opcode::Sext => format!("({name})({}){a}", signed(from)?),
            Opcode::Fptrunc | Opcode::Uitofp => self.rounded(format!("({name}){a}"), to),
            Opcode::Sitofp if from == Type::I1 => self.rounded(format!("-({name}){a}"), to),
            Opcode::Sitofp => self.rounded(format!("({name})({}){a}", signed(from)?), to),
            // Out of range it does not matter, so it may be limited.
            Opcode::Fptosi | Opcode::FptosiSat => {
                let signed = signed(to)?;
                format!("({name})(isnan({a}) ? ({signed})0 : convert_{signed}_sat_rtz({a}))")
            }
            Opcode::Fptoui | Opcode::FptouiSat if to != Type::I1 => {
                format!("isnan({a}) ? ({name})0 : convert_{name}_sat_rtz({a})")
            }
            Opcode::Bitcast => {
                let is_plain = |ty: Type| {
                    !ty.is_vector() && !matches!(ty.scalar(), Scalar::F16 | Scalar::Bf16)
                };
                match is_plain(from) && is_plain(to) {
                    true => format!("as_{name}({a})"),
                    false => return Err(self.unknown()),
                }
            }
            _ => return Err(self.unknown()),
        })
    }
}

fn compare_floats(predicate: FloatPredicate, a: &str, b: &str) -> String {
    use FloatPredicate::*;
    match predicate {
        Oeq => format!("{a} == {b}"),
        Ogt => format!("{a} > {b}"),
        Oge => format!("{a} >= {b}"),
        Olt => format!("{a} < {b}"),
        Ole => format!("{a} <= {b}"),
        One => format!("{a} < {b} || {a} > {b}"),
        Ord => format!("{a} == {a} && {b} == {b}"),
        Ueq => format!("!({a} < {b} || {a} > {b})"),
        Ugt => format!("!({a} <= {b})"),
        Uge => format!("!({a} < {b})"),
        Ult => format!("!({a} >= {b})"),
        Ule => format!("!({a} > {b})"),
        Une => format!("{a} != {b}"),
        Uno => format!("{a} != {a} || {b} != {b}"),
        #[allow(
            unreachable_patterns,
            reason = "predicates that are always or never true, if there are any"
        )]
        _ => "false".to_owned(),
    }
}
