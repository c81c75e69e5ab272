//! Numbers as whole parts of a size that is a power of two, and a rest: `n lshr 4`, `n and -16`, `n and 15`.
//!
//! Where lengths of memory are masked, LLVM leaves the highest bits out of the mask, since it knows that lengths have none there. It is taken
//! for granted here that what is masked so is such a length: no memory holds 2⁵⁷ numbers.

use ferrozyme_ir::{Function, Opcode, Value};

/// The operands of an operation with a constant, if that is what gives a value.
pub(crate) fn with_constant(
    function: &Function,
    value: Value,
    opcode: Opcode,
) -> Option<(Value, i128)> {
    let (op, _) = function.def_op(value)?;
    let data = &function.ops[op];
    if data.opcode != opcode {
        return None;
    }
    Some((data.operands[0], function.int_of(data.operands[1])?))
}

/// How many whole parts of what a value counts: the number, and the size of a part as a power of two. Any number counts its parts of size 1.
pub(crate) fn parts_of(function: &Function, value: Value) -> (Value, u32) {
    match with_constant(function, value, Opcode::Lshr) {
        Some((number, bits @ 0..63)) => match rounded_down(function, number) {
            Some((number, size)) if i128::from(size) == bits => (number, size),
            _ => (number, bits as u32),
        },
        _ => (value, 0),
    }
}

/// What a value is rounded down from, to whole parts of which size as a power of two.
pub(crate) fn rounded_down(function: &Function, value: Value) -> Option<(Value, u32)> {
    let (number, mask) = with_constant(function, value, Opcode::And)?;
    let mask = mask as u64;
    let low = mask.trailing_zeros().min(63);
    let ones = (mask >> low).trailing_ones();
    let whole = low > 0 && mask.count_ones() == ones && low + ones >= 57;
    whole.then_some((number, low))
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
    use super::{parts_of, rest_of, rounded_down};
    use ferrozyme_ir::parse_module;

    #[test]
    fn parts_and_rests() {
        let module = parse_module(
            "func @f(%n: i64) -> () {
               %m = mul i64 %n, 4
               %a = and i64 %n, 15
               %b = and i64 %m, 12
               %c = and i64 %n, 12
               %d = and i64 %n, 2305843009213693936
               %e = lshr exact i64 %d, 4
               %f = lshr i64 %n, 4
               %g = and i64 %n, 1048560
               return
             }",
        )
        .unwrap();
        let function = &module.functions[module.function_named("f").unwrap()];
        let results: Vec<_> = function.regions[function.body()].ops[..8]
            .iter()
            .map(|&op| function.ops[op].results[0])
            .collect();
        let n = function.arguments()[0];
        assert_eq!(rest_of(function, results[1]), Some((n, 4)));
        assert_eq!(rest_of(function, results[2]), Some((results[0], 4)));
        assert_eq!(rest_of(function, results[3]), None);
        assert_eq!(rounded_down(function, results[4]), Some((n, 4)));
        assert_eq!(parts_of(function, results[5]), (n, 4));
        assert_eq!(parts_of(function, results[6]), (n, 4));
        assert_eq!(rounded_down(function, results[7]), None);
    }
}
