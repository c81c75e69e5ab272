//! Integers that stay in known limits, indices that stay within their arrays, and conditions.

use super::scope::Int;
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{FloatPredicate, IntPredicate, Opcode, Type, Value};

impl Writer<'_, '_> {
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
}
