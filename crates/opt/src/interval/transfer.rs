//! What integer operations make of the intervals of their operands.

use super::{Interval, gcd};
use ferrozyme_ir::{Flags, Function, OpData, Opcode};

/// What an operation with one integer result gives; none if that may be anything of its type.
pub fn transfer(function: &Function, data: &OpData, operands: &[Interval]) -> Option<Interval> {
    let bits = function.ty(data.results[0]).scalar().bits();
    let nsw = data.flags.contains(Flags::NSW);
    let of_type = Interval::of_bits(bits);
    match (data.opcode, operands) {
        (Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Shl, &[a, b]) => {
            let result = exact(data.opcode, a, b)?;
            // What is left of a number that is not negative.
            let left = data.opcode == Opcode::Sub && data.flags.contains(Flags::NUW);
            let result = match left && a.min >= 0 {
                true => result.intersect(Interval::new(0, a.max)),
                false => result,
            };
            Some(result.fitted(bits, nsw))
        }
        (Opcode::Select, &[_, a, b]) => Some(a.union(b)),
        (Opcode::Zext, &[a]) if a.min < 0 => {
            Some(a.unsigned(function.ty(data.operand()).scalar().bits()))
        }
        (Opcode::Zext | Opcode::Sext, &[a]) => Some(a),
        (Opcode::TruncInt, &[a]) => Some(a.fitted(bits, nsw)),
        (Opcode::Smin, &[a, b]) => {
            Some((a.union(b)).intersect(Interval::new(a.min.min(b.min), a.max.min(b.max))))
        }
        (Opcode::Smax, &[a, b]) => {
            Some((a.union(b)).intersect(Interval::new(a.min.max(b.min), a.max.max(b.max))))
        }
        // Negative numbers are the largest: what is below one of at most `max` is not negative.
        (Opcode::Umin, &[a, b]) => Some(match limit_without_sign(a, b) {
            Some(limit) => a.union(b).intersect(Interval::new(0, limit)),
            None => a.union(b),
        }),
        (Opcode::Umax, &[a, b]) => Some(match a.min >= 0 && b.min >= 0 {
            true => (a.union(b)).intersect(Interval::new(a.min.max(b.min), a.max.max(b.max))),
            false => a.union(b),
        }),
        // The low bits that are zero on one side are zero in the result.
        (Opcode::And, &[a, b]) => {
            let zeros = a
                .divisor()
                .trailing_zeros()
                .max(b.divisor().trailing_zeros());
            let multiples = Interval {
                step: 1 << zeros.min(bits).min(100),
                ..Interval::point(0)
            };
            let limit = limit_without_sign(a, b);
            Some(multiples.spread_over(limit.map_or(of_type, |limit| Interval::new(0, limit))))
        }
        (Opcode::Urem | Opcode::Srem, &[a, b]) if b.min > 0 => Some(match a.min >= 0 {
            true if a.max < b.min => a,
            true => {
                let step = b
                    .as_point()
                    .map_or(1, |by| gcd(a.divisor(), by.unsigned_abs()));
                Interval {
                    step,
                    ..Interval::point(0)
                }
                .spread_over(Interval::new(0, a.max.min(b.max - 1)))
            }
            // It is below the divisor, and has the sign of what is divided.
            false if data.opcode == Opcode::Srem => Interval::new(1 - b.max, b.max - 1),
            false => Interval::new(0, b.max - 1),
        }),
        (Opcode::Udiv | Opcode::Sdiv, &[a, b]) if a.min >= 0 && b.min > 0 => {
            Some(Interval::new(a.min / b.max, a.upper()? / b.min))
        }
        // Whatever the divisor is, unsigned.
        (Opcode::Udiv, &[a, _]) if a.min >= 0 => Some(Interval::new(0, a.max)),
        (Opcode::Lshr | Opcode::Ashr, &[a, b]) => {
            let by = b
                .as_point()
                .filter(|&by| (0..i128::from(bits)).contains(&by))?;
            // A negative number counts as 2^bits more where zeros come in from above.
            let a = match data.opcode == Opcode::Lshr && a.min < 0 {
                true if bits > 64 => return None,
                true => a.unsigned(bits),
                false => a,
            };
            (a.lower().is_some() && a.upper().is_some())
                .then(|| a.shifted_down(by as u32).fitted(bits, false))
        }
        (Opcode::Ctpop | Opcode::Ctlz | Opcode::Cttz, _) if bits >= 8 => {
            Some(Interval::new(0, i128::from(bits)))
        }
        _ => None,
    }
}

/// The interval of a sum, difference, product or shift as if integers had no limit.
pub(crate) fn exact(opcode: Opcode, a: Interval, b: Interval) -> Option<Interval> {
    match opcode {
        Opcode::Add => Some(a + b),
        Opcode::Sub => Some(a + -b),
        Opcode::Mul => Some(a * b),
        Opcode::Shl => {
            let by = b.as_point().filter(|by| (0..64).contains(by))?;
            Some(a * Interval::point(1 << by))
        }
        _ => None,
    }
}

/// The largest number that is, without sign, not above either of two, where that is not negative.
fn limit_without_sign(a: Interval, b: Interval) -> Option<i128> {
    let limits = [a, b].into_iter().filter(|one| one.min >= 0);
    limits.map(|one| one.max).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::interpret::{Bits, evaluate};
    use ferrozyme_ir::{Form, Type, ones, parse_module, returning_ops, sign_extend};

    /// Rows of bytes with ends and steps that are likely to be special.
    fn rows() -> Vec<Interval> {
        let ends = [-128, -127, -64, -9, -1, 0, 1, 3, 8, 100, 127];
        let mut rows = vec![Interval::of_bits(8)];
        for (&min, &max) in ends
            .iter()
            .flat_map(|min| ends.iter().map(move |max| (min, max)))
        {
            for step in [1, 3, 8, 16] {
                let row = Interval {
                    step,
                    ..Interval::point(min)
                };
                if min <= max {
                    rows.push(row.spread_over(Interval::new(min, max)));
                }
            }
        }
        rows
    }

    /// A few numbers of a row, both ends among them.
    fn sample(row: Interval) -> impl Iterator<Item = i128> {
        let count = (row.max - row.min) / row.step.max(1) as i128;
        [0, 1, 2, count / 3, count / 2, count - 1, count]
            .into_iter()
            .map(move |index| row.min + index.clamp(0, count) * row.step as i128)
    }

    fn check(text: &str) {
        let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let function = module.functions.values().next().expect("a function");
        let data = &function.ops[returning_ops(function)[0]];
        let types: Vec<Type> = data
            .operands
            .iter()
            .map(|&value| function.ty(value))
            .collect();
        let to = function.ty(data.results[0]);
        let rows = rows();
        for (index, &a) in rows.iter().enumerate() {
            // All pairs would take long.
            for &b in rows.iter().skip(index % 7).step_by(7) {
                let operands = &[a, b][..types.len()];
                let Some(claimed) = transfer(function, data, operands) else {
                    continue;
                };
                for (x, y) in sample(a).flat_map(|x| sample(b).map(move |y| (x, y))) {
                    let bits = [x, y].map(|number| Bits::Scalar(number as u128 & ones(8)));
                    let bits: Vec<&Bits> = bits.iter().take(types.len()).collect();
                    let result =
                        evaluate(data.opcode, &data.payload, data.flags, &types, &bits, &[to]);
                    if let Ok(results) = result
                        && let Bits::Scalar(raw) = results[0]
                    {
                        let number = sign_extend(raw, to.scalar().bits());
                        assert!(
                            claimed.cut(number, number) == Some(Interval::point(number)),
                            "{text}: {x}, {y} gives {number}; {a:?}, {b:?} gives {claimed:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn results_lie_where_they_are_said_to() {
        let binary = |opcode: &&Opcode| opcode.form() == Form::IntBinary;
        for opcode in Opcode::ALL.iter().filter(binary) {
            for flags in ["", "nsw ", "nuw ", "nsw nuw "] {
                let name = opcode.name();
                let takes_flags = matches!(name, "add" | "sub" | "mul" | "shl");
                if flags.is_empty() || takes_flags {
                    check(&format!(
                        "func @f(%a: i8, %b: i8) -> (i8) {{\n%r = {name} {flags}i8 %a, %b\nreturn %r\n}}"
                    ));
                }
            }
        }
        for (cast, to) in [("zext", "i16"), ("sext", "i16"), ("trunc_int", "i4")] {
            check(&format!(
                "func @f(%a: i8) -> ({to}) {{\n%r = {cast} i8 %a to {to}\nreturn %r\n}}"
            ));
        }
    }
}
