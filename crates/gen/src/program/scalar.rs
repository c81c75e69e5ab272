//! Scalar expressions: floats that stay finite and moderate, integers that stay in known limits, conditions.
//!
//! Every function is applied within its domain, whatever its argument: `log` to 1 + a², `asin` to ½·sin(a), and so on.
//! That also keeps the derivatives moderate, which finite differences need.

use super::scope::{Element, Float, Int, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{FloatPredicate, IntPredicate, Opcode, Payload, Scalar, Type, Value};

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

    /// An integer from the scope, or computed from such.
    pub(crate) fn small_int(&mut self) -> Int {
        if self.scope.ints.is_empty() || self.random().percent(15) {
            let constant = self.random().between(0, 7);
            return Int {
                value: self.int(constant),
                min: constant,
                max: constant,
            };
        }
        let count = self.scope.ints.len();
        let position = self.random().below(count).max(self.random().below(count));
        let a = self.scope.ints[position];
        if self.random().percent(60) {
            return a;
        }
        let position = self.random().below(count);
        let b = self.scope.ints[position];
        let constant = self.random().between(1, 4);
        let int = match self.random().below(8) {
            0 => Int {
                value: self.b().binary(Opcode::Add, a.value, b.value),
                min: a.min + b.min,
                max: a.max + b.max,
            },
            1 => Int {
                value: self.b().binary(Opcode::Sub, a.value, b.value),
                min: a.min - b.max,
                max: a.max - b.min,
            },
            2 => {
                let factor = self.int(constant);
                Int {
                    value: self.b().binary(Opcode::Mul, a.value, factor),
                    min: a.min * constant,
                    max: a.max * constant,
                }
            }
            3 => Int {
                value: self.b().binary(Opcode::Smin, a.value, b.value),
                min: a.min.min(b.min),
                max: a.max.min(b.max),
            },
            4 => Int {
                value: self.b().binary(Opcode::Smax, a.value, b.value),
                min: a.min.max(b.min),
                max: a.max.max(b.max),
            },
            5 => {
                let mask = self.int(3);
                Int {
                    value: self.b().binary(Opcode::And, a.value, mask),
                    min: 0,
                    max: 3,
                }
            }
            6 => {
                let condition = self.int_condition();
                Int {
                    value: self.b().select(condition, a.value, b.value),
                    min: a.min.min(b.min),
                    max: a.max.max(b.max),
                }
            }
            _ => {
                let constant_value = self.int(constant);
                Int {
                    value: self.b().binary(Opcode::Add, a.value, constant_value),
                    min: a.min + constant,
                    max: a.max + constant,
                }
            }
        };
        if int.min < -64 || int.max > 64 {
            let modulus = self.int(8);
            return Int {
                value: self.b().binary(Opcode::Urem, int.value, modulus),
                min: 0,
                max: 7,
            };
        }
        int
    }

    /// A condition on data or on integers.
    pub(crate) fn condition(&mut self) -> Value {
        if self.random().percent(50) {
            self.data_condition()
        } else {
            self.int_condition()
        }
    }

    /// A condition on floats.
    pub(crate) fn data_condition(&mut self) -> Value {
        let a = self.float(1);
        let b = if self.random().percent(60) {
            self.short_double(-1.0, 1.0)
        } else {
            self.float(1).value
        };
        let predicate = self.random().pick(&[
            FloatPredicate::Ogt,
            FloatPredicate::Olt,
            FloatPredicate::Oge,
            FloatPredicate::Ule,
            FloatPredicate::Une,
        ]);
        self.b().fcmp(predicate, a.value, b)
    }

    /// A condition on integers.
    pub(crate) fn int_condition(&mut self) -> Value {
        let count = self.scope.ints.len();
        let position = self.random().below(count.max(1));
        let Some(&a) = self.scope.ints.get(position) else {
            return self.data_condition();
        };
        let b = if self.random().percent(70) {
            let constant = self.random().between(0, 4);
            self.int(constant)
        } else {
            let count = self.scope.ints.len();
            let position = self.random().below(count);
            self.scope.ints[position].value
        };
        let predicate = self.random().pick(&[
            IntPredicate::Eq,
            IntPredicate::Ne,
            IntPredicate::Slt,
            IntPredicate::Sge,
            IntPredicate::Ult,
        ]);
        let condition = self.b().icmp(predicate, a.value, b);
        if self.random().percent(15) {
            // Odd elements only, as stencils have it.
            let bit = self.b().cast(Opcode::TruncInt, a.value, Type::I1);
            return self.b().binary(Opcode::Xor, condition, bit);
        }
        condition
    }

    /// An `i64` from 0 up to `length`, to index an array with.
    pub(crate) fn index(&mut self, length: i64) -> Value {
        match self.random().below(12) {
            0 | 1 => {
                let constant = self.random().between(0, length - 1);
                self.int(constant)
            }
            2 if self.random().percent(50) => self.data_index(length),
            3 => match self.gathered_index(length) {
                Some(index) => index,
                None => self.bounded_index(length),
            },
            _ => self.bounded_index(length),
        }
    }

    /// An index computed from integers, taken modulo the length where it might exceed it.
    fn bounded_index(&mut self, length: i64) -> Value {
        let int = self.small_int();
        if int.min >= 0 && int.max < length {
            return int.value;
        }
        let limit = self.int(length);
        self.b().binary(Opcode::Urem, int.value, limit)
    }

    /// An index computed from a float: locally constant, so the float has no derivative through it.
    fn data_index(&mut self, length: i64) -> Value {
        self.note(Feature::DataIndex);
        let float = self.small(1);
        let square = self.b().binary(Opcode::Fmul, float, float);
        let whole = self.b().cast(Opcode::FptosiSat, square, Type::I64);
        let limit = self.int(length);
        self.b().binary(Opcode::Urem, whole, limit)
    }

    /// Single-precision arithmetic beside double precision.
    pub(crate) fn single_precision(&mut self) {
        self.note(Feature::Single);
        let single = Type::F32;
        let a = self.small(2);
        let mut a = self.b().cast(Opcode::Fptrunc, a, single);
        for _ in 0..self.random().between(1, 3) {
            let opcode =
                self.random()
                    .pick(&[Opcode::Sin, Opcode::Cos, Opcode::Tanh, Opcode::Atan]);
            a = match self.random().below(3) {
                0 => self.b().unary(opcode, a),
                1 => {
                    let b = self.small(1);
                    let b = self.b().cast(Opcode::Fptrunc, b, single);
                    let product = self.b().binary(Opcode::Fmul, a, b);
                    self.b().unary(Opcode::Tanh, product)
                }
                _ => {
                    let half = self.function.float(single, 0.5);
                    let scaled = self.b().binary(Opcode::Fmul, a, half);
                    self.b().binary(Opcode::Fadd, scaled, half)
                }
            };
        }
        let back = self.b().cast(Opcode::Fpext, a, Type::F64);
        self.add_float(back, SMALL);
    }

    /// A few operations on a vector of doubles.
    pub(crate) fn vector_operations(&mut self) {
        self.note(Feature::Vector);
        let lanes = self.random().pick(&[2u16, 4]);
        let ty = Type::vector_of(Scalar::F64, lanes);
        let source = self.pick_array(|array| {
            array.element == Element::Double && array.length >= i64::from(lanes)
        });
        let mut a = match source {
            Some(array) => {
                let position = self.random().between(0, array.length - i64::from(lanes));
                let position = self.int(position);
                let address = self.b().offset(array.pointer, position, 8);
                self.b()
                    .load(ty, address, ferrozyme_ir::Alignment::natural(Type::F64))
            }
            None => {
                let value = self.small(1);
                self.b().value(Opcode::Splat, &[value], Payload::None, ty)
            }
        };
        let b = self.small(1);
        let at = self.random().between(0, i64::from(lanes) - 1);
        let at = self.int(at);
        match self.random().below(3) {
            0 => {
                let b = self.b().value(Opcode::Splat, &[b], Payload::None, ty);
                a = self.b().binary(Opcode::Fmul, a, b);
            }
            1 => {
                a = self
                    .b()
                    .value(Opcode::Insert, &[a, b, at], Payload::None, ty)
            }
            _ => {
                let order: Vec<u16> = (0..lanes)
                    .map(|_| self.random().below(2 * usize::from(lanes)) as u16)
                    .collect();
                let b = self.b().value(Opcode::Splat, &[b], Payload::None, ty);
                let payload = Payload::Lanes(order.into());
                a = self.b().value(Opcode::Shuffle, &[a, b], payload, ty);
            }
        }
        let a = self.b().unary(Opcode::Sin, a);
        let target = self.pick_array(|array| {
            array.element == Element::Double && array.writable && array.length >= i64::from(lanes)
        });
        if let Some(array) = target
            && self.random().percent(40)
        {
            let align = ferrozyme_ir::Alignment::natural(Type::F64);
            self.b().store(a, array.pointer, align);
        }
        let result = if self.random().percent(50) {
            self.b()
                .value(Opcode::ReduceFadd, &[a], Payload::None, Type::F64)
        } else {
            self.b()
                .value(Opcode::Extract, &[a, at], Payload::None, Type::F64)
        };
        self.add_float(result, f64::from(lanes));
    }
}
