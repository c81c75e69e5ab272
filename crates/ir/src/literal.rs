//! Prints and parses numbers, names and strings of the text form.
//!
//! What is written here reads back as exactly the same bits: floats as the shortest decimal that does, NaNs other than
//! the usual quiet one as raw bits.

use crate::function::{float_from_bits, float_to_bits, ones, sign_extend};
use crate::types::Scalar;
use std::fmt::{self, Write};

/// Writes the bits of one scalar constant.
pub fn write_scalar(out: &mut String, scalar: Scalar, raw: u128) -> fmt::Result {
    match scalar {
        // One bit is a condition: 1 reads better than the -1 that it is as a signed number.
        Scalar::Int(0 | 1) => write!(out, "{raw}"),
        Scalar::Int(bits @ 2..=128) => write!(out, "{}", sign_extend(raw, u32::from(bits))),
        Scalar::Int(_) => write!(out, "{raw:#x}"),
        Scalar::Ptr if raw == 0 => out.write_str("null"),
        Scalar::Ptr => write!(out, "{raw:#x}"),
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => write_float(out, scalar, raw),
    }
}

fn write_float(out: &mut String, scalar: Scalar, raw: u128) -> fmt::Result {
    let value = float_from_bits(scalar, raw).unwrap_or(f64::NAN);
    if raw == quiet_nan(scalar) {
        return out.write_str("nan");
    }
    if value.is_nan() {
        // Two hexadecimal digits for each byte, and the two characters of the prefix.
        let width = 2 + 2 * scalar.bytes() as usize;
        return write!(out, "{raw:#0width$x}");
    }
    match scalar {
        Scalar::F32 => write!(out, "{:?}", f32::from_bits(raw as u32)),
        Scalar::F64 => write!(out, "{value:?}"),
        _ => write!(out, "{:?}", shortest_double(scalar, raw, value)),
    }
}

/// The double with the fewest decimal digits that rounds to these bits.
fn shortest_double(scalar: Scalar, raw: u128, value: f64) -> f64 {
    // Five digits tell all half-precision floats apart, and so do they for brain floats.
    (0..6)
        .filter_map(|digits| format!("{value:.digits$e}").parse::<f64>().ok())
        .find(|&candidate| float_to_bits(scalar, candidate) == raw)
        .unwrap_or(value)
}

/// The bits of the NaN that is written `nan`.
pub fn quiet_nan(scalar: Scalar) -> u128 {
    match scalar {
        Scalar::F16 => 0x7e00,
        Scalar::Bf16 => 0x7fc0,
        Scalar::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

/// The bits of a decimal number (`-3`, `1.5e-7`) as a scalar of this type, or why it is none.
pub fn parse_number(scalar: Scalar, text: &str) -> Result<u128, String> {
    match scalar {
        Scalar::Int(bits) => {
            let bits = u32::from(bits);
            let Some((negative, magnitude)) = parse_integer(text) else {
                return Err(format!("`{text}` is not a constant of type {scalar}"));
            };
            let limit = if negative {
                1 << (bits - 1)
            } else {
                ones(bits)
            };
            if magnitude > limit {
                return Err(format!("{text} does not fit in {scalar}"));
            }
            let value = if negative {
                magnitude.wrapping_neg()
            } else {
                magnitude
            };
            Ok(value & ones(bits))
        }
        Scalar::Ptr => Err(format!(
            "`{text}` is not an address: write `null`, `@name` or the bits as `0x…`"
        )),
        Scalar::F32 => match text.parse::<f32>() {
            Ok(value) if value.is_finite() => Ok(u128::from(value.to_bits())),
            _ => Err(format!("{text} does not fit in {scalar}")),
        },
        Scalar::F16 | Scalar::Bf16 | Scalar::F64 => {
            let raw = text.parse().map(|value| float_to_bits(scalar, value));
            match raw {
                Ok(raw) if float_from_bits(scalar, raw).is_some_and(f64::is_finite) => Ok(raw),
                _ => Err(format!("{text} does not fit in {scalar}")),
            }
        }
    }
}

/// The bits of hexadecimal digits as a scalar of this type, or why they are none.
pub fn parse_bits(scalar: Scalar, digits: &str) -> Result<u128, String> {
    match u128::from_str_radix(digits, 16) {
        Ok(raw) if raw <= ones(scalar.bits()) => Ok(raw),
        _ => Err(format!("0x{digits} does not fit in {scalar}")),
    }
}

/// The sign and magnitude of a decimal whole number.
pub fn parse_integer(text: &str) -> Option<(bool, u128)> {
    match text.strip_prefix('-') {
        Some(magnitude) => Some((true, magnitude.parse().ok()?)),
        None => Some((false, text.parse().ok()?)),
    }
}

/// Whether a character may occur in a name that is not quoted.
pub fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '.' | '\'' | '$')
}

/// Writes the name of a value (`%x`) or symbol (`@f`), quoted where it has unusual characters.
pub fn write_name(out: &mut String, sigil: char, name: &str) -> fmt::Result {
    out.write_char(sigil)?;
    if !name.is_empty() && name.chars().all(is_name_character) {
        out.write_str(name)
    } else {
        write_string(out, name)
    }
}

/// Writes a string in quotes.
pub fn write_string(out: &mut String, string: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in string.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            control if control.is_control() => write!(out, "\\u{{{:x}}}", control as u32)?,
            other => out.write_char(other)?,
        }
    }
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(scalar: Scalar, raw: u128) -> String {
        let mut out = String::new();
        write_scalar(&mut out, scalar, raw).unwrap();
        out
    }

    /// Reads what `write_float` writes.
    fn read(scalar: Scalar, text: &str) -> u128 {
        match text {
            "nan" => quiet_nan(scalar),
            "inf" => float_to_bits(scalar, f64::INFINITY),
            "-inf" => float_to_bits(scalar, f64::NEG_INFINITY),
            _ => match text.strip_prefix("0x") {
                Some(digits) => parse_bits(scalar, digits).unwrap(),
                None => parse_number(scalar, text).unwrap(),
            },
        }
    }

    #[test]
    fn all_short_floats_read_back() {
        for scalar in [Scalar::F16, Scalar::Bf16] {
            for raw in 0..=u128::from(u16::MAX) {
                let written = text(scalar, raw);
                assert_eq!(read(scalar, &written), raw, "{scalar} {written}");
                assert!(
                    written.contains(['.', 'e', 'n', 'x']),
                    "{written} looks like an integer"
                );
            }
        }
    }

    #[test]
    fn long_floats_read_back() {
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            for (scalar, raw) in [
                (Scalar::F64, u128::from(state)),
                (Scalar::F32, u128::from(state >> 32)),
            ] {
                let written = text(scalar, raw);
                assert_eq!(read(scalar, &written), raw, "{scalar} {written}");
            }
        }
    }

    #[test]
    fn floats_are_short() {
        assert_eq!(text(Scalar::F16, float_to_bits(Scalar::F16, 0.1)), "0.1");
        assert_eq!(
            text(Scalar::Bf16, float_to_bits(Scalar::Bf16, 1e30)),
            "1e30"
        );
        assert_eq!(text(Scalar::F32, float_to_bits(Scalar::F32, 0.1)), "0.1");
        assert_eq!(text(Scalar::F64, float_to_bits(Scalar::F64, -0.0)), "-0.0");
        assert_eq!(
            text(Scalar::F64, 0x7ff8_0000_0000_0001),
            "0x7ff8000000000001"
        );
        assert_eq!(text(Scalar::F16, 0xfe00), "0xfe00");
    }

    #[test]
    fn integers_have_limits() {
        assert_eq!(parse_number(Scalar::Int(8), "-128"), Ok(0x80));
        assert_eq!(parse_number(Scalar::Int(8), "255"), Ok(0xff));
        assert!(parse_number(Scalar::Int(8), "256").is_err());
        assert!(parse_number(Scalar::Int(8), "-129").is_err());
        assert_eq!(
            parse_number(Scalar::Int(128), &i128::MIN.to_string()),
            Ok(1 << 127)
        );
        assert!(parse_number(Scalar::Int(64), "1.5").is_err());
        assert!(parse_number(Scalar::F64, "1e400").is_err());
    }
}
