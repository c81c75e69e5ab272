//! Quotient and remainder of a division by a power of two: `n lshr 4`, `n and -16`, `n and 15`.
//!
//! If LLVM masks the length of some memory, it leaves the highest bits out of the mask, since it knows that they are zero. The program no longer
//! shows that, so it must be proved again before such a number counts as a quotient: from its interval, or because that much memory is read.

use crate::indices::Indices;
use crate::interval::Interval;
use ferrozyme_ir::{Function, OpView, Opcode, Value, returning_ops};
use rustc_hash::FxHashMap;

/// The operands of an operation with a constant, if that is what gives a value.
pub(crate) fn with_constant(
    function: &Function,
    value: Value,
    opcode: Opcode,
) -> Option<(Value, i128)> {
    match function.definition(value)? {
        OpView::Binary(other, a, b) if other == opcode => Some((a, function.int_of(b)?)),
        _ => None,
    }
}

/// A number rounded down to whole parts of a size that is a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rounded {
    /// What is rounded.
    pub number: Value,
    /// The size of a part as a power of two.
    pub size: u32,
    /// Whether nothing is dropped but the rest.
    pub is_whole: bool,
    /// Whether nothing is dropped but the rest if the number counts things that lie in memory.
    pub is_whole_in_memory: bool,
}

/// No memory has more bits than this in its addresses.
const ADDRESS_BITS: u32 = 57;

/// All rounded numbers of a function.
pub(crate) struct WholeParts {
    rounded: FxHashMap<Value, Rounded>,
}

impl WholeParts {
    pub(crate) fn of(indices: &Indices<'_>) -> WholeParts {
        let function = indices.function();
        let rounded = returning_ops(function)
            .into_iter()
            .filter_map(|op| {
                let value = *function.ops[op].results.first()?;
                Some((value, rounded_down(indices, value)?))
            })
            .collect();
        WholeParts { rounded }
    }

    /// What a value is rounded down from, to whole parts of which size.
    pub(crate) fn rounded_down(&self, value: Value) -> Option<Rounded> {
        self.rounded.get(&value).copied()
    }

    /// How many whole parts of what a value counts: the number, and the size of a part as a power of two. Any number counts its parts of size 1.
    pub(crate) fn parts_of(&self, function: &Function, value: Value) -> (Value, u32) {
        match with_constant(function, value, Opcode::Lshr) {
            Some((number, bits @ 0..63)) => match self.rounded_down(number) {
                Some(rounded) if i128::from(rounded.size) == bits && rounded.is_whole => {
                    (rounded.number, rounded.size)
                }
                _ => (number, bits as u32),
            },
            _ => (value, 0),
        }
    }
}

fn rounded_down(indices: &Indices<'_>, value: Value) -> Option<Rounded> {
    let (number, mask) = with_constant(indices.function(), value, Opcode::And)?;
    let mask = mask as u64;
    let size = mask.trailing_zeros().min(63);
    let kept = size + (mask >> size).trailing_ones();
    let interval = indices.interval_of_value(number);
    let rounds = size > 0 && mask.count_ones() + size == kept;
    rounds.then_some(Rounded {
        number,
        size,
        is_whole: kept == 64 || interval.is_within(Interval::new(0, (1 << kept) - 1)),
        is_whole_in_memory: kept >= ADDRESS_BITS,
    })
}

/// What a value is the rest of, less than one part of which size as a power of two.
pub(crate) fn rest_of(function: &Function, value: Value) -> Option<(Value, u32)> {
    let (number, mask) = with_constant(function, value, Opcode::And)?;
    let mask = u64::try_from(mask).ok()?;
    // Bits that are zero in any case may be missing.
    let zeros = mask.trailing_zeros().min(63);
    let size = zeros + (mask >> zeros).trailing_ones();
    let rest = mask.count_ones() + zeros == size && zeros <= trailing_zeros(function, number);
    (rest && (1..63).contains(&size)).then_some((number, size))
}

/// How many of the lowest bits of a number are surely zero.
fn trailing_zeros(function: &Function, value: Value) -> u32 {
    if let Some((_, factor)) = with_constant(function, value, Opcode::Mul) {
        factor.trailing_zeros()
    } else if let Some((_, bits)) = with_constant(function, value, Opcode::Shl) {
        bits.clamp(0, 63) as u32
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::{WholeParts, rest_of};
    use crate::indices::Indices;
    use ferrozyme_ir::parse_module;

    #[test]
    fn parts_and_rests() {
        let module = parse_module(
            "func @f(%n: i64, %few: i64 range 0..=1000000) -> () {
               %m = mul i64 %n, 4
               %a = and i64 %n, 15
               %b = and i64 %m, 12
               %c = and i64 %n, 12
               %d = and i64 %n, 2305843009213693936
               %e = lshr exact i64 %d, 4
               %f = lshr i64 %n, 4
               %g = and i64 %n, 1048560
               %h = and i64 %few, 1048560
               %i = lshr exact i64 %h, 4
               %j = and i64 %n, -16
               %k = and i64 %n, -15
               return
             }",
        )
        .unwrap();
        let function = &module.functions[module.function_named("f").unwrap()];
        let results: Vec<_> = function.regions[function.body()].ops[..12]
            .iter()
            .map(|&op| function.ops[op].results[0])
            .collect();
        let (n, few) = (function.arguments()[0], function.arguments()[1]);
        assert_eq!(rest_of(function, results[1]), Some((n, 4)));
        assert_eq!(rest_of(function, results[2]), Some((results[0], 4)));
        assert_eq!(rest_of(function, results[3]), None);

        let parts = WholeParts::of(&Indices::of(function));
        let rounded = |index: usize| {
            let rounded = parts.rounded_down(results[index])?;
            Some((
                (rounded.number, rounded.size),
                (rounded.is_whole, rounded.is_whole_in_memory),
            ))
        };
        assert_eq!(rounded(4), Some(((n, 4), (false, true))));
        assert_eq!(rounded(7), Some(((n, 4), (false, false))));
        assert_eq!(rounded(8), Some(((few, 4), (true, false))));
        assert_eq!(rounded(10), Some(((n, 4), (true, true))));
        assert_eq!(rounded(11), None);
        assert_eq!(parts.parts_of(function, results[5]), (results[4], 4));
        assert_eq!(parts.parts_of(function, results[6]), (n, 4));
        assert_eq!(parts.parts_of(function, results[9]), (few, 4));
    }
}
