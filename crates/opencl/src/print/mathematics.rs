//! Functions of floats: OpenCL's own, by their names.

use super::body::{Body, variable};
use super::type_name;
use ferrozyme_backend::Error;
use ferrozyme_ir::{Op, OpView, Opcode, Type, Value};

/// OpenCL's function that computes an operation.
fn name_of(opcode: Opcode) -> Option<&'static str> {
    Some(match opcode {
        Opcode::Frem => "fmod",
        Opcode::Fma => "fma",
        Opcode::Fmin => "fmin",
        Opcode::Fmax => "fmax",
        Opcode::Fabs => "fabs",
        Opcode::Copysign => "copysign",
        Opcode::Fdim => "fdim",
        Opcode::Remainder => "remainder",
        Opcode::Floor => "floor",
        Opcode::Ceil => "ceil",
        Opcode::Trunc => "trunc",
        Opcode::Round => "round",
        Opcode::RoundEven => "rint",
        Opcode::Sqrt => "sqrt",
        Opcode::Rsqrt => "rsqrt",
        Opcode::Cbrt => "cbrt",
        Opcode::Hypot => "hypot",
        Opcode::Exp => "exp",
        Opcode::Exp2 => "exp2",
        Opcode::Exp10 => "exp10",
        Opcode::Expm1 => "expm1",
        Opcode::Log => "log",
        Opcode::Log2 => "log2",
        Opcode::Log10 => "log10",
        Opcode::Log1p => "log1p",
        Opcode::Pow => "pow",
        Opcode::Powi => "pown",
        Opcode::Sin => "sin",
        Opcode::Cos => "cos",
        Opcode::Sinpi => "sinpi",
        Opcode::Cospi => "cospi",
        Opcode::Tanpi => "tanpi",
        Opcode::Tan => "tan",
        Opcode::Asin => "asin",
        Opcode::Acos => "acos",
        Opcode::Atan => "atan",
        Opcode::Atan2 => "atan2",
        Opcode::Asinpi => "asinpi",
        Opcode::Acospi => "acospi",
        Opcode::Atanpi => "atanpi",
        Opcode::Atan2pi => "atan2pi",
        Opcode::Sinh => "sinh",
        Opcode::Cosh => "cosh",
        Opcode::Tanh => "tanh",
        Opcode::Asinh => "asinh",
        Opcode::Acosh => "acosh",
        Opcode::Atanh => "atanh",
        Opcode::Erf => "erf",
        Opcode::Erfc => "erfc",
        Opcode::Tgamma => "tgamma",
        Opcode::Lgamma => "lgamma",
        Opcode::Ldexp => "ldexp",
        Opcode::Logb => "logb",
        _ => return None,
    })
}

impl Body<'_> {
    /// The value of an operation on floats with one result.
    pub(super) fn mathematics(&self, op: Op) -> Result<String, Error> {
        let opcode = self.function.ops[op].opcode;
        let text = |value: Value| self.argument(value);
        Ok(match self.function.view(op) {
            OpView::Unary(Opcode::Fneg, a) => format!("-{}", text(a)?),
            OpView::Binary(Opcode::Fadd, a, b) => format!("{} + {}", text(a)?, text(b)?),
            OpView::Binary(Opcode::Fsub, a, b) => format!("{} - {}", text(a)?, text(b)?),
            OpView::Binary(Opcode::Fmul, a, b) => format!("{} * {}", text(a)?, text(b)?),
            OpView::Binary(Opcode::Fdiv, a, b) => format!("{} / {}", text(a)?, text(b)?),
            // NaN goes through, and zeros are ordered by their signs.
            OpView::Binary(Opcode::Fmaximum, a, b) => extreme(&text(a)?, &text(b)?, ">", "!"),
            OpView::Binary(Opcode::Fminimum, a, b) => extreme(&text(a)?, &text(b)?, "<", ""),
            OpView::Binary(Opcode::Polygamma, a, n) => {
                let ty = type_name(self.function.ty(a))?;
                format!("({ty})__ferrozyme_polygamma({}, {})", text(a)?, text(n)?)
            }
            OpView::Binary(Opcode::Nextafter, a, b)
                if matches!(self.function.ty(a), Type::F32 | Type::F64) =>
            {
                format!("nextafter({}, {})", text(a)?, text(b)?)
            }
            _ => {
                let name = name_of(opcode).ok_or_else(|| self.unknown())?;
                let operands = self.function.ops[op].operands.iter();
                let operands: Vec<String> = operands.map(|&a| text(a)).collect::<Result<_, _>>()?;
                format!("{name}({})", operands.join(", "))
            }
        })
    }

    /// An operand; integers are signed, and a negative number is in parentheses.
    fn argument(&self, value: Value) -> Result<String, Error> {
        let text = self.get(value)?;
        Ok(match self.function.ty(value) {
            Type::I32 => format!("(int){text}"),
            _ if text.starts_with('-') => format!("({text})"),
            _ => text,
        })
    }

    /// `sincos`, `modf` and `frexp`.
    pub(super) fn several_results(&mut self, op: Op) -> Result<(), Error> {
        let data = &self.function.ops[op];
        let (opcode, operand) = (data.opcode, data.operands.first().copied());
        let (Some(operand), &[first, second]) = (operand, &data.results[..]) else {
            return Err(self.unknown());
        };
        let x = self.argument(operand)?;
        let ty = self.function.ty(first);
        let name = type_name(ty)?;
        let pointer = format!("part{}", variable(second));
        let [one, other] = match opcode {
            Opcode::Sincos => [format!("sin({x})"), format!("cos({x})")],
            Opcode::Modf => {
                self.line(&format!("{name} {pointer};"));
                let fraction = format!("modf({x}, &{pointer})");
                [fraction, pointer]
            }
            Opcode::Frexp => {
                self.line(&format!("int {pointer};"));
                let mantissa = format!("frexp({x}, &{pointer})");
                [mantissa, format!("isfinite({x}) ? (uint){pointer} : 0u")]
            }
            _ => return Err(self.unknown()),
        };
        let one = self.rounded(one, ty);
        self.define(first, &one)?;
        let other = match opcode {
            Opcode::Frexp => other,
            _ => self.rounded(other, ty),
        };
        self.define(second, &other)
    }
}

/// The larger or smaller of two numbers.
fn extreme(a: &str, b: &str, sign: &str, not: &str) -> String {
    let first = format!("{a} {sign} {b} || ({a} == {b} && {not}signbit({a}))");
    format!("{a} != {a} ? {a} : {b} != {b} ? {b} : {first} ? {a} : {b}")
}
