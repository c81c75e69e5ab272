//! Constants: making them and taking them apart.

use crate::context::{Context, copy_bytes};
use crate::opcode::GepFlags;
use crate::sys::{ValueRef, call};
use crate::types::{Type, TypeKind};
use crate::value::{Value, ValueKind};

impl<'c> Type<'c> {
    /// An integer constant of this type; bits beyond the width are dropped.
    pub fn constant(self, value: i128) -> Value<'c> {
        let width = self
            .integer_width()
            .unwrap_or_else(|| panic!("{self} is no integer type"));
        if width <= 64 {
            let kept = if width == 64 {
                value as u64
            } else {
                value as u64 & ((1 << width) - 1)
            };
            return Value::new(call!(LLVMConstInt(self.raw, kept, 0)));
        }
        let sign = if value < 0 { u64::MAX } else { 0 };
        let mut words = vec![sign; width.div_ceil(64) as usize];
        words[0] = value as u64;
        words[1] = (value >> 64) as u64;
        Value::new(call!(LLVMConstIntOfArbitraryPrecision(
            self.raw,
            words.len() as u32,
            words.as_ptr()
        )))
    }

    /// A floating-point constant of this type from its bits (of half, bfloat, float or double).
    pub fn float_from_bits(self, bits: u64) -> Value<'c> {
        assert!(self.is_float(), "{self} is no float type");
        Value::new(call!(LLVMConstFPFromBits(self.raw, &bits)))
    }

    /// The floating-point constant of this type nearest to a value.
    pub fn float_constant(self, value: f64) -> Value<'c> {
        assert!(self.is_float(), "{self} is no float type");
        match self.kind() {
            TypeKind::Double => self.float_from_bits(value.to_bits()),
            TypeKind::Float => self.float_from_bits(u64::from((value as f32).to_bits())),
            _ => Value::new(call!(LLVMConstReal(self.raw, value))),
        }
    }

    /// A constant array with elements of this type.
    pub fn array_constant(self, elements: &[Value<'c>]) -> Value<'c> {
        let mut raw = raw_of(elements);
        Value::new(call!(LLVMConstArray2(
            self.raw,
            raw.as_mut_ptr(),
            raw.len() as u64
        )))
    }

    /// A constant of this struct type.
    pub fn struct_constant(self, fields: &[Value<'c>]) -> Value<'c> {
        assert_eq!(self.kind(), TypeKind::Struct, "{self} is no struct");
        let mut raw = raw_of(fields);
        Value::new(call!(LLVMConstNamedStruct(
            self.raw,
            raw.as_mut_ptr(),
            raw.len() as u32
        )))
    }
}

fn raw_of(values: &[Value<'_>]) -> Vec<ValueRef> {
    values.iter().map(|value| value.raw()).collect()
}

impl Context {
    /// `[N x i8] c"…"`, without a zero at its end.
    pub fn bytes(&self, bytes: &[u8]) -> Value<'_> {
        Value::new(call!(LLVMConstStringInContext2(
            self.raw,
            bytes.as_ptr().cast(),
            bytes.len(),
            1
        )))
    }

    /// A constant `{ fields }`.
    pub fn struct_constant<'c>(&'c self, fields: &[Value<'c>], packed: bool) -> Value<'c> {
        let mut raw = raw_of(fields);
        Value::new(call!(LLVMConstStructInContext(
            self.raw,
            raw.as_mut_ptr(),
            raw.len() as u32,
            packed.into()
        )))
    }

    /// A constant vector.
    pub fn vector_constant<'c>(&'c self, lanes: &[Value<'c>]) -> Value<'c> {
        let mut raw = raw_of(lanes);
        Value::new(call!(LLVMConstVector(raw.as_mut_ptr(), raw.len() as u32)))
    }

    /// `true` or `false`.
    pub fn boolean(&self, value: bool) -> Value<'_> {
        self.integer(1).constant(value.into())
    }
}

impl<'c> Value<'c> {
    /// The value of an integer constant of at most 128 bits, sign-extended.
    pub fn as_signed(self) -> Option<i128> {
        let width = self.constant_width()?;
        if width <= 64 {
            return Some(i128::from(call!(LLVMConstIntGetSExtValue(self.raw()))));
        }
        let bits = self.wide_bits(width)?;
        Some((bits << (128 - width)) as i128 >> (128 - width))
    }

    /// The value of an integer constant of at most 64 bits, zero-extended.
    pub fn as_unsigned(self) -> Option<u64> {
        let width = self.constant_width()?;
        if width <= 64 {
            return Some(call!(LLVMConstIntGetZExtValue(self.raw())));
        }
        u64::try_from(self.wide_bits(width)?).ok()
    }

    /// The bits of an integer constant of at most 128 bits, zero-extended.
    pub fn as_bits(self) -> Option<u128> {
        let width = self.constant_width()?;
        if width <= 64 {
            Some(u128::from(call!(LLVMConstIntGetZExtValue(self.raw()))))
        } else {
            self.wide_bits(width)
        }
    }

    fn constant_width(self) -> Option<u32> {
        if self.kind() == ValueKind::ConstantInteger {
            self.ty().integer_width()
        } else {
            None
        }
    }

    /// The C interface reads at most 64 bits of a constant; wider ones are read from their text, `i128 -5`.
    fn wide_bits(self, width: u32) -> Option<u128> {
        if width > 128 {
            return None;
        }
        let printed = self.to_string();
        let digits = printed.rsplit(' ').next()?;
        let value = match digits.strip_prefix('-') {
            Some(magnitude) => magnitude.parse::<u128>().ok()?.wrapping_neg(),
            None => digits.parse::<u128>().ok()?,
        };
        Some(if width == 128 {
            value
        } else {
            value & ((1 << width) - 1)
        })
    }

    /// The bits of a floating-point constant of type half, bfloat, float or double.
    pub fn as_float_bits(self) -> Option<u64> {
        if self.kind() != ValueKind::ConstantFloat {
            return None;
        }
        // As the only element of an array the constant shows its bytes as they are, also those of a NaN, which a conversion to double would change.
        let array = self.ty().array_constant(&[self]);
        let bytes = array.raw_bytes()?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
        )
    }

    /// The value of a floating-point constant of type half, bfloat, float or double.
    pub fn as_float(self) -> Option<f64> {
        if self.kind() != ValueKind::ConstantFloat {
            return None;
        }
        let mut loses = 0;
        let value = call!(LLVMConstRealGetDouble(self.raw(), &mut loses));
        (loses == 0 || value.is_nan()).then_some(value)
    }

    /// Whether it is zero, null, or an aggregate of them.
    pub fn is_zero(self) -> bool {
        call!(LLVMIsNull(self.raw())) != 0
    }

    /// Whether it is `undef` or `poison`.
    pub fn is_undef(self) -> bool {
        matches!(self.kind(), ValueKind::Undef | ValueKind::Poison)
    }

    /// The bytes of a constant array or vector of numbers (`[3 x i8] c"abc"`, `[2 x double] […]`), in the order of memory of this little-endian machine.
    pub fn raw_bytes(self) -> Option<&'c [u8]> {
        if !matches!(
            self.kind(),
            ValueKind::ConstantDataArray | ValueKind::ConstantDataVector
        ) {
            return None;
        }
        let mut length = 0;
        let start = call!(LLVMGetRawDataValues(self.raw(), &mut length));
        Some(copy_bytes(start, length))
    }

    /// An element of a constant aggregate of any form: array, struct, vector, zero, undef, data.
    pub fn element(self, index: u32) -> Option<Value<'c>> {
        if !self.is_constant() || self.is_global() {
            return None;
        }
        Value::maybe(call!(LLVMGetAggregateElement(self.raw(), index)))
    }

    /// `getelementptr` on constants.
    pub fn constant_gep(
        self,
        source: Type<'c>,
        indices: &[Value<'c>],
        flags: GepFlags,
    ) -> Value<'c> {
        let mut raw = raw_of(indices);
        Value::new(call!(LLVMConstGEPWithNoWrapFlags(
            source.raw,
            self.raw(),
            raw.as_mut_ptr(),
            raw.len() as u32,
            flags.0
        )))
    }

    /// `ptrtoint` on constants.
    pub fn constant_to_integer(self, integer: Type<'c>) -> Value<'c> {
        Value::new(call!(LLVMConstPtrToInt(self.raw(), integer.raw)))
    }

    /// `inttoptr` on constants.
    pub fn constant_to_pointer(self, pointer: Type<'c>) -> Value<'c> {
        Value::new(call!(LLVMConstIntToPtr(self.raw(), pointer.raw)))
    }
}
