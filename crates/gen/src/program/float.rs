//! Float expressions that stay finite and moderate.
//!
//! Every function is applied within the domain that its row in the table tells, whatever its argument: `log` to 1 + a², `asin` to ¾·sin(a), and so on.
//! That also keeps the derivatives moderate, which finite differences need.

use super::scope::{Element, Float, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{Form, Interval, MathFunction, Opcode, Payload, Type, Value};

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

    /// A smooth function of floats, applied where the table says that it is smooth.
    fn mathematics(&mut self, levels: u32) -> Float {
        self.note(Feature::Math);
        let smooth: Vec<&MathFunction> = MathFunction::all()
            .filter(|function| !function.domain.is_empty())
            .collect();
        let function = self.random().pick(&smooth);
        let (mut operands, mut reached) = (Vec::new(), Vec::new());
        for (index, &interval) in function.domain.iter().enumerate() {
            if index == 1 && function.opcode.form() == Form::FloatAndInt {
                let (least, most) = (interval.0 as i64, interval.1 as i64);
                let n = self.random().between(least, most);
                operands.push(self.function.int(Type::I32, i128::from(n)));
                reached.push((n as f64, n as f64));
                continue;
            }
            let float = self.float(if index == 0 { levels } else { levels.min(1) });
            let (operand, limits) = self.brought_into(float, interval);
            operands.push(operand);
            reached.push(limits);
        }
        let bound = bound_of(function, &reached);
        if function.opcode.form() == Form::FloatPair {
            let types = [Type::F64, Type::F64];
            let op = self
                .b()
                .op(function.opcode, &operands, Payload::None, &types);
            let results = self.function.ops[op].results.clone();
            let value = self.b().binary(Opcode::Fmul, results[0], results[1]);
            return Float {
                value,
                bound: bound * bound,
            };
        }
        let value = self
            .b()
            .value(function.opcode, &operands, Payload::None, Type::F64);
        Float { value, bound }
    }

    /// A float in an interval that depends on another, and between which limits it is, about.
    fn brought_into(&mut self, float: Float, (low, high): Interval) -> (Value, Interval) {
        let a = float.value;
        if low.is_infinite() {
            return (a, (-float.bound, float.bound));
        }
        if high.is_infinite() {
            let square = self.b().binary(Opcode::Fmul, a, a);
            let limits = (low, low + float.bound * float.bound);
            return match low {
                0.0 => (square, limits),
                1.0 => (self.one_plus_square(a), limits),
                _ => (self.plus(square, low), limits),
            };
        }
        let (middle, radius) = ((low + high) / 2.0, (high - low) / 2.0);
        let unit = self
            .random()
            .pick(&[Opcode::Sin, Opcode::Cos, Opcode::Tanh]);
        let mut value = self.b().unary(unit, a);
        if radius != 1.0 {
            let radius = self.double(radius);
            value = self.b().binary(Opcode::Fmul, value, radius);
        }
        (self.plus(value, middle), (low, high))
    }

    fn plus(&mut self, value: Value, constant: f64) -> Value {
        if constant == 0.0 {
            return value;
        }
        let constant = self.double(constant);
        self.b().binary(Opcode::Fadd, value, constant)
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

/// About how large a function is at most for operands between limits.
fn bound_of(function: &MathFunction, limits: &[Interval]) -> f64 {
    const STEPS: u32 = 8;
    let step = |(low, high): Interval, k: u32| low + (high - low) * f64::from(k) / f64::from(STEPS);
    let mut points = vec![Vec::new()];
    for &interval in limits {
        let more = |point: &Vec<f64>| {
            let point = point.clone();
            (0..=STEPS).map(move |k| [&point[..], &[step(interval, k)]].concat())
        };
        points = points.iter().flat_map(more).collect();
    }
    let values = points.iter().map(|point| function.at(point).0.abs());
    let most = values.fold(0.0, f64::max) * 1.1 + 0.1;
    most.min(function.image.0.abs().max(function.image.1))
}
