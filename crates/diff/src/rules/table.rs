//! The table itself: one rule for each operation of the IR.
//!
//! Its rows are complete: the `match` has no default, so that a new operation does not compile without its rule.
//! Where formulas for a derivative differ in what they read, the table has the one that reads fewest values (`exp` and
//! `sqrt` read their result), unless that costs accuracy. Products are written so that factors which partial
//! derivatives share come first: what is emitted computes them once.
//!
//! Conventions where there is no derivative, or more than one: `√` at 0 has derivative 0; a tie of `fmax` goes to the
//! first operand, a tie of `fmin` to the second; `|x|` at a zero has the sign of that zero as its derivative, which is the side that the zero comes from; `0^y` for `y ≥ 0` does not vary with `y`;
//! `hypot` at the origin has derivative 0. Where one operand of `fmin` or `fmax` is NaN, the other is the result and gets the
//! derivative. Elsewhere the formula is evaluated as it stands, and infinity or NaN says that there is no derivative.

use super::formula::*;
use super::{Rule, Zero};
use ferrozyme_ir::Opcode;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, LOG2_E, LOG10_E};
use std::sync::LazyLock;

/// The rule of an operation.
pub fn rule(opcode: Opcode) -> &'static Rule {
    static TABLE: LazyLock<Vec<Rule>> =
        LazyLock::new(|| Opcode::ALL.iter().map(|&opcode| row(opcode)).collect());
    // The variants of the enum and `ALL` follow the order of the same table.
    &TABLE[opcode as usize]
}

fn row(opcode: Opcode) -> Rule {
    use Opcode::*;
    match opcode {
        // ---- arithmetic
        Fadd => partials([ONE, ONE]),
        Fsub => partials([ONE, -ONE]),
        Fmul => partials([Y, X]),
        Fdiv => partials([1.0 / Y, (1.0 / Y) * -R]),
        // x - r is the multiple of y that was taken away. The quotient x / y computed anew could round to another one.
        Frem | Remainder => partials([ONE, round_even((R - X) / Y)]),
        Fneg => partials([-ONE]),
        Fma => partials([Y, X, ONE]),
        Fmax => choice(or(at_least(X, Y), is_nan(Y))),
        Fmin => choice(or(less(X, Y), is_nan(Y))),
        Fmaximum => choice(at_least(X, Y)),
        Fminimum => choice(less(X, Y)),
        Fabs => partials([copysign(1.0, X)]),
        Copysign => partials([copysign(1.0, Y) * copysign(1.0, X), ZERO]),
        Fdim => partials([
            where_(greater(X, Y), ONE, ZERO),
            where_(greater(X, Y), -ONE, ZERO),
        ]),
        Nextafter => partials([ONE, ZERO]),

        // ---- powers and logarithms
        Sqrt => partials([where_(equal(R, 0.0), ZERO, 0.5 / R)]),
        Cbrt => partials([1.0 / (3.0 * R * R)]),
        Hypot => partials([inverse_or_zero(R) * X, inverse_or_zero(R) * Y]),
        Exp => partials([R]),
        Exp2 => partials([R * LN_2]),
        Exp10 => partials([R * LN_10]),
        // Not r + 1, which is 0 where the derivative is small.
        Expm1 => partials([exp(X)]),
        Log => partials([1.0 / X]),
        Log2 => partials([LOG2_E / X]),
        Log10 => partials([LOG10_E / X]),
        Log1p => partials([1.0 / (1.0 + X)]),
        Pow => partials([
            // Only where the product is 0·∞: elsewhere at y = 0 it still varies with y.
            where_(and(equal(X, 0.0), equal(Y, 0.0)), ZERO, Y * pow(X, Y - 1.0)),
            where_(and(equal(X, 0.0), at_least(Y, 0.0)), ZERO, R * log(X)),
        ]),
        // n - 1 wraps around only for the least n, where x^n is 0 or infinite unless |x| is all but 1.
        Powi => partials([where_(is_integer(N, 0), ZERO, float(N) * powi(X, N - 1))]),

        // ---- trigonometry
        Sin => partials([cos(X)]),
        Cos => partials([-sin(X)]),
        Sincos => partials_of_pair([S], [-R]),
        Tan => partials([1.0 + R * R]),
        Asin => partials([1.0 / sqrt((1.0 - X) * (1.0 + X))]),
        Acos => partials([-1.0 / sqrt((1.0 - X) * (1.0 + X))]),
        Atan => partials([1.0 / (1.0 + X * X)]),
        Atan2 => partials([(1.0 / (X * X + Y * Y)) * Y, (1.0 / (X * X + Y * Y)) * -X]),
        Sinh => partials([cosh(X)]),
        Cosh => partials([sinh(X)]),
        Tanh => partials([1.0 - R * R]),
        Asinh => partials([1.0 / sqrt(X * X + 1.0)]),
        Acosh => partials([1.0 / sqrt((X - 1.0) * (X + 1.0))]),
        Atanh => partials([1.0 / ((1.0 - X) * (1.0 + X))]),

        // ---- special functions
        Erf => partials([FRAC_2_SQRT_PI * exp(-(X * X))]),
        Erfc => partials([-FRAC_2_SQRT_PI * exp(-(X * X))]),
        Tgamma => partials([R * polygamma(X, 0)]),
        Lgamma => partials([polygamma(X, 0)]),
        Polygamma => partials([polygamma(X, N + 1)]),
        Jn => partials([0.5 * (jn(X, N - 1) - jn(X, N + 1))]),
        Yn => partials([0.5 * (yn(X, N - 1) - yn(X, N + 1))]),

        // ---- the parts of a float
        Ldexp => partials([ldexp(1.0, N)]),
        Frexp => partials_of_pair([ldexp(1.0, -E)], [ZERO]),
        Modf => partials_of_pair([ONE], [ZERO]),

        // ---- linear operations that move lanes or change types
        Fpext => Rule::Linear("x' = fptrunc(r')"),
        Fptrunc => Rule::Linear("x' = fpext(r')"),
        Bitcast => Rule::Linear("x' = r', floats of one width on both sides"),
        Select => Rule::Linear("x' = select(c, r', 0), y' = select(c, 0, r')"),
        Splat => Rule::Linear("x' = reduce_fadd(r')"),
        ReduceFadd => Rule::Linear("x' = splat(r')"),
        Extract => Rule::Linear("v' = insert(0, r', i)"),
        Insert => Rule::Linear("v' = insert(r', 0, i), x' = extract(r', i)"),
        Shuffle => {
            Rule::Linear("each lane of x' and y' is the sum of the lanes of r' that it went to")
        }

        // ---- steps: constant between their jumps
        Floor | Ceil | Trunc | Round | RoundEven | Logb => Rule::Inactive(Zero::Steps),
        Ilogb | Fcmp | Fptosi | Fptoui | FptosiSat | FptouiSat => Rule::Inactive(Zero::Steps),

        // ---- whole numbers
        Add | Sub | Mul | Sdiv | Udiv | Srem | Urem | Shl | Lshr | Ashr | And | Or | Xor | Smin
        | Smax | Umin | Umax | Ctpop | Ctlz | Cttz | Bswap | Bitreverse | Freeze | Icmp
        | TruncInt | Zext | Sext | Sitofp | Uitofp => Rule::Inactive(Zero::Integers),

        // ---- memory, addresses, calls and control
        Load | Store | Offset | Stack | Alloc | Free | Copy | Move | Fill | AtomicAdd
        | Ptrtoint | Inttoptr | Call | CallIndirect | If | Switch | For | Loop | Yield | Again
        | Return | Trap => Rule::Structural,
    }
}

fn partials<const OPERANDS: usize>(formulas: [Formula; OPERANDS]) -> Rule {
    Rule::Partials(vec![formulas.to_vec()])
}

fn partials_of_pair<const OPERANDS: usize>(
    first: [Formula; OPERANDS],
    second: [Formula; OPERANDS],
) -> Rule {
    Rule::Partials(vec![first.to_vec(), second.to_vec()])
}

/// The result is the first operand where the condition holds, otherwise the second.
fn choice(first: Formula) -> Rule {
    partials([where_(first.clone(), ONE, ZERO), where_(first, ZERO, ONE)])
}

fn inverse_or_zero(a: Formula) -> Formula {
    where_(equal(a.clone(), 0.0), ZERO, 1.0 / a)
}
