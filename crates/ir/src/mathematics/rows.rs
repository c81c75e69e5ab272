//! The rows of the table of mathematical functions, whose columns [`MathFunction`](super::MathFunction) describes.

/// Gives the rows to another macro.
macro_rules! with_functions {
    ($then:ident! { $($rest:tt)* }) => {
        $then! {
            functions {

    // ---- arithmetic

    /// Sum.
    Fadd fadd FloatBinary(|a, b| a + b) { derivative: [ONE, ONE], slope: Bounded, cost: Simple }
    /// Difference.
    Fsub fsub FloatBinary(|a, b| a - b) { derivative: [ONE, -ONE], slope: Bounded, cost: Simple }
    /// Product.
    Fmul fmul FloatBinary(|a, b| a * b) { derivative: [Y, X], slope: Finite, cost: Simple }
    /// Quotient.
    Fdiv fdiv FloatBinary(|a, b| a / b) {
        derivative: [1.0 / Y, (1.0 / Y) * -R], slope: Infinite("y = 0"), cost: Slow
    }
    /// Remainder of truncated division, with the sign of the dividend: C's `fmod`.
    Frem frem FloatBinary(|a, b| a % b) {
        // x - r is the multiple of y that was taken away. The quotient x / y computed anew could round to another one.
        derivative: [ONE, round_even((R - X) / Y)], slope: Infinite("y = 0"), cost: Call,
        c: ["fmod"]
    }
    /// Sign change.
    Fneg fneg FloatUnary(|a| -a) { derivative: [-ONE], slope: Bounded, cost: Simple }
    /// `x·y + z`, rounded once.
    Fma fma FloatTernary(f64::mul_add) {
        derivative: [Y, X, ONE], slope: Finite, cost: Simple,
        llvm: ["fma"], c: ["fma"], rust: "mul_add"
    }
    /// The smaller; the other operand where one is NaN.
    Fmin fmin FloatBinary(special::smaller) {
        derivative: choice(or(less(X, Y), is_nan(Y))), slope: Bounded, cost: Simple,
        llvm: ["minnum", "minimumnum"], c: ["fmin", "fminimum_num"], rust: "min"
    }
    /// The larger; the other operand where one is NaN.
    Fmax fmax FloatBinary(special::larger) {
        derivative: choice(or(at_least(X, Y), is_nan(Y))), slope: Bounded, cost: Simple,
        llvm: ["maxnum", "maximumnum"], c: ["fmax", "fmaximum_num"], rust: "max"
    }
    /// The smaller, NaN where one is NaN, −0 below +0.
    Fminimum fminimum FloatBinary(|a, b| special::nan_or(a, b, special::smaller)) {
        derivative: choice(less(X, Y)), slope: Bounded, cost: Simple,
        llvm: ["minimum"], c: ["fminimum"]
    }
    /// The larger, NaN where one is NaN, −0 below +0.
    Fmaximum fmaximum FloatBinary(|a, b| special::nan_or(a, b, special::larger)) {
        derivative: choice(at_least(X, Y)), slope: Bounded, cost: Simple,
        llvm: ["maximum"], c: ["fmaximum"]
    }
    /// Absolute value.
    Fabs fabs FloatUnary(f64::abs) {
        derivative: [copysign(1.0, X)], slope: Bounded, image: NOT_NEGATIVE, cost: Simple,
        llvm: ["fabs"], c: ["fabs"], rust: "abs"
    }
    /// The magnitude of the first with the sign of the second.
    Copysign copysign FloatBinary(f64::copysign) {
        derivative: [copysign(1.0, Y) * copysign(1.0, X), ZERO], slope: Bounded, cost: Simple,
        llvm: ["copysign"], c: ["copysign"], rust: "copysign"
    }
    /// Positive difference: `x - y` where `x > y`, else +0.
    Fdim fdim FloatBinary(libm::fdim) {
        derivative: [where_(greater(X, Y), ONE, ZERO), where_(greater(X, Y), -ONE, ZERO)],
        slope: Finite, image: NOT_NEGATIVE, cost: Slow,
        c: ["fdim"]
    }
    /// IEEE remainder (quotient rounded to nearest even).
    Remainder remainder FloatBinary(libm::remainder) {
        derivative: [ONE, round_even((R - X) / Y)], slope: Infinite("y = 0"), cost: Call,
        c: ["remainder"], not_reserved: ["drem"]
    }

    // ---- rounding

    /// Down to a whole number.
    Floor floor FloatUnary(f64::floor) {
        derivative: Derivative::Steps, slope: Finite, cost: Simple,
        llvm: ["floor"], c: ["floor"], rust: "floor"
    }
    /// Up to a whole number.
    Ceil ceil FloatUnary(f64::ceil) {
        derivative: Derivative::Steps, slope: Finite, cost: Simple,
        llvm: ["ceil"], c: ["ceil"], rust: "ceil"
    }
    /// Towards zero to a whole number.
    Trunc trunc FloatUnary(f64::trunc) {
        derivative: Derivative::Steps, slope: Finite, cost: Simple,
        llvm: ["trunc"], c: ["trunc"], rust: "trunc"
    }
    /// To the nearest whole number, ties away from zero.
    Round round FloatUnary(f64::round) {
        derivative: Derivative::Steps, slope: Finite, cost: Slow,
        llvm: ["round"], c: ["round"], rust: "round"
    }
    /// To the nearest whole number, ties to even (also C's `rint` and `nearbyint`).
    RoundEven round_even FloatUnary(f64::round_ties_even) {
        derivative: Derivative::Steps, slope: Finite, cost: Simple,
        llvm: ["roundeven", "rint", "nearbyint"], c: ["roundeven", "rint", "nearbyint"], rust: "round_ties_even"
    }

    // ---- powers and logarithms

    /// Square root.
    Sqrt sqrt FloatUnary(f64::sqrt) {
        derivative: [where_(equal(R, 0.0), ZERO, 0.5 / R)],
        slope: Infinite("x = 0"), image: (-0.0, f64::INFINITY), cost: Slow,
        llvm: ["sqrt"], c: ["sqrt"], rust: "sqrt", domain: [FROM_ONE]
    }
    /// `1/√x`.
    Rsqrt rsqrt Composite(|| 1.0 / sqrt(X)) {
        derivative: [-0.5 * (R / X)], slope: Infinite("x = 0"), cost: Slow,
        not_reserved: ["rsqrt"], domain: [(1.0, 3.0)]
    }
    /// Cube root.
    Cbrt cbrt FloatUnary(libm::cbrt) {
        derivative: [1.0 / (3.0 * R * R)], slope: Infinite("x = 0"), cost: Call,
        c: ["cbrt"], rust: "cbrt", domain: [(1.0, 3.0)]
    }
    /// `√(x² + y²)` without overflow in between.
    Hypot hypot FloatBinary(libm::hypot) {
        derivative: [inverse_or_zero(R) * X, inverse_or_zero(R) * Y],
        slope: Infinite("x = y = 0"), image: NOT_NEGATIVE, cost: Call,
        c: ["hypot"], rust: "hypot", domain: [ALL, (2.0, 4.0)]
    }
    /// `e^x`.
    Exp exp FloatUnary(libm::exp) {
        derivative: [R], slope: Finite, image: NOT_NEGATIVE, cost: Call,
        llvm: ["exp"], c: ["exp"], rust: "exp", domain: [UNIT]
    }
    /// `2^x`.
    Exp2 exp2 FloatUnary(libm::exp2) {
        derivative: [R * LN_2], slope: Finite, image: NOT_NEGATIVE, cost: Call,
        llvm: ["exp2"], c: ["exp2"], rust: "exp2", domain: [UNIT]
    }
    /// `10^x`.
    Exp10 exp10 FloatUnary(libm::exp10) {
        derivative: [R * LN_10], slope: Finite, image: NOT_NEGATIVE, cost: Call,
        llvm: ["exp10"], c: ["exp10"], not_reserved: ["pow10"], domain: [(-0.5, 0.5)]
    }
    /// `e^x - 1`, accurate near zero.
    Expm1 expm1 FloatUnary(libm::expm1) {
        // Not r + 1, which is 0 where the derivative is small.
        derivative: [exp(X)], slope: Finite, image: (-1.0, f64::INFINITY), cost: Call,
        c: ["expm1"], rust: "exp_m1", domain: [UNIT]
    }
    /// `2^x - 1`, accurate near zero.
    Exp2m1 exp2m1 Composite(|| where_(less(fabs(X), 0.5), expm1(X * LN_2), exp2(X) - 1.0)) {
        derivative: [exp2(X) * LN_2], slope: Finite, image: (-1.0, f64::INFINITY), cost: Call,
        not_reserved: ["exp2m1"], domain: [UNIT]
    }
    /// `10^x - 1`, accurate near zero.
    Exp10m1 exp10m1 Composite(|| where_(less(fabs(X), 0.25), expm1(X * LN_10), exp10(X) - 1.0)) {
        derivative: [exp10(X) * LN_10], slope: Finite, image: (-1.0, f64::INFINITY), cost: Call,
        not_reserved: ["exp10m1"], domain: [(-0.5, 0.5)]
    }
    /// Natural logarithm.
    Log log FloatUnary(libm::log) {
        derivative: [1.0 / X], slope: Infinite("x = 0"), cost: Call,
        llvm: ["log"], c: ["log"], rust: "ln", domain: [FROM_ONE]
    }
    /// Logarithm to base 2.
    Log2 log2 FloatUnary(libm::log2) {
        derivative: [LOG2_E / X], slope: Infinite("x = 0"), cost: Call,
        llvm: ["log2"], c: ["log2"], rust: "log2", domain: [FROM_ONE]
    }
    /// Logarithm to base 10.
    Log10 log10 FloatUnary(libm::log10) {
        derivative: [LOG10_E / X], slope: Infinite("x = 0"), cost: Call,
        llvm: ["log10"], c: ["log10"], rust: "log10", domain: [FROM_ONE]
    }
    /// `ln(1 + x)`, accurate near zero.
    Log1p log1p FloatUnary(libm::log1p) {
        derivative: [1.0 / (1.0 + X)], slope: Infinite("x = -1"), cost: Call,
        c: ["log1p"], not_reserved: ["logp1"], rust: "ln_1p", domain: [NOT_NEGATIVE]
    }
    /// `log2(1 + x)`, accurate near zero.
    Log2p1 log2p1 Composite(|| where_(less(fabs(X), 0.5), log1p(X) * LOG2_E, log2(1.0 + X))) {
        derivative: [LOG2_E / (1.0 + X)], slope: Infinite("x = -1"), cost: Call,
        not_reserved: ["log2p1"], domain: [NOT_NEGATIVE]
    }
    /// `log10(1 + x)`, accurate near zero.
    Log10p1 log10p1 Composite(|| where_(less(fabs(X), 0.5), log1p(X) * LOG10_E, log10(1.0 + X))) {
        derivative: [LOG10_E / (1.0 + X)], slope: Infinite("x = -1"), cost: Call,
        not_reserved: ["log10p1"], domain: [NOT_NEGATIVE]
    }
    /// `x^y`.
    Pow pow FloatBinary(libm::pow) {
        // The first is zero only where the product is 0·∞: elsewhere at y = 0 it still varies with y.
        derivative: [
            where_(and(equal(X, 0.0), equal(Y, 0.0)), ZERO, Y * pow(X, Y - 1.0)),
            where_(and(equal(X, 0.0), at_least(Y, 0.0)), ZERO, R * log(X)),
        ],
        slope: Infinite("x = 0"), cost: Call,
        llvm: ["pow"], c: ["pow"], rust: "powf", domain: [(1.0, 17.0), UNIT]
    }
    /// `x^n` for a whole number `n`.
    Powi powi FloatAndInt(|x, n| libm::pow(x, f64::from(n))) {
        // n - 1 wraps around only for the least n, where x^n is 0 or infinite unless |x| is all but 1.
        derivative: [where_(is_integer(N, 0), ZERO, float(N) * powi(X, N - 1))],
        slope: Infinite("x = 0, n < 0"), cost: Call,
        llvm: ["powi"], rust: "powi", domain: [(-4.0, 4.0), (2.0, 3.0)]
    }

    // ---- trigonometry

    /// Sine.
    Sin sin FloatUnary(libm::sin) {
        derivative: [cos(X)], slope: Finite, image: UNIT, cost: Call,
        llvm: ["sin"], c: ["sin"], rust: "sin", domain: [ALL]
    }
    /// Cosine.
    Cos cos FloatUnary(libm::cos) {
        derivative: [-sin(X)], slope: Finite, image: UNIT, cost: Call,
        llvm: ["cos"], c: ["cos"], rust: "cos", domain: [ALL]
    }
    /// Sine and cosine.
    Sincos sincos FloatPair(libm::sincos) {
        derivative: [[S], [-R]], slope: Finite, image: UNIT, cost: Call,
        llvm: ["sincos"], rust: "sin_cos", domain: [ALL]
    }
    /// `sin(π·x)`, zero at whole numbers.
    Sinpi sinpi Composite(|| {
        let r = within_period(X);
        let a = fabs(r.clone());
        let near_one = where_(less(a.clone(), 0.75), cos(PI * (a.clone() - 0.5)), sin(PI * (1.0 - a.clone())));
        let size = where_(less(a.clone(), 0.25), sin(PI * a), near_one);
        copysign(size.clone(), where_(equal(size, 0.0), X, r))
    }) {
        derivative: [PI * cospi(X)], slope: Finite, image: UNIT, cost: Call,
        not_reserved: ["sinpi"], domain: [(-0.5, 0.5)]
    }
    /// `cos(π·x)`, zero half way between whole numbers.
    Cospi cospi Composite(|| {
        let a = fabs(within_period(X));
        let near_one = where_(less(a.clone(), 0.75), sin(PI * (0.5 - a.clone())), -cos(PI * (1.0 - a.clone())));
        where_(less(a.clone(), 0.25), cos(PI * a), near_one)
    }) {
        derivative: [-PI * sinpi(X)], slope: Finite, image: UNIT, cost: Call,
        not_reserved: ["cospi"], domain: [(-0.5, 0.5)]
    }
    /// `tan(π·x)`, zero at whole numbers.
    Tanpi tanpi Composite(|| sinpi(X) / cospi(X)) {
        derivative: [PI * (1.0 + R * R)], slope: Infinite("x = ½ + k"), cost: Call,
        not_reserved: ["tanpi"], domain: [(-0.25, 0.25)]
    }
    /// Tangent.
    Tan tan FloatUnary(libm::tan) {
        derivative: [1.0 + R * R], slope: Infinite("x = π/2 + kπ"), cost: Call,
        llvm: ["tan"], c: ["tan"], rust: "tan", domain: [(-0.75, 0.75)]
    }
    /// Inverse sine.
    Asin asin FloatUnary(libm::asin) {
        derivative: [1.0 / sqrt((1.0 - X) * (1.0 + X))],
        slope: Infinite("x = ±1"), image: (-FRAC_PI_2, FRAC_PI_2), cost: Call,
        llvm: ["asin"], c: ["asin"], rust: "asin", domain: [(-0.75, 0.75)]
    }
    /// Inverse cosine.
    Acos acos FloatUnary(libm::acos) {
        derivative: [-1.0 / sqrt((1.0 - X) * (1.0 + X))], slope: Infinite("x = ±1"), image: (0.0, PI), cost: Call,
        llvm: ["acos"], c: ["acos"], rust: "acos", domain: [(-0.75, 0.75)]
    }
    /// Inverse tangent.
    Atan atan FloatUnary(libm::atan) {
        derivative: [1.0 / (1.0 + X * X)], slope: Finite, image: (-FRAC_PI_2, FRAC_PI_2), cost: Call,
        llvm: ["atan"], c: ["atan"], rust: "atan", domain: [ALL]
    }
    /// The angle of the point with ordinate `x` and abscissa `y`.
    Atan2 atan2 FloatBinary(libm::atan2) {
        derivative: [(1.0 / (X * X + Y * Y)) * Y, (1.0 / (X * X + Y * Y)) * -X],
        slope: Infinite("x = y = 0"), image: (-PI, PI), cost: Call,
        llvm: ["atan2"], c: ["atan2"], rust: "atan2", domain: [ALL, FROM_ONE]
    }
    /// `asin(x)/π`.
    Asinpi asinpi Composite(|| asin(X) / PI) {
        derivative: [FRAC_1_PI / sqrt((1.0 - X) * (1.0 + X))],
        slope: Infinite("x = ±1"), image: (-0.5, 0.5), cost: Call,
        not_reserved: ["asinpi"], domain: [(-0.75, 0.75)]
    }
    /// `acos(x)/π`.
    Acospi acospi Composite(|| acos(X) / PI) {
        derivative: [-FRAC_1_PI / sqrt((1.0 - X) * (1.0 + X))],
        slope: Infinite("x = ±1"), image: (0.0, 1.0), cost: Call,
        not_reserved: ["acospi"], domain: [(-0.75, 0.75)]
    }
    /// `atan(x)/π`.
    Atanpi atanpi Composite(|| atan(X) / PI) {
        derivative: [FRAC_1_PI / (1.0 + X * X)], slope: Finite, image: (-0.5, 0.5), cost: Call,
        not_reserved: ["atanpi"], domain: [ALL]
    }
    /// `atan2(x, y)/π`.
    Atan2pi atan2pi CompositeBinary(|| atan2(X, Y) / PI) {
        derivative: [(FRAC_1_PI / (X * X + Y * Y)) * Y, (FRAC_1_PI / (X * X + Y * Y)) * -X],
        slope: Infinite("x = y = 0"), image: UNIT, cost: Call,
        not_reserved: ["atan2pi"], domain: [ALL, FROM_ONE]
    }
    /// Hyperbolic sine.
    Sinh sinh FloatUnary(libm::sinh) {
        derivative: [cosh(X)], slope: Finite, cost: Call,
        llvm: ["sinh"], c: ["sinh"], rust: "sinh", domain: [UNIT]
    }
    /// Hyperbolic cosine.
    Cosh cosh FloatUnary(libm::cosh) {
        derivative: [sinh(X)], slope: Finite, image: FROM_ONE, cost: Call,
        llvm: ["cosh"], c: ["cosh"], rust: "cosh", domain: [UNIT]
    }
    /// Hyperbolic tangent.
    Tanh tanh FloatUnary(libm::tanh) {
        derivative: [1.0 - R * R], slope: Finite, image: UNIT, cost: Call,
        llvm: ["tanh"], c: ["tanh"], rust: "tanh", domain: [ALL]
    }
    /// Inverse hyperbolic sine.
    Asinh asinh FloatUnary(libm::asinh) {
        derivative: [1.0 / sqrt(X * X + 1.0)], slope: Finite, cost: Call,
        c: ["asinh"], rust: "asinh", domain: [ALL]
    }
    /// Inverse hyperbolic cosine.
    Acosh acosh FloatUnary(|x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }) {
        derivative: [1.0 / sqrt((X - 1.0) * (X + 1.0))], slope: Infinite("x = 1"), image: NOT_NEGATIVE, cost: Call,
        c: ["acosh"], rust: "acosh", domain: [(1.75, 3.25)]
    }
    /// Inverse hyperbolic tangent.
    Atanh atanh FloatUnary(libm::atanh) {
        derivative: [1.0 / ((1.0 - X) * (1.0 + X))], slope: Infinite("x = ±1"), cost: Call,
        c: ["atanh"], rust: "atanh", domain: [(-0.75, 0.75)]
    }

    // ---- special functions

    /// Error function.
    Erf erf FloatUnary(libm::erf) {
        derivative: [FRAC_2_SQRT_PI * exp(-(X * X))], slope: Finite, image: UNIT, cost: Call,
        c: ["erf"], rust: "erf", domain: [ALL]
    }
    /// `1 - erf(x)`.
    Erfc erfc FloatUnary(libm::erfc) {
        derivative: [-FRAC_2_SQRT_PI * exp(-(X * X))], slope: Finite, image: (0.0, 2.0), cost: Call,
        c: ["erfc"], rust: "erfc", domain: [ALL]
    }
    /// Gamma function.
    Tgamma tgamma FloatUnary(libm::tgamma) {
        derivative: [R * polygamma(X, 0)], slope: Infinite("x = 0, -1, -2, …"), cost: Call,
        c: ["tgamma"], rust: "gamma", domain: [(2.0, 3.0)]
    }
    /// Natural logarithm of the magnitude of the gamma function.
    Lgamma lgamma FloatUnary(libm::lgamma) {
        derivative: [polygamma(X, 0)], slope: Infinite("x = 0, -1, -2, …"), cost: Call,
        c: ["lgamma"], not_reserved: ["gamma"], rust: "ln_gamma", domain: [(2.0, 3.0)]
    }
    /// The n-th derivative of the logarithmic derivative of the gamma function (`polygamma %x, 0` is digamma):
    /// what the rules of `lgamma`, `tgamma` and of itself need.
    Polygamma polygamma FloatAndInt(|x, n| special::polygamma(n, x)) {
        derivative: [polygamma(X, N + 1)], slope: Infinite("x = 0, -1, -2, …"), cost: Call,
        domain: [(1.0, 4.0), (0.0, 3.0)]
    }
    /// Bessel function of the first kind, of whole order.
    Jn jn IntAndFloat(special::bessel_j) {
        derivative: [0.5 * (jn(X, N - 1) - jn(X, N + 1))], slope: Finite, cost: Call,
        not_reserved: ["jn"], domain: [(-4.0, 4.0), (-2.0, 3.0)]
    }
    /// Bessel function of the second kind, of whole order.
    Yn yn IntAndFloat(special::bessel_y) {
        derivative: [0.5 * (yn(X, N - 1) - yn(X, N + 1))], slope: Infinite("x = 0"), cost: Call,
        not_reserved: ["yn"], domain: [(2.0, 4.0), (-2.0, 3.0)]
    }

    // ---- the parts of a float

    /// `x·2^n`.
    Ldexp ldexp FloatAndInt(libm::ldexp) {
        derivative: [ldexp(1.0, N)], slope: Infinite("n → ∞"), cost: Call,
        llvm: ["ldexp"], c: ["ldexp", "scalbn"], domain: [ALL, (-2.0, 1.0)]
    }
    /// Mantissa in [½, 1) and exponent.
    Frexp frexp FloatSplit(special::frexp) {
        derivative: [[ldexp(1.0, -E)], [ZERO]], slope: Infinite("x → 0"), cost: Call,
        llvm: ["frexp"], c: ["frexp"]
    }
    /// Fraction and whole part, both with the sign of `x`.
    Modf modf FloatPair(special::modf) {
        derivative: [[ONE], [ZERO]], slope: Finite, image: UNIT, cost: Call,
        llvm: ["modf"], c: ["modf"]
    }
    /// The exponent as an integer.
    Ilogb ilogb FloatToExponent(libm::ilogb) {
        derivative: Derivative::Steps, slope: Finite, cost: Call,
        c: ["ilogb"]
    }
    /// The exponent as a float.
    Logb logb FloatUnary(special::logb) { derivative: Derivative::Steps, slope: Finite, cost: Call, c: ["logb"] }
    /// The next float after the first in the direction of the second.
    Nextafter nextafter FloatBinary(libm::nextafter) {
        derivative: [ONE, ZERO], slope: Finite, cost: Call,
        c: ["nextafter"]
    }

            }
            $($rest)*
        }
    };
}

pub(crate) use with_functions;
