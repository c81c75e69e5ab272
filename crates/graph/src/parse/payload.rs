//! Composes payloads from their parts in the text.

use crate::graph::Parameter;
use crate::interpret::from_bits;
use crate::opcode::{Opcode, PayloadKind};
use crate::payload::{Function, Indices, Literal, Padding, Payload, Reduction, Stretch};
use crate::types::TensorType;
use ferrozyme_ir::lexer::Token;
use ferrozyme_ir::literal::{parse_bits, parse_number, quiet_nan};
use ferrozyme_ir::{Scalar, float_to_bits};

/// An operation as far as it is known before its type has been read.
#[derive(Default)]
pub(super) struct Before<'t> {
    pub(super) parameter: Option<Parameter>,
    /// The numbers of a constant, and whether they are in brackets.
    pub(super) numbers: Vec<Token<'t>>,
    pub(super) in_brackets: bool,
    pub(super) number: u64,
    pub(super) string: String,
    pub(super) reduction: Option<Reduction>,
    pub(super) function: Option<Function>,
}

/// What stands behind the operands.
#[derive(Default)]
pub(super) struct After {
    /// The numbers of each element of a list, between its colons.
    pub(super) list: Vec<Vec<usize>>,
    pub(super) axis: usize,
    pub(super) indices: Option<Indices>,
}

impl Before<'_> {
    /// The numbers of a constant as elements of a type.
    pub(super) fn literal(&self, element: Scalar) -> Result<Literal, String> {
        let number = |token: &Token<'_>| {
            let raw = match token {
                Token::Hex(digits) => parse_bits(element, digits),
                Token::Number(digits) => parse_number(element, digits),
                Token::Word("nan") if element.is_float() => Ok(quiet_nan(element)),
                Token::Word("inf") if element.is_float() => {
                    Ok(float_to_bits(element, f64::INFINITY))
                }
                Token::Word("-inf") if element.is_float() => {
                    Ok(float_to_bits(element, f64::NEG_INFINITY))
                }
                other => Err(format!("{} is no {element}", other.describe())),
            };
            Ok::<f64, String>(from_bits(element, raw?))
        };
        if self.in_brackets {
            let values: Result<Vec<f64>, String> = self.numbers.iter().map(number).collect();
            return Ok(Literal::from(values?));
        }
        Ok(Literal::Splat(number(&self.numbers[0])?))
    }
}

/// The payload of an operation, given what stands before and after its operands, and the types of its results as far as they are written.
pub(super) fn payload(
    opcode: Opcode,
    before: Before<'_>,
    after: After,
    types: &[TensorType],
) -> Result<Payload, String> {
    let typed = || {
        let ty = types.first().cloned();
        ty.ok_or_else(|| {
            format!(
                "the type of the result of `{opcode}` must be written: it follows from nothing else"
            )
        })
    };
    let singles = || -> Result<Box<[usize]>, String> {
        let single = |numbers: &Vec<usize>| match numbers[..] {
            [number] => Ok(number),
            _ => Err("the list has numbers without colons".to_owned()),
        };
        after.list.iter().map(single).collect()
    };
    let colons = |default: usize| -> Result<Vec<[usize; 3]>, String> {
        let tuple = |numbers: &Vec<usize>| match numbers[..] {
            [a, b] => Ok([a, b, default]),
            [a, b, c] => Ok([a, b, c]),
            _ => Err("the list has two or three numbers with colons between".to_owned()),
        };
        after.list.iter().map(tuple).collect()
    };
    const MISSING: &str = "the operation is incomplete";
    Ok(match opcode.row().payload {
        PayloadKind::None => Payload::None,
        PayloadKind::Parameter => Payload::Parameter(before.parameter.ok_or(MISSING)?),
        PayloadKind::Constant => {
            let ty = typed()?;
            Payload::Constant(before.literal(ty.element)?, ty)
        }
        PayloadKind::Iota => Payload::Iota(before.number as usize, typed()?),
        PayloadKind::Random => Payload::Random(before.number, typed()?),
        PayloadKind::Feed => Payload::Feed(before.string.into(), typed()?),
        PayloadKind::Receive => Payload::Receive(before.string.into()),
        PayloadKind::Call => {
            typed()?;
            Payload::Call(before.string.into(), types.into())
        }
        PayloadKind::Type => Payload::Type(typed()?),
        PayloadKind::Permutation => Payload::Permutation(singles()?),
        PayloadKind::Broadcast => {
            let tuples = colons(0)?.into_iter();
            Payload::Broadcast(tuples.map(|[axis, size, _]| (axis, size)).collect())
        }
        PayloadKind::Slice => {
            let stretch = |[start, end, step]: [usize; 3]| Stretch { start, end, step };
            Payload::Slice(colons(1)?.into_iter().map(stretch).collect())
        }
        PayloadKind::Pad => {
            let padding = |[low, high, between]: [usize; 3]| Padding { low, high, between };
            Payload::Pad(colons(0)?.into_iter().map(padding).collect())
        }
        PayloadKind::Axis => Payload::Axis(after.axis),
        PayloadKind::Reduce => Payload::Reduce(before.reduction.ok_or(MISSING)?, singles()?),
        PayloadKind::Contract => Payload::Contract(after.indices.ok_or(MISSING)?),
        PayloadKind::Function => Payload::Function(before.function.ok_or(MISSING)?),
    })
}
