//! Float expressions that stay finite and moderate.
//!
//! Every function is applied within its domain, whatever its argument: `log` to 1 + a², `asin` to ½·sin(a), and so on.
//! That also keeps the derivatives moderate, which finite differences need.

use super::scope::{Element, Float, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{Opcode, Payload, Type, Value};

impl Writer<'_, '_> {
    /// A float expression of at most so many levels.
    pub(crate) fn float(&mut self, levels: u32) -> Float {
        if levels == 0 || self.random().percent(15) {
            return self.leaf();
        }
        match self.random().below(20) {
            0..=9 => self.arithmetic(levels - 1),
            10..=16 => self.mathematics(levels - 1),
            17 => {
                let condition = self.condition();
                let a = self.float(levels - 1);
                let b = self.float(levels - 1);
                self.note(Feature::Select);
                let value = self.b().select(condition, a.value, b.value);
                Float {
                    value,
                    bound: a.bound.max(b.bound),
                }
            }
            18 if self.shared.kinks => self.kink(levels - 1),
            19 if self.shared.kinks && self.random().percent(40) => self.rounding(levels - 1),
            19 if self.random().percent(30) => self.bits_and_back(levels - 1),
            _ => self.arithmetic(levels - 1),
        }
    }

    /// A float of at most [`SMALL`]: what may be stored, passed, and carried.
    pub(crate) fn small(&mut self, levels: u32) -> Value {
        let float = self.float(levels);
        self.squash(float)
    }

    /// Brings a float back to at most [`SMALL`].
    pub(crate) fn squash(&mut self, float: Float) -> Value {
        if float.bound <= SMALL {
            return float.value;
        }
        let a = float.value;
        match self.random().below(6) {
            0 => self.b().unary(Opcode::Sin, a),
            1 => self.b().unary(Opcode::Cos, a),
            2 => self.b().unary(Opcode::Atan, a),
            3 => {
                // a / (1 + a²)
                let below = self.one_plus_square(a);
                self.b().binary(Opcode::Fdiv, a, below)
            }
            4 if float.bound < 64.0 => {
                let scale = self.double(SMALL / float.bound.max(SMALL));
                self.b().binary(Opcode::Fmul, a, scale)
            }
            _ => {
                let quarter = self.double(0.25);
                let scaled = self.b().binary(Opcode::Fmul, a, quarter);
                self.b().unary(Opcode::Tanh, scaled)
            }
        }
    }

    fn leaf(&mut self) -> Float {
        match self.random().below(10) {
            0..=4 if !self.scope.floats.is_empty() => {
                // The latest values are the likeliest, so that chains become long.
                let count = self.scope.floats.len();
                let position = self.random().below(count).max(self.random().below(count));
                self.scope.floats[position]
            }
            5..=7
                if self
                    .scope
                    .arrays
                    .iter()
                    .any(|array| array.element == Element::Double) =>
            {
                self.load_somewhere()
            }
            8 if !self.scope.ints.is_empty() => {
                let int = self.small_int();
                let value = self.b().cast(Opcode::Sitofp, int.value, Type::F64);
                let scale = self.double(0.125);
                let value = self.b().binary(Opcode::Fmul, value, scale);
                Float {
                    value,
                    bound: int.max.abs().max(int.min.abs()) as f64 * 0.125,
                }
            }
            _ if !self.scope.floats.is_empty() && self.random().percent(60) => {
                let count = self.scope.floats.len();
                let position = self.random().below(count);
                self.scope.floats[position]
            }
            _ => Float {
                value: self.short_double(-2.0, 2.0),
                bound: 2.0,
            },
        }
    }

    fn arithmetic(&mut self, levels: u32) -> Float {
        let a = self.float(levels);
        let b = self.float(levels);
        match self.random().below(12) {
            0..=2 => Float {
                value: self.b().binary(Opcode::Fadd, a.value, b.value),
                bound: a.bound + b.bound,
            },
            3 | 4 => Float {
                value: self.b().binary(Opcode::Fsub, a.value, b.value),
                bound: a.bound + b.bound,
            },
            5..=8 => {
                let (a, b) = (self.squash(a), self.squash(b));
                Float {
                    value: self.b().binary(Opcode::Fmul, a, b),
                    bound: SMALL * SMALL,
                }
            }
            9 => {
                let below = self.one_plus_square(b.value);
                Float {
                    value: self.b().binary(Opcode::Fdiv, a.value, below),
                    bound: a.bound,
                }
            }
            10 => {
                let (a, b) = (self.squash(a), self.squash(b));
                let c = self.float(levels.min(1));
                Float {
                    value: self.b().fma(a, b, c.value),
                    bound: SMALL * SMALL + c.bound,
                }
            }
            _ => Float {
                value: self.b().unary(Opcode::Fneg, a.value),
                bound: a.bound,
            },
        }
    }

    /// A smooth function of floats.
    fn mathematics(&mut self, levels: u32) -> Float {
        self.note(Feature::Math);
        let float = self.float(levels);
        let a = float.value;
        let (value, bound) = match self.random().below(36) {
            0..=2 => (self.b().unary(Opcode::Sin, a), 1.0),
            3 | 4 => (self.b().unary(Opcode::Cos, a), 1.0),
            5 | 6 => (self.b().unary(Opcode::Tanh, a), 1.0),
            7 => (self.b().unary(Opcode::Atan, a), 1.6),
            8 => (self.b().unary(Opcode::Asinh, a), 4.0),
            9 => (self.b().unary(Opcode::Erf, a), 1.0),
            10 => (self.b().unary(Opcode::Erfc, a), 2.0),
            11 | 12 => (self.of_unit(Opcode::Exp, a, 1.0, 0.0), 2.8),
            13 => (self.of_unit(Opcode::Exp2, a, 1.0, 0.0), 2.0),
            14 => (self.of_unit(Opcode::Exp10, a, 0.5, 0.0), 3.2),
            15 => (self.of_unit(Opcode::Expm1, a, 1.0, 0.0), 1.8),
            16 => (self.of_square(Opcode::Log, a), 4.0),
            17 => (self.of_square(Opcode::Log2, a), 4.0),
            18 => (self.of_square(Opcode::Log10, a), 2.0),
            19 => {
                let square = self.b().binary(Opcode::Fmul, a, a);
                (self.b().unary(Opcode::Log1p, square), 4.0)
            }
            20 | 21 => (self.of_square(Opcode::Sqrt, a), float.bound + 1.0),
            22 => (self.of_unit(Opcode::Cbrt, a, 1.0, 2.0), 1.5),
            23 => {
                let other = self.float(levels.min(1));
                let other = self.one_plus_square(other.value);
                let other = self.squash(Float {
                    value: other,
                    bound: f64::INFINITY,
                });
                let two = self.double(2.0);
                let other = self.b().binary(Opcode::Fadd, other, two);
                let value = self.b().binary(Opcode::Hypot, a, other);
                (value, float.bound + 3.0)
            }
            24 => {
                // (1 + a²)^tanh(b), of a small a.
                let a = self.squash(float);
                let base = self.one_plus_square(a);
                let other = self.float(levels.min(1));
                let exponent = self.b().unary(Opcode::Tanh, other.value);
                (self.b().binary(Opcode::Pow, base, exponent), 17.0)
            }
            25 => {
                let a = self.squash(float);
                let power = self.random().between(2, 3);
                let exponent = self.function.int(Type::I32, i128::from(power));
                let value = self.b().binary(Opcode::Powi, a, exponent);
                (value, SMALL.powi(power as i32))
            }
            26 => {
                let op = self
                    .b()
                    .op(Opcode::Sincos, &[a], Payload::None, &[Type::F64, Type::F64]);
                let results = self.function.ops[op].results.clone();
                let value = self.b().binary(Opcode::Fmul, results[0], results[1]);
                (value, 0.5)
            }
            27 => (self.of_unit(Opcode::Tan, a, 0.75, 0.0), 1.0),
            28 => (self.of_unit(Opcode::Asin, a, 0.75, 0.0), 1.0),
            29 => (self.of_unit(Opcode::Acos, a, 0.75, 0.0), 2.5),
            30 => (self.of_unit(Opcode::Acosh, a, 0.75, 2.5), 2.0),
            31 => (self.of_unit(Opcode::Atanh, a, 0.75, 0.0), 1.0),
            32 => {
                let opcode = self.random().pick(&[Opcode::Sinh, Opcode::Cosh]);
                (self.of_unit(opcode, a, 1.0, 0.0), 1.6)
            }
            33 => {
                let opcode = self.random().pick(&[Opcode::Tgamma, Opcode::Lgamma]);
                (self.of_unit(opcode, a, 0.5, 2.5), 2.1)
            }
            34 => {
                // atan2 of a and a positive number: away from its cut.
                let other = self.float(levels.min(1));
                let x = self.one_plus_square(other.value);
                (self.b().binary(Opcode::Atan2, a, x), 1.6)
            }
            _ => {
                let amount = self.random().between(-2, 1);
                let amount = self.function.int(Type::I32, i128::from(amount));
                (self.b().binary(Opcode::Ldexp, a, amount), float.bound * 2.0)
            }
        };
        Float { value, bound }
    }

    /// `opcode(offset + radius·sin(a))`.
    fn of_unit(&mut self, opcode: Opcode, a: Value, radius: f64, offset: f64) -> Value {
        let inner = self
            .random()
            .pick(&[Opcode::Sin, Opcode::Cos, Opcode::Tanh]);
        let mut argument = self.b().unary(inner, a);
        if radius != 1.0 {
            let radius = self.double(radius);
            argument = self.b().binary(Opcode::Fmul, argument, radius);
        }
        if offset != 0.0 {
            let offset = self.double(offset);
            argument = self.b().binary(Opcode::Fadd, argument, offset);
        }
        self.b().unary(opcode, argument)
    }

    /// `opcode(1 + a²)`.
    fn of_square(&mut self, opcode: Opcode, a: Value) -> Value {
        let argument = self.one_plus_square(a);
        self.b().unary(opcode, argument)
    }

    /// `1 + a²`.
    pub(crate) fn one_plus_square(&mut self, a: Value) -> Value {
        let one = self.double(1.0);
        if self.random().percent(30) {
            return self.b().fma(a, a, one);
        }
        let square = self.b().binary(Opcode::Fmul, a, a);
        self.b().binary(Opcode::Fadd, square, one)
    }

    fn kink(&mut self, levels: u32) -> Float {
        self.note(Feature::Kink);
        let a = self.float(levels);
        if self.random().percent(35) {
            let value = self.b().unary(Opcode::Fabs, a.value);
            return Float { value, ..a };
        }
        let b = self.float(levels);
        let opcode = self.random().pick(&[
            Opcode::Fmin,
            Opcode::Fmax,
            Opcode::Fminimum,
            Opcode::Fmaximum,
            Opcode::Copysign,
            Opcode::Fdim,
        ]);
        Float {
            value: self.b().binary(opcode, a.value, b.value),
            bound: a.bound + b.bound,
        }
    }

    fn rounding(&mut self, levels: u32) -> Float {
        self.note(Feature::Round);
        let a = self.float(levels);
        let bound = a.bound + 1.0;
        let three = self.double(3.0);
        let value = match self.random().below(8) {
            0..=4 => {
                let opcode = self.random().pick(&[
                    Opcode::Floor,
                    Opcode::Ceil,
                    Opcode::Trunc,
                    Opcode::Round,
                    Opcode::RoundEven,
                ]);
                let whole = self.b().unary(opcode, a.value);
                self.b().binary(Opcode::Fsub, a.value, whole)
            }
            5 => self.b().binary(Opcode::Frem, a.value, three),
            6 => self.b().binary(Opcode::Remainder, a.value, three),
            _ => {
                let types = [Type::F64, Type::F64];
                let op = self.b().op(Opcode::Modf, &[a.value], Payload::None, &types);
                self.function.ops[op].results[0]
            }
        };
        Float { value, bound }
    }

    /// A double cast to an integer and back, as code that was optimised for other reasons does.
    fn bits_and_back(&mut self, levels: u32) -> Float {
        self.note(Feature::Bitcast);
        let a = self.float(levels);
        let bits = self.b().cast(Opcode::Bitcast, a.value, Type::I64);
        let value = self.b().cast(Opcode::Bitcast, bits, Type::F64);
        Float { value, ..a }
    }
}
